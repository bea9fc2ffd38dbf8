"""The jobs of a host, in its event loop. A failing job is named, waits ever longer, and heals."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from ..system.failures import Backoff, described
from ..system.notes import Notes
from ..system.threads import call_in

# Run tasks that may fail, each on its own: a failed task is reported in health, and retried
# after a pause until it succeeds.


FIRST: Final = 0.25  # seconds until the second try; doubles with each failure
LONGEST_PAUSE: Final = 5.0  # seconds, so that a problem that is gone is noticed soon
SHARE: Final = 20.0  # pause after a slow failure, as a multiple of the time it took
RARELY: Final = 60.0  # seconds; no pause is longer
MOST: Final = 1000  # failing tasks to remember
NAMED: Final = 3  # failing tasks of one job to name in health


def slowly(took: float) -> float:
    """Return the shortest pause after a failure that took so long."""
    return min(SHARE * took, RARELY)


class Attempts:
    """Runs tasks, each identified by its job and its subject."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], tuple[Backoff, str]] = {}  # and why
        self.notes = Notes()  # each failing job, what it fails at, and why

    def __call__(self, job: str, about: str, work: Callable[[], float]) -> float:
        """Run a task unless it has just failed; return the seconds until it is due again."""
        failure = self._failures.get((job, about))
        begun = time.monotonic()
        if failure is not None and begun < failure[0].until:
            return failure[0].until - begun
        try:
            wait = work()
        except Exception as e:
            return self.failed(job, about, e, time.monotonic() - begun)
        if failure is not None:
            self.forget(job, about)
        return wait

    def once(self, job: str, about: str, work: Callable[[], object]) -> None:
        """Run a task once, without retrying; a failure is reported until it succeeds."""
        try:
            work()
        except Exception as e:
            self.failed(job, about, e)
        else:
            self.forget(job, about)

    def failed(self, job: str, about: str, error: Exception, took: float = 0.0) -> float:
        """Note a failure; return the seconds until the next try."""
        backoff = self._failures.pop((job, about), (Backoff(FIRST, LONGEST_PAUSE), ""))[0]
        wait = backoff.fail(slowly(took))
        self._failures[job, about] = backoff, described(error)
        if len(self._failures) > MOST:
            del self._failures[next(iter(self._failures))]
        self._note()
        return wait

    def forget(self, job: str, about: str) -> None:
        """Drop a task: it succeeded, or is no longer needed."""
        if self._failures.pop((job, about), None) is not None:
            self._note()

    def _note(self) -> None:
        found: dict[str, list[str]] = {}
        count: Counter[str] = Counter()
        for (job, about), (_, why) in self._failures.items():
            count[job] += 1
            if count[job] <= NAMED:
                what = f"{about}: {why}" if about else why
                found.setdefault(job, []).append(what)
        for job, some in found.items():
            if (more := count[job] - len(some)) > 0:
                some.append(f"{more} more")
        self.notes.replace({job: f"{'; '.join(some)} (retrying)" for job, some in found.items()})


# The loop of a host: each round runs every job once, in order.
#
# A round starts when something wakes the host, or when a job is due again. A job that fails is
# retried after a pause, and does not stop the others. While there is an obstacle, only the jobs
# that show what is known run: the others access the state folder.


LONGEST_WAIT: Final = 30.0  # seconds from one round to the next
AGAIN: Final = 1.0  # seconds between two checks for an obstacle
MOMENT: Final = 0.2  # seconds in which a process that suspends itself stops
AT_LAST: Final = 0.5  # seconds after which it stops all the same
SHOWING: Final = frozenset(("read", "publish"))

#: A job: its name in health, and a function that runs it and returns the seconds to its next run:
#: NEVER if it only has to run when something wakes the host.
Job = tuple[str, Callable[[], float]]


class Loop:
    """Runs the jobs.  What wakes it before `run` is handled in the first round."""

    def __init__(self, attempt: Attempts, obstacle: Callable[[], str]) -> None:
        self.notes = Notes()
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

    def rest(self) -> None:
        """Wait until nothing runs here, and keep it so for a moment; call this in another thread.

        Whoever suspends this process meanwhile suspends no lock, for which all hosts would wait.
        """
        begun = threading.Event()

        def sleep() -> None:
            begun.set()
            time.sleep(MOMENT)

        if self._loop is not None and call_in(self._loop, sleep):
            begun.wait(AT_LAST)

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
        self._attempt.once("home", "", self._look)
        if "home" in self.notes:
            wait, jobs = AGAIN, tuple(job for job in jobs if job[0] in SHOWING)
        for name, job in jobs:
            wait = min(wait, self._attempt(name, "", job))
        return wait

    def _look(self) -> None:
        """Note the obstacle; if looking for one fails, there is none."""
        if why := self._obstacle():
            self.notes.say("home", why)
        else:
            self.notes.settle("home")

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note that a callback of the event loop failed: a watch, a timer, a task."""
        error = context.get("exception")
        if not isinstance(error, Exception):
            error = RuntimeError(context.get("message"))
        self._attempt.failed("watch", "", error)
