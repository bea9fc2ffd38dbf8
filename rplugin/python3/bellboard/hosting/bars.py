"""The status in tmux: a user option of each server that asked for it, kept true by every host.

`bellboard tmux --apply` asks, by the server's socket in the shared option `bars`.  A host never
waits for a server.  Hosts say the same, so it does not matter which of them comes last, nor which
dies.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial
from typing import Final

from ..core import words
from ..core.published import Published
from ..system.doer import Doer
from ..system.tmux import DEAF, Tmux

OPTION: Final = "@bellboard-status"
ASKED: Final = "bars"  # the name of the shared option
OFTEN: Final = 1.0  # seconds from one look to the next
RARELY: Final = 30.0
LONGEST: Final = 10.0  # seconds that a server may take for one option


class Bars:
    """Tells servers the status when its words have changed."""

    def __init__(self, reach: Doer) -> None:
        self._reach = reach.lane("bars", LONGEST)
        self._told: dict[str, str] = {}
        self._telling: set[str] = set()
        self._deaf: dict[str, float] = {}  # server → until when it is left alone
        self._last = -OFTEN

    def early(self) -> float:
        """How long until servers may be told again."""
        return self._last + OFTEN - time.monotonic()

    def tell(self, asked: object, sessions: Collection[Published], now: float) -> float:
        """Let each server that asked show what is true now; in how many seconds to come again."""
        self._last = time.monotonic()
        sockets = [x for x in asked if isinstance(x, str)] if isinstance(asked, list) else []
        if not sockets:
            return RARELY
        text = words.status_text(sessions, now)
        wait = min([RARELY, *(words.age_changes(p["since"], now) - now for p in sessions)])
        for socket in sockets:
            if self._told.get(socket) == text or self._last < self._deaf.get(socket, 0.0):
                continue
            if socket in self._telling:
                wait = OFTEN
                continue
            self._telling.add(socket)
            then = partial(self._has_told, socket, text)
            self._reach.do(socket, partial(show, socket, text), then, key=f"bar of {socket}")
        return max(OFTEN, wait)

    def _has_told(self, socket: str, text: str, was_heard: bool) -> None:
        self._telling.discard(socket)
        if was_heard:
            self._told[socket] = text
            self._deaf.pop(socket, None)
        else:
            self._deaf[socket] = time.monotonic() + DEAF


def show(socket: str, text: str) -> bool:
    """Have a server show that; False if it does not listen now."""
    tmux = Tmux(socket)
    return tmux.set_option(OPTION, text) or tmux.is_gone
