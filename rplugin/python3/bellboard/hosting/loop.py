"""The loop of a host: each round runs every job once, in order.

A round starts when something wakes the host, or when a job is due again.  A job that fails is
retried after a pause, and does not stop the others.  While there is an obstacle, only the jobs that
show what is known run: the others access the state folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from ..system.threads import call_in
from .attempts import Attempts

LONGEST_WAIT: Final = 30.0  # seconds from one round to the next
AGAIN: Final = 1.0  # seconds between two checks for an obstacle
SHOWING: Final = frozenset(("read", "publish"))

#: Its name in health, and a function that runs it and returns the seconds until it is due again:
#: NEVER if it only has to run when something wakes the host.
Job = tuple[str, Callable[[], float]]


class Loop:
    """Runs the jobs.  What wakes it before `run` is handled in the first round."""

    def __init__(self, attempt: Attempts, obstacle: Callable[[], str]) -> None:
        self.notes: dict[str, str] = {}  # for health
        self.is_running = False
        self._attempt, self._obstacle = attempt, obstacle
        self._jobs: tuple[Job, ...] = ()
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, jobs: tuple[Job, ...], begin: Callable[[], object]) -> None:
        """Call `begin`, then run rounds until stopped."""
        self._jobs, self._loop = jobs, asyncio.get_running_loop()
        self._loop.set_exception_handler(self._failed)
        self._over = self._loop.create_future()
        try:
            begin()
            self.round()
            await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def stop(self) -> None:
        """Stop before the next round; may be called from any thread."""
        self._is_stopped = True
        self.call(self.round)

    def call(self, work: Callable[[], object]) -> None:
        """Call a function in the event loop, if it runs; may be called from any thread."""
        if self._loop is not None:
            call_in(self._loop, work)

    def wake(self) -> None:
        """Run a round soon."""
        if self._loop is not None:
            self._loop.call_soon(self.round)

    def round(self) -> None:
        """Run a round now, and schedule the next."""
        if self._loop is None or self._over is None or self._over.done():
            return
        if self._is_stopped:
            self._over.set_result(None)
            return
        self.is_running = True
        try:
            wait = self._run_jobs()
        except BaseException as e:
            self._over.set_exception(e)
            return
        finally:
            self.is_running = False
        self.run_in(wait)

    def run_in(self, seconds: float) -> None:
        """Run the next round after this time, unless something wakes the host before."""
        if self._timer is not None:
            self._timer.cancel()
        if self._loop is not None:
            self._timer = self._loop.call_later(max(seconds, 0.0), self.round)

    def _run_jobs(self) -> float:
        """Run the jobs; return the seconds until the first is due again."""
        wait, jobs = LONGEST_WAIT, self._jobs
        self.notes.clear()
        self._attempt.once("home", "", self._look)
        if "home" in self.notes:
            wait, jobs = AGAIN, tuple(job for job in jobs if job[0] in SHOWING)
        for name, job in jobs:
            wait = min(wait, self._attempt(name, "", job))
        return wait

    def _look(self) -> None:
        """Note the obstacle; if looking for one fails, there is none."""
        if why := self._obstacle():
            self.notes["home"] = why

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note that a callback of the event loop failed: a watch, a timer, a task."""
        error = context.get("exception")
        if not isinstance(error, Exception):
            error = RuntimeError(context.get("message"))
        self._attempt.failed("watch", "", error)
