"""The status in tmux: a user option that every host updates, in each server that asked for it.

`bellboard tmux --apply` adds the server's socket to the shared option `bars`.  A host never waits
for a server.  All hosts set the same text, so it does not matter which one is last, or which dies.
The last one that stops removes the text, which would no longer become true.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from functools import partial
from typing import Any, Final

from ..core import words
from ..core.deadlines import NEVER
from ..core.published import Published
from ..core.untrusted import list_of
from ..storage.hosts import Hosts
from ..storage.store import ICONS, Store
from ..system.reach import Rounds, reach
from ..system.tmux import DEAF, Tmux
from .connection import Connection

OPTION: Final = "@bellboard-status"
ASKED: Final = "bars"  # the name of the shared option
OFTEN: Final = 1.0  # seconds between two updates
PATIENCE: Final = 10.0  # seconds for a server to set an option


class Bars:
    """Sets the status in servers when its text has changed."""

    def __init__(self) -> None:
        self._rounds = Rounds()
        self._set: dict[str, str] = {}  # server → the text it has
        self._setting: set[str] = set()  # servers that are being set
        self._deaf: dict[str, float] = {}  # server → when to try again
        self._last = -OFTEN

    def run(
        self, connection: Connection, config: dict[str, Any], sessions: Collection[Published]
    ) -> float:
        """Set the status in each server that asked; return the seconds until the next call."""
        if (early := self._last + OFTEN - time.monotonic()) > 0:
            return early
        asked = icons = None
        with connection.use() as shared:
            if shared is not None:
                asked, icons = _wanted(config, shared.store)
        return self._update(asked, icons, sessions, time.time())

    def leave(self, hosts: Hosts) -> None:
        """Remove the status if no host is left to update it; wait for no server."""
        sockets = {*self._set, *self._setting}  # one that is being set may still get its text
        if sockets and not hosts.alive():
            for socket in sockets:
                Tmux(socket).tell("set-option", "-gqu", OPTION)

    def _update(
        self, asked: object, icons: object, sessions: Collection[Published], now: float
    ) -> float:
        self._last = time.monotonic()
        sockets = [x for x in list_of(asked) if isinstance(x, str)]
        if not sockets:
            return NEVER
        text = words.status_text(sessions, now, icons=words.icons_of(icons))
        wait = min((words.age_changes(p["since"], now) - now for p in sessions), default=NEVER)
        for socket in sockets:
            if self._set.get(socket) == text or self._last < self._deaf.get(socket, 0.0):
                continue
            if socket in self._setting:
                wait = OFTEN
                continue
            self._rounds.run(f"bar of {socket}", partial(self._show, socket, text))
        return max(OFTEN, wait)

    async def _show(self, socket: str, text: str) -> None:
        self._setting.add(socket)
        try:
            succeeded = await reach(partial(show, socket, text), socket, PATIENCE)
        finally:
            self._setting.discard(socket)
        if succeeded:
            self._set[socket] = text
            self._deaf.pop(socket, None)
        else:
            self._deaf[socket] = time.monotonic() + DEAF


def show(socket: str, text: str) -> bool:
    """Set the status in a server; return False if it does not respond."""
    tmux = Tmux(socket)
    return tmux.set_option(OPTION, text) or tmux.is_gone


def _wanted(config: dict[str, Any], store: Store) -> tuple[object, object]:
    """Share the icons that our editor chose; return which servers want a status, and its icons."""
    chosen = config.pop("icons", None)
    if chosen is not None and chosen != store.option(ICONS):
        with store.transaction() as tx:
            tx.set_option(ICONS, chosen, os.getpid(), time.time())
    return store.option(ASKED), store.option(ICONS)
