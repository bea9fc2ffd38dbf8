"""Queues of jobs, and the threads that run them: those of one lane in order, one at a time.

A thread whose job hangs is abandoned: it no longer belongs to the lane, which gets another one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .doer import Job
from .files import MayHang, stay_near, touch
from .mounts import Mounts
from .separate import Ended, Separate
from .threads import Thread

STARTS: Final = 10.0  # more seconds if a process has to be started, under load
TOGETHER: Final = 0.001  # seconds in which results are collected while there is more to do


class Done(NamedTuple):
    """A job that returned."""

    worker: Worker
    job: Job
    result: Any
    error: Exception | None


@dataclass
class Around:
    """What the threads of all lanes share.

    `notify` is called in a thread when there are results to take, but not after each of many quick
    jobs: waking the event loop for one costs as much as the job itself.
    """

    mounts: Mounts
    modules: Collection[str]  # to import in a process that runs jobs
    notify: Callable[[], None]
    done: deque[Done] = field(default_factory=deque)
    shared: set[int] = field(default_factory=set)  # descriptors to keep open in such a process


class Lane:
    """A queue and its thread."""

    def __init__(self, around: Around) -> None:
        self.ready = threading.Condition()
        self.waiting: dict[str, Job] = {}
        self.worker: Worker | None = None
        self._around = around

    @property
    def is_busy(self) -> bool:
        """Return whether a job is queued or running; one that hangs does not count."""
        with self.ready:  # a thread is taking the next one
            return bool(self.waiting or (self.worker and self.worker.job))

    def put(self, job: Job) -> None:
        """Queue a job, in place of one with the same key."""
        with self.ready:
            self.waiting[job.key] = job
            self.ready.notify()

    def start(self) -> None:
        """Start a thread."""
        worker = Worker(self, self._around)
        self.worker = worker  # first: it ends if it is not the lane's
        try:
            Thread(worker.run, "bellboard reach").start()
        except RuntimeError:  # no thread, no memory: the next job tries again
            self.worker = None
            raise

    def abandon(self, now: float) -> tuple[Worker, Job] | None:
        """Give up the thread if its job takes too long; return both."""
        with self.ready:
            worker = self.worker
            job = worker.job if worker is not None else None
            if worker is None or job is None or now <= worker.begun + job.patience:
                return None
            self.worker = None
            return worker, job

    def remove(self, hangs: Callable[[str], bool]) -> list[Job]:
        """Remove the jobs for paths that hang, and return them."""
        with self.ready:
            found = [job for job in self.waiting.values() if hangs(job.path)]
            for job in found:
                del self.waiting[job.key]
        return found

    def close(self) -> None:
        """End the thread after its job."""
        with self.ready:
            self.waiting.clear()
            self.worker = None
            self.ready.notify_all()


class Worker:
    """A thread of a lane, and its current job."""

    def __init__(self, lane: Lane, around: Around) -> None:
        self.job: Job | None = None
        self.begun = 0.0
        self._lane, self._around = lane, around
        self._separate: Separate | None = None
        self._pending = 0.0  # since when there are results without a call of `notify`

    def run(self) -> None:
        """Run the jobs of the lane until another worker has taken over."""
        stay_near(self._around.mounts)
        while (job := self._next()) is not None:
            result, error = None, None
            try:
                result = self._work(job)
            except Exception as e:  # any kind: it concerns this job only
                error = e
            self._around.done.append(Done(self, job, result, error))
            now = time.monotonic()
            self._pending = self._pending or now
            if now > self._pending + TOGETHER:
                self._notify()
        if self._separate is not None:
            self._separate.close()

    def _notify(self) -> None:
        if self._pending:
            self._pending = 0.0
            self._around.notify()

    def _next(self) -> Job | None:
        """Wait for the next job; return None if another worker has taken over the lane."""
        lane = self._lane
        with lane.ready:
            self.job = None
            while not lane.waiting or lane.worker is not self:
                self._notify()
                if lane.worker is not self:
                    return None
                lane.ready.wait()
            self.begun = time.monotonic()
            self.job = job = lane.waiting.pop(next(iter(lane.waiting)))
            return job

    def _work(self, job: Job) -> Any:
        try:
            touch(job.path)
            return job.work()
        except MayHang:
            self._notify()
            if self._separate is None:
                self.begun += STARTS
                self._separate = Separate(self._around.shared, self._around.modules)
                self.begun = time.monotonic()
            try:
                return self._separate.call(job.work)
            except Ended:
                self._separate = None
                raise
