"""Observe Gemini CLI: its logs, and processes that have outlived their terminal."""

from __future__ import annotations

from functools import partial

from ...core.finding import Finding
from ...core.session import Session
from ...system.processes import PROC, is_alive, tty_of
from ..agent import Means
from ..tailing import LogWitness
from .dialect.spoken import DIALECT


class GeminiWitness(LogWitness):
    """See `Witness`."""

    def __init__(self, means: Means) -> None:
        super().__init__(means, DIALECT)
        self._reach, self._report, self._clock = means.reach, means.report, means.clock
        self._seated: dict[str, set[int]] = {}  # session → its processes, if it has a terminal

    def attend(self, s: Session) -> None:
        super().attend(s)
        self._seated[s.session_id] = {*s.processes} if s.tty else set()

    def leave(self, sid: str) -> None:
        super().leave(sid)
        self._seated.pop(sid, None)

    def rescan(self) -> None:
        super().rescan()
        for pid in {pid for pids in self._seated.values() for pid in pids}:
            work, then = partial(has_lost_terminal, pid), partial(self._report_lost, pid)
            self._reach.do(f"{PROC}/{pid}/stat", work, then)

    def _report_lost(self, pid: int, is_lost: bool) -> None:
        if is_lost:
            gone = {"pid": pid, "alive": False, "found": True}
            self._report(Finding({"t": self._clock(), "process": gone}, f"process {pid} tty gone"))


def has_lost_terminal(pid: int) -> bool:
    """Return whether a process goes on although its terminal was closed: nobody can use it."""
    return is_alive(pid) and not tty_of(pid)
