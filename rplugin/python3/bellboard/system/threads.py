"""Threads that are started from an event loop, and how they call back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class Thread(threading.Thread):
    """A daemon thread: a process does not wait for it when it ends."""

    def __init__(
        self, target: Callable[..., object], name: str | None = None, args: tuple[Any, ...] = ()
    ) -> None:
        super().__init__(target=target, name=name, args=args, daemon=True)


def call_in(loop: asyncio.AbstractEventLoop, work: Callable[..., object], *args: Any) -> bool:
    """Call a function in an event loop, from any thread; return False if the loop has ended."""
    try:
        loop.call_soon_threadsafe(work, *args)
    except RuntimeError:
        return False
    return True
