"""Observe GitHub Copilot CLI: the logs of its sessions, and which of them are open, and work.

Only the list of open sessions shows that Esc stopped it between two tries of a failed call: then it
no longer works.  That counts only after a while, as its log may still say how the turn ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Final

from ...core.finding import Finding
from ...core.rules.steps import is_alone
from ...core.session import Session
from ..agent import Means
from ..tailing import LogWitness
from .dialect.spoken import CopilotDialect
from .opened import LIST, Opened, folder_of, log_of, opened_in

WATCHES: Final = "copilot"
SETTLE: Final = 0.25  # seconds; its log is written up to that late


class CopilotWitness(LogWitness):
    """See `Witness`."""

    def __init__(self, means: Means) -> None:
        super().__init__(means, CopilotDialect())
        self._means, self._generation = means, means.generation
        self._folder = folder_of(dict(means.environ))
        self._list = f"{self._folder}/{LIST}"
        self._sessions: dict[str, Session] = {}
        self._left = ""  # the session that ended last
        self._working: set[str] = set()  # sessions of which the list says that they work
        self._timer: asyncio.TimerHandle | None = None
        means.watched.need(self._list, WATCHES, "")

    def attend(self, s: Session) -> None:
        """Follow its log, unless neither a hook nor the list says that it does anything."""
        sid = s.session_id
        self._sessions[sid] = s
        if is_alone(s) and sid not in self._working:
            return
        self.following.attend(s, self._folder, partial(log_of, self._folder, sid))

    def leave(self, sid: str) -> None:
        self._working.discard(sid)
        super().leave(sid)
        if self._sessions.pop(sid, None) is not None:
            self._left = sid
            self._look()  # after /clear, its process has another one

    def changed(self, paths: Collection[str]) -> None:
        super().changed(paths)
        if self._list in paths:
            self._look()

    def rescan(self) -> None:
        super().rescan()
        self._look()

    def renew(self, generation: str) -> None:
        self._generation = generation

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._means.reach.do(self._list, partial(opened_in, self._folder), self._saw)

    def _saw(self, found: list[Opened]) -> None:
        began = {each.session_id for each in found if each.works} - self._working
        self._working = {each.session_id for each in found if each.works}
        for each in found:
            if each.session_id not in self._sessions:
                key = f"{each.session_id} {each.pid} {self._generation} {self._left}"
                self._report(each, {"sessionId": each.session_id}, key)
            elif self._sessions[each.session_id].retrying and not each.works:
                self._stopped(each)
        for sid in began & self._sessions.keys():
            self.attend(self._sessions[sid])

    def _stopped(self, opened: Opened) -> None:
        """Report that it no longer tries again, or look later."""
        late = SETTLE - abs(self._means.clock() - opened.since)
        if late > 0:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(late, self._look)
        elif opened.since:
            record = {"sessionId": opened.session_id, "restsSince": opened.since}
            self._report(opened, record, f"{opened.session_id} rests {opened.since}")

    def _report(self, opened: Opened, record: dict[str, object], key: str) -> None:
        given = {"pid": opened.pid, "agent": CopilotDialect.key, "discovered": True}
        line = {"t": self._means.clock(), "registry": {**given, "record": record}}
        self._means.report(Finding(line, f"copilot {key}"))
