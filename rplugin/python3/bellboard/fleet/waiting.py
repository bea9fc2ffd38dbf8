"""Wait for tasks and events so that no cancellation is lost.

Before Python 3.12 `asyncio.wait_for` swallows one that comes just as what it waits for happens: a
task that should end would then go on, and whoever ended it would wait for it forever.
"""

from __future__ import annotations

import asyncio
from typing import Any


async def is_set(event: asyncio.Event, within: float) -> None:
    """Wait until an event is set, at most this many seconds."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((waiting,), timeout=within)
    finally:
        waiting.cancel()


async def together(tasks: list[asyncio.Future[Any]]) -> None:
    """Wait until one of them fails, end the others, and raise its exception."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:  # only once: a second time would interrupt its cleanup
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
    for result in done:
        if isinstance(result, Exception):
            raise result
