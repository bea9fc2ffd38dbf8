"""Find, watch and read the transcripts of sessions that are at work."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from ..core.finding import Finding
from ..core.rules.steps import is_alone
from ..core.session import Session, status_of
from ..system import processes
from ..system.files import is_path
from .cli import Means, Witness
from .dialect import Dialect
from .tailing import BRIEF, NEEDED, TAIL, Tail, Transcripts, is_needed, read_on

WATCHES = "transcript"
AWAITS = "its folder"


def known_until(s: Session) -> float:
    """Return until when it is known what a session did.

    For a session found at work, only the transcript shows it; what is older than its process was
    done by another one.  Without hooks, the session file says when a turn ended, but not how.  It
    may say first that one asks, and what it asks is in the log before that.
    """
    if is_alone(s):
        return max(s.over, processes.began_at(s.pid) or s.last)
    rested = s.over if status_of(s) in NEEDED else 0.0
    return s.last if s.hooked else s.began or rested or s.last


class Following:
    """Calls `report` with what is new in the transcripts that are needed."""

    def __init__(self, means: Means, dialect: Dialect) -> None:
        self.transcripts = Transcripts(dialect, BRIEF if means.brief else TAIL)
        self._reach, self._watched = means.reach, means.watched
        self._report, self._clock = means.report, means.clock
        self._needing: dict[str, Session] = {}  # sessions whose transcripts are needed
        self._awaited: dict[str, str] = {}  # session → its transcript, while its folder is missing

    def attend(self, s: Session, folder: str = "", find: Callable[[], str] = str) -> None:
        """Follow the transcript of a session if it is needed now, else stop.

        If no hook has reported its path, `find` returns it; that may hang where `folder` does.
        """
        sid = s.session_id
        if not is_needed(status_of(s), s.since, self._clock(), is_alone(s)):
            self._needing.pop(sid, None)
            self._follow(sid, "")
            return
        self._needing[sid] = s
        if s.transcript:
            self._follow(sid, s.transcript)
        elif is_path(folder):
            self._reach.do(folder, find, partial(self._found, sid), key=f"transcript of {sid}")

    def forget(self, sid: str) -> None:
        """Drop a session that has ended."""
        self._needing.pop(sid, None)
        self._follow(sid, "")
        self.transcripts.forget(sid)

    def changed(self, paths: Collection[str]) -> None:
        """Read what changed among these paths."""
        for path in paths:
            for sid in self._watched.who(path, WATCHES):
                self._read(sid)
        for sid, path in list(self._awaited.items()):
            folder = os.path.dirname(path)  # noqa: PTH120 - a string, as the watch names it
            if folder in paths or os.path.dirname(folder) in paths:  # noqa: PTH120
                self._read(sid)

    def rescan(self) -> None:
        """Read every followed transcript."""
        for sid in list(self.transcripts.followed):
            self._read(sid)

    def _found(self, sid: str, path: str) -> None:
        if sid in self._needing:
            self._follow(sid, path)

    def _follow(self, sid: str, path: str) -> None:
        path = path if is_path(path) else ""
        tail = self.transcripts.tail(sid)
        before = tail.path if tail is not None else ""
        if path == before:
            return
        self.transcripts.leave(sid)
        self._watched.leave(before, WATCHES, sid)
        self._stop_waiting(sid)
        if path:
            s = self._needing[sid]
            self.transcripts.follow(sid, path, s.last if before else known_until(s))
            self._watched.need(path, WATCHES, sid)
            self._read(sid)

    def _read(self, sid: str) -> None:
        tail = self.transcripts.tail(sid)
        if tail is not None:
            work, key = partial(read_on, tail, self._clock()), f"{tail.path} of {sid}"
            self._reach.do(tail.path, work, partial(self._took, sid, tail), key=key)

    def _took(self, sid: str, tail: Tail, result: tuple[Tail, list[Finding]]) -> None:
        as_read, found = result
        if as_read is not tail:  # it was read in another process
            tail.become(as_read)
        if not self.transcripts.has(sid, tail):
            return  # the session has ended
        for finding in found:
            self._report(finding)
        if self.transcripts.tail(sid) is not tail:
            return
        if not tail.has_folder and sid not in self._awaited:
            # The first session in a directory: even the folder of its transcript is missing.
            self._awaited[sid] = tail.path
            self._watched.need(str(Path(tail.path).parent.parent), AWAITS, sid)
        elif tail.has_folder and sid in self._awaited:
            self._stop_waiting(sid)
            self._watched.renew(tail.path)
            self._read(sid)

    def _stop_waiting(self, sid: str) -> None:
        if path := self._awaited.pop(sid, ""):
            self._watched.leave(str(Path(path).parent.parent), AWAITS, sid)


class LogWitness(Witness):
    """Observes a CLI that has hooks and logs: follows each log while its session needs it."""

    def __init__(self, means: Means, dialect: Dialect) -> None:
        self.following = Following(means, dialect)

    @property
    def notes(self) -> dict[str, str]:
        return self.following.transcripts.notes

    def attend(self, s: Session) -> None:
        self.following.attend(s)

    def leave(self, sid: str) -> None:
        self.following.forget(sid)

    def died(self, pid: int) -> None:
        """Ignore the end of a process: a log has none."""

    def changed(self, paths: Collection[str]) -> None:
        self.following.changed(paths)

    def rescan(self) -> None:
        self.following.rescan()

    def renew(self, generation: str) -> None:
        """Do nothing: what was reported of a log stays known."""

    def close(self) -> None:
        """Do nothing: watches and timers belong to the host."""
