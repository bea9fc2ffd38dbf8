"""Report when a program writes to its terminal, whichever program shows that terminal.

inotify reports writes to a terminal only if the device itself is watched, not its folder.  Without
inotify, a terminal counts as written to after a while.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from typing import Final

from .inotify import Inotify

LATER: Final = 2.0  # seconds
TERMINAL: Final = re.compile(r"/dev/(?:pts/[0-9]+|tty[A-Za-z0-9]+)", re.ASCII)


class Written:
    """Calls `written` in the event loop, once for each added terminal."""

    def __init__(self, written: Callable[[str], None]) -> None:
        self._written = written
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._inotify: Inotify | None = None
        if sys.platform == "linux":
            try:
                self._inotify = Inotify(lambda entries: None, self._heard)
            except (OSError, AttributeError):  # no instances left
                self._inotify = None

    def add(self, tty: str) -> None:
        """Report the next write to a terminal."""
        if not TERMINAL.fullmatch(tty):
            return  # any other path may hang, or lead elsewhere
        if self._inotify is not None:
            try:
                self._inotify.add_once(tty)
            except OSError:  # no watches left
                pass
            else:
                return
        if tty not in self._timers:
            self._timers[tty] = self._loop.call_later(LATER, self._heard, tty)

    def close(self) -> None:
        """Stop watching."""
        for timer in self._timers.values():
            timer.cancel()
        if self._inotify is not None:
            self._inotify.close()

    def _heard(self, tty: str) -> None:
        self._timers.pop(tty, None)
        self._written(tty)
