"""Observe the sessions of Codex that a shared server runs: what it says of each counts at once.

A terminal of such a session is only a client (`shown.py`), and no hook says that a permission was
granted; the server does, within a few milliseconds.  There is one connection for each server that
runs a session on the board.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ...core.finding import Finding
from ...core.session import Session
from ..cli import Means
from ..dialect import Heard
from .hearing import Hearing
from .shown import Shown

OLDEST: Final = 60.0  # seconds; what claims to be older, or of the future, counts as now
PROGRAM: Final = "program"


class Served:
    """Calls `report` with what servers say of the sessions passed to `attend`."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._sessions: dict[int, dict[str, Session]] = {}  # by server, by id
        self._hearings: dict[int, Hearing] = {}  # by server
        self._left: dict[tuple[int, str], tuple[Heard, float]] = {}  # what a program decides, since
        self._shown = Shown(means)
        self._failed: dict[int, str] = {}  # servers left alone until the next rescan → why

    @property
    def notes(self) -> dict[str, str]:
        """Return what is wrong, for health."""
        return {f"codex server {pid}": why for pid, why in self._failed.items() if why}

    def attend(self, s: Session) -> None:
        """Listen to the servers of a session."""
        now = {pid for pid, p in s.processes.items() if p.shared}
        self._leave(s.session_id, {*self._sessions} - now)
        for pid in now:
            self._sessions.setdefault(pid, {})[s.session_id] = s
            self._hear(pid)
            left = self._left.get((pid, s.session_id)) if s.reviewer != PROGRAM else None
            if left is not None:  # that you decide was read only now
                self._heard(pid, *left)
            self._shown.attend(s, pid)

    def leave(self, sid: str) -> None:
        """Drop a session that has ended."""
        self._leave(sid, {*self._sessions})
        self._shown.leave(sid)

    def rescan(self) -> None:
        """Try again what failed."""
        self._failed.clear()
        for pid in self._sessions:
            self._hear(pid)
        self._shown.rescan()

    def close(self) -> None:
        """Hang up."""
        self._shown.close()
        for hearing in self._hearings.values():
            hearing.close()
        self._hearings.clear()

    def _leave(self, sid: str, pids: set[int]) -> None:
        for pid in pids:
            self._sessions[pid].pop(sid, None)
            self._left.pop((pid, sid), None)
            if not self._sessions[pid]:
                del self._sessions[pid]
                self._failed.pop(pid, None)
                if (hearing := self._hearings.pop(pid, None)) is not None:
                    hearing.close()

    def _hear(self, pid: int) -> None:
        if pid not in self._hearings and pid not in self._failed:
            hears, ended = partial(self._heard, pid), partial(self._ended, pid)
            self._hearings[pid] = Hearing(pid, self._sessions[pid].keys(), hears, ended)

    def _ended(self, pid: int, why: str) -> None:
        self._hearings.pop(pid, None)
        self._left = {key: left for key, left in self._left.items() if key[0] != pid}
        self._failed[pid] = why

    def _heard(self, pid: int, said: Heard, at: float) -> None:
        s = self._sessions.get(pid, {}).get(said.session_id)
        if s is None:
            return
        now = self._means.clock()
        t = at if now - OLDEST < at <= now else now
        self._left.pop((pid, s.session_id), None)
        if said.seen.asks == "permission" and s.reviewer == PROGRAM:
            self._left[pid, s.session_id] = said, t
            return
        line = said.seen.finding(t, s.session_id, pid, where="server").line
        key = f"codex {s.session_id} {said.seen.says} {said.seen.asks} {at or now}"
        self._means.report(Finding(line, key))
