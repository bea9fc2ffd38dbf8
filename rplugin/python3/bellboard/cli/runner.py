"""Run errands from the command line, with or without a running host."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .home import Problem, find_session, opened, refresh

if TYPE_CHECKING:
    from ..core.published import Published
    from ..core.request import Reply, Request
    from ..core.session import Session
    from ..hosting.turn import SharedBoard
    from ..storage.store import Logged


def asking(shared: SharedBoard, called: str | None, has_asked: bool = False) -> Published:
    """Return the session of a name if it asks, or the session that has waited longest.

    With `has_asked`, a named session may have been answered meanwhile.
    """
    from ..core.published import snapshot

    sessions = snapshot(shared.board.sessions.values())
    if called:
        sid = find_session(shared, called, makes_sense=asks)
        found = next((p for p in sessions if p["session_id"] == sid), None)
        if found is None or not (has_asked or found["status"] == "blocked"):
            raise Problem(
                f"{called} is not asking anything; run `bellboard list` to see which sessions are"
            )
        return found
    blocked = waiting(sessions)
    if not blocked:
        raise Problem("no session is asking anything")
    return blocked[0]


def asks(p: Published) -> bool:
    return bool(p["status"] == "blocked")


def waiting(sessions: list[Published]) -> list[Published]:
    """Return the sessions that ask something, longest waiting first."""
    blocked = [p for p in sessions if asks(p) and "parked" not in p["markers"]]
    return sorted(blocked, key=lambda p: float(p.get("asked_at", 0.0)))


class Runner:
    """Runs errands on the board that this command has opened."""

    def __init__(self, shared: SharedBoard, by: str) -> None:
        from ..hosting.asked import RequestReader
        from ..hosting.errands import Errands
        from ..witnesses.proof import agent_above

        self._shared_board = shared
        requests = RequestReader(shared.spool, self.session, self._answers)
        self._errands = Errands(requests, self._report, by, partial(agent_above, shared.board))

    def session(self, sid: str) -> Session | None:
        """Fold pending events, and return a session, or None if it is not listed."""
        from ..core.session import is_listed

        refresh(self._shared_board)
        s = self._shared_board.board.sessions.get(sid)
        return s if s is not None and is_listed(s) else None

    def _answers(self, sid: str) -> Sequence[Logged]:
        return self._shared_board.store.answers(session_id=sid)

    def _report(self, line: Mapping[str, Any]) -> str:
        self._shared_board.spool.write({"t": time.time(), **line})
        return ""

    def do(self, what: str, given: Mapping[str, Any]) -> Reply:
        """Run an errand; for another machine, wait for its link in an event loop."""
        from ..core.session import is_far
        from ..system.reach import run_alone

        errand = self._errands.do(what, given)
        if not is_far(str(given.get("session_id"))):
            return run_alone(errand)
        import asyncio

        return asyncio.run(errand)


def carry_out(what: str, p: Published, **given: Any) -> Reply:
    """Run an errand about a session; raise `Problem` if it is declined."""
    with opened() as shared:
        runner = Runner(shared, f"a shell, process {os.getppid()}")
        reply = runner.do(what, {"session_id": p["session_id"], **given})
    if not reply["ok"]:
        raise Problem(f"{p['session_id']}: {reply['why']}")
    return reply


def decoded(request: Reply) -> Request:
    from ..core.request import Request
    from ..core.untrusted import converted

    if (made := converted(request, Request)) is None:
        raise Problem("its request cannot be read")
    return made
