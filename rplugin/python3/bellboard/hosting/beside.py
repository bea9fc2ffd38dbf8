"""Run the blocking part of an errand outside the event loop; `Declined` says why it is not done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from ..system.far import Far
from ..system.files import Elsewhere, stay_near
from ..system.mounts import Mounts
from ..system.threads import Thread

DEADLINE: Final = 3.0  # seconds; a check takes 1 ms, or 200 ms in another process

T = TypeVar("T")


class Declined(Exception):
    """The request is not carried out; the text says why."""


async def beside(work: Callable[[], T]) -> T:
    """Run `work` in a daemon thread: reading a foreign file may hang, and must not delay exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(finish: Callable[[Any], None], result: object) -> None:
        if not done.done():
            finish(result)

    def run() -> None:
        try:
            what: tuple[Callable[[Any], None], object] = done.set_result, _reached(work)
        except Exception as error:
            what = done.set_exception, error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, *what)

    Thread(target=run, name="bellboard errand").start()
    try:
        return await asyncio.wait_for(done, DEADLINE)
    except (TimeoutError, asyncio.TimeoutError):
        raise Declined("a folder that this needs does not answer") from None


def _reached(work: Callable[[], T]) -> T:
    stay_near(Mounts())
    try:
        return work()
    except Elsewhere:  # on a mount where even a thread could hang for ever
        far = Far()
        try:
            return far.call(work)
        finally:
            far.close()
