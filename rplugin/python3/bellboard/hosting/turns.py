"""The turns of a host in its event loop: in each, every job is done once, in order.

A turn begins when something wakes it, or when the first job wants to be done again.  Each job is
guarded by itself: one that fails is left alone for a while, and the others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

from .attempts import Attempts

LONGEST: Final = 30.0  # seconds from one turn to the next

#: Its name in health, and what it does; that returns in how many seconds to do it again.
Job = tuple[str, Callable[[], float]]


class Turns:
    """Whatever wakes it before `live` waits for the first turn."""

    def __init__(self, attempt: Attempts) -> None:
        self.is_turning = False
        self._attempt = attempt
        self._jobs: tuple[Job, ...] = ()
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def live(self, jobs: tuple[Job, ...], begin: Callable[[], object]) -> None:
        """Begin, and take turns until stopped."""
        self._jobs, self._loop = jobs, asyncio.get_running_loop()
        self._loop.set_exception_handler(self._failed)
        self._over = self._loop.create_future()
        try:
            begin()
            self.take()
            await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def stop(self) -> None:
        """End at the next occasion; from any thread."""
        self._is_stopped = True
        self.call(self.take)

    def call(self, work: Callable[[], object]) -> None:
        """Do it in the loop, if there is one; from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(work)

    def wake(self) -> None:
        """Take a turn soon."""
        if self._loop is not None:
            self._loop.call_soon(self.take)

    def take(self) -> None:
        """Take a turn now, and set the time of the next."""
        if self._loop is None or self._over is None or self._over.done():
            return
        if self._is_stopped:
            self._over.set_result(None)
            return
        self.is_turning = True
        wait = LONGEST
        try:
            for name, job in self._jobs:
                wait = min(wait, self._attempt(name, "", job))
        except BaseException as e:
            self._over.set_exception(e)
            return
        finally:
            self.is_turning = False
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(wait, 0.0), self.take)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note the failure of a callback of the event loop: a watch, a timer, a task."""
        error = context.get("exception")
        if not isinstance(error, Exception):
            error = RuntimeError(context.get("message"))
        self._attempt.failed("watch", "", error)
