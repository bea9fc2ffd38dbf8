"""Threads that are started from an event loop, and how they call back."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

RUNNING: Final[set[Thread]] = set()


class Thread:
    """A thread for which nobody waits when it starts, nor when the process ends.

    threading.Thread waits until the new thread runs: forever, if it has no memory to begin.
    """

    def __init__(
        self, target: Callable[..., object], name: str = "", args: tuple[Any, ...] = ()
    ) -> None:
        self.name = name
        self._target, self._args = target, args
        self._is_over = threading.Event()

    def start(self) -> None:
        """Begin soon; raise RuntimeError if the system has no thread to spare."""
        _thread.start_new_thread(self._run, ())

    def is_alive(self) -> bool:
        """Return whether it has begun, and not ended."""
        return self in RUNNING

    def join(self, patience: float) -> None:
        """Wait until it has ended."""
        self._is_over.wait(patience)

    def _run(self) -> None:
        RUNNING.add(self)
        try:
            self._target(*self._args)
        finally:
            RUNNING.discard(self)
            self._is_over.set()


def call_in(loop: asyncio.AbstractEventLoop, work: Callable[..., object], *args: Any) -> bool:
    """Call a function in an event loop, from any thread; return False if the loop has ended."""
    try:
        loop.call_soon_threadsafe(work, *args)
    except RuntimeError:
        return False
    return True
