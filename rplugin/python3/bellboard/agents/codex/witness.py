"""Observe Codex: the logs of its threads, which of them are open, and its shared servers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Final

from ...core.evidence import Evidence
from ...core.session import Session, status_of
from ..agent import Agent, Heard, Means
from ..tailing import LogWitness
from .clients import ClientTerminals
from .dialect import AT_WORK, KEY
from .server import ServerEvents
from .threads import OpenThread, home_in, locks_folder, thread_log, threads_in

WATCHES: Final = "codex"
SETTLE: Final = 0.2  # seconds from the making of a file to its lock


class CodexWitness(LogWitness):
    """See `Witness`."""

    def __init__(self, means: Means, agent: Agent) -> None:
        super().__init__(means, agent)
        self._means, self._generation = means, means.generation
        self._home, self._folder = home_in(means.environ), locks_folder(means.environ)
        self._sessions: dict[str, Session] = {}
        self._open: frozenset[OpenThread] | None = None  # as last seen
        self._timer: asyncio.TimerHandle | None = None
        self._served = ServedSessions(means)
        means.watched.need(self._folder, WATCHES, "")

    @property
    def notes(self) -> dict[str, str]:
        return {**super().notes, **self._served.notes}

    def attend(self, s: Session) -> None:
        self._sessions[s.session_id] = s
        find = partial(thread_log, self._home, s.session_id)  # no hook has reported it
        self.following.attend(s, self._home, find)
        self._served.attend(s)

    def leave(self, sid: str) -> None:
        self._sessions.pop(sid, None)
        self._served.leave(sid)
        super().leave(sid)

    def changed(self, paths: Collection[str]) -> None:
        super().changed(paths)
        below = f"{self._folder}/"
        if self._timer is None and any(f"{path}/".startswith(below) for path in paths):
            self._timer = asyncio.get_running_loop().call_later(SETTLE, self._look)

    def rescan(self) -> None:
        super().rescan()
        self._served.rescan()
        self._look()

    def renew(self, generation: str) -> None:
        self._generation, self._open = generation, None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._served.close()

    def _look(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._means.reach.do(self._folder, partial(threads_in, self._folder), self._saw)

    def _saw(self, found: list[OpenThread]) -> None:
        before, self._open = self._open, frozenset(found)
        for thread in found:
            if thread.id in self._sessions or (before is not None and thread in before):
                continue
            there = [s for s in self._sessions.values() if thread.pid in s.processes]
            if not there:
                self._report(thread, self._opened(thread, discovered=True))
            elif before is not None and not any(status_of(s) in AT_WORK for s in there):
                # Not of a subagent: its terminal shows this one now, after /clear or /new.
                is_hooked = any(s.hooked for s in there)
                self._report(thread, _turned(thread) if is_hooked else self._opened(thread))

    def _opened(self, thread: OpenThread, discovered: bool = False) -> dict[str, object]:
        record = {"sessionId": thread.id, "cwd": thread.cwd}
        given = {"pid": thread.pid, "agent": KEY, "discovered": discovered}
        return {"registry": {**given, "record": record}}

    def _report(self, thread: OpenThread, line: dict[str, object]) -> None:
        key = f"codex {thread.id} {thread.pid} {self._generation}"
        self._means.report(Evidence({"t": self._means.clock(), **line}, key))


def _turned(thread: OpenThread) -> dict[str, object]:
    """Return what Codex's hook reports of such a thread, later, with its first prompt."""
    name = "SessionStart"
    hook = {"session_id": thread.id, "hook_event_name": name, "cwd": thread.cwd, "source": "clear"}
    return {"event": name, "hook": hook, "origin": {"agent": KEY, "pid": thread.pid}}


# Observe the sessions of Codex that a shared server runs: what it says of each counts at once.
#
# A terminal of such a session is only a client (`shown.py`), and no hook says that a permission
# was granted; the server does, within a few milliseconds. There is one connection for each
# server that runs a session on the board.


OLDEST: Final = 60.0  # seconds; what claims to be older, or of the future, counts as now
PROGRAM: Final = "program"


class ServedSessions:
    """Calls `report` with what servers say of the sessions passed to `attend`."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._sessions: dict[int, dict[str, Session]] = {}  # by server, by id
        self._hearings: dict[int, ServerEvents] = {}  # by server
        self._left: dict[tuple[int, str], tuple[Heard, float]] = {}  # what a program decides, since
        self._shown = ClientTerminals(means)
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
            self._hearings[pid] = ServerEvents(pid, self._sessions[pid].keys(), hears, ended)

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
        self._means.report(Evidence(line, key))
