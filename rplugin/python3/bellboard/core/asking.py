"""Track the files that hold open questions, so that each is deleted with its question."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .front import runs_of
from .session import Session

NONE: frozenset[str] = frozenset()


class Requests:
    """The files of open questions, by session."""

    def __init__(self) -> None:
        self._of: dict[str, frozenset[str]] = {}

    def follow(self, sessions: Mapping[str, Session], changed: Collection[str]) -> frozenset[str]:
        """Follow what changed sessions ask; return the files of questions that have ended."""
        ended = NONE
        for sid in changed:
            s = sessions.get(sid)
            asked, before = _requests_of(s) if s else NONE, self._of.pop(sid, NONE)
            if asked:
                self._of[sid] = asked
            ended |= before - asked
        return ended

    def standing(self) -> frozenset[str]:
        """Return the files of all open questions."""
        return NONE.union(*self._of.values())


def _requests_of(s: Session) -> frozenset[str]:
    """Return the files of a session's questions, in all its runs and in what it left running."""
    if not (s.blocks or s.aside or s.crew.blocks):
        return NONE
    asking = (*(run.blocks for run in runs_of(s)), s.crew.blocks)
    return frozenset(b.request for blocks in asking for b in blocks.values() if b.request)
