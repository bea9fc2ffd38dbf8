"""Observe Codex: the logs of its threads, which of them are open, and its shared servers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Final

from ...core.finding import Finding
from ...core.session import Session, status_of
from ..cli import Means
from ..following import LogWitness
from .dialect.names import AT_WORK
from .dialect.spoken import CodexDialect
from .served import Served
from .threads import Thread, folder_of, home_in, log_of, threads_in

WATCHES: Final = "codex"
SETTLE: Final = 0.2  # seconds from the making of a file to its lock


class CodexWitness(LogWitness):
    """See `Witness`."""

    def __init__(self, means: Means) -> None:
        super().__init__(means, CodexDialect())
        self._means, self._generation = means, means.generation
        self._home, self._folder = home_in(means.environ), folder_of(means.environ)
        self._sessions: dict[str, Session] = {}
        self._open: frozenset[Thread] | None = None  # as last seen
        self._timer: asyncio.TimerHandle | None = None
        self._served = Served(means)
        means.watched.need(self._folder, WATCHES, "")

    @property
    def notes(self) -> dict[str, str]:
        return {**super().notes, **self._served.notes}

    def attend(self, s: Session) -> None:
        self._sessions[s.session_id] = s
        find = partial(log_of, self._home, s.session_id)  # no hook has reported it
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

    def _saw(self, found: list[Thread]) -> None:
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

    def _opened(self, thread: Thread, discovered: bool = False) -> dict[str, object]:
        record = {"sessionId": thread.id, "cwd": thread.cwd}
        given = {"pid": thread.pid, "agent": CodexDialect.key, "discovered": discovered}
        return {"registry": {**given, "record": record}}

    def _report(self, thread: Thread, line: dict[str, object]) -> None:
        key = f"codex {thread.id} {thread.pid} {self._generation}"
        self._means.report(Finding({"t": self._means.clock(), **line}, key))


def _turned(thread: Thread) -> dict[str, object]:
    """Return what Codex's hook reports of such a thread, later, with its first prompt."""
    name = "SessionStart"
    hook = {"session_id": thread.id, "hook_event_name": name, "cwd": thread.cwd, "source": "clear"}
    return {"event": name, "hook": hook, "origin": {"agent": CodexDialect.key, "pid": thread.pid}}
