"""Threads that are started from an event loop, and how they call back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

PATIENCE: Final = 2.0  # seconds; a thread runs after 0.1 ms, or some 100 ms under load


class Thread(threading.Thread):
    """A daemon thread.

    Python waits until a new thread says that it runs: forever, if memory ran out just then.  Here
    that raises RuntimeError after a while, as if the system had refused the thread.
    """

    def __init__(
        self, target: Callable[..., object], name: str | None = None, args: tuple[Any, ...] = ()
    ) -> None:
        super().__init__(target=target, name=name, args=args, daemon=True)
        self._started = _Began()


class _Began(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(PATIENCE if timeout is None else timeout):
            raise RuntimeError("a thread did not start")
        return True


def call_in(loop: asyncio.AbstractEventLoop, work: Callable[..., object], *args: Any) -> bool:
    """Call a function in an event loop, from any thread; return False if the loop has ended."""
    try:
        loop.call_soon_threadsafe(work, *args)
    except RuntimeError:
        return False
    return True
