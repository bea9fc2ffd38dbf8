"""Tells that a program has written to its terminal, whoever shows that terminal.

inotify tells of writes to a terminal's device only to those who watch the device itself; its
folder hears nothing of them.  Where there is no inotify, a terminal counts as written to after a
while.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Final

from .inotify import Inotify

LATER: Final = 2.0  # seconds


class Written:
    """Calls `written` in the loop that runs, once for each terminal that was added."""

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
        """Tell of the next thing that is written there."""
        if not tty.startswith("/dev/") or os.path.normpath(tty) != tty:
            return  # a look at any other path may hang
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
        """End it."""
        for timer in self._timers.values():
            timer.cancel()
        if self._inotify is not None:
            self._inotify.close()

    def _heard(self, tty: str) -> None:
        self._timers.pop(tty, None)
        self._written(tty)
