"""Run work that may hang outside the event loop: foreign files, /proc, programs."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from ..core.text import line
from .failures import described
from .files import MayHang, stay_near, touch
from .mounts import MOUNTS, Mounts
from .separate import Ended, Separate
from .threads import Thread, call_in

# How to run work that may hang: in threads outside the event loop (`reach.py`), or at once.


DEADLINE: Final = 1.0  # seconds; reading a file takes 0.2 ms

T = TypeVar("T")


@dataclass(slots=True)
class Job:
    """Work on a path, and who takes its result."""

    path: str
    work: Callable[[], Any]
    then: Callable[[Any], None]
    key: str
    where: Callable[[], str] | None
    lane: str = ""
    patience: float = DEADLINE  # seconds until it counts as hanging


class Doer(ABC):
    """Runs work at some time, and passes its result to `then` in the event loop."""

    def do(
        self,
        path: str,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        key: str = "",
        where: Callable[[], str] | None = None,
    ) -> None:
        """Queue work on a path; `where` returns the current path of work that touches many.

        Of several jobs with the same key, only the newest is run.
        """
        self.take(Job(path, work, then, key or path, where))

    @abstractmethod
    def take(self, job: Job) -> None:
        """Run a job, or queue it."""

    @abstractmethod
    def lane(self, name: str, patience: float) -> Doer:
        """Return a queue of its own, for work that takes longer."""


class AtOnce(Doer):
    """Runs work at once, without a deadline: for our own files, and where nothing else waits."""

    def take(self, job: Job) -> None:
        """Run a job."""
        job.then(job.work())

    def lane(self, name: str, patience: float) -> Doer:
        """Return this one: nothing is queued."""
        return self


# Queues of jobs, and the threads that run them: those of one lane in order, one at a time.
#
# A thread whose job hangs is abandoned: it no longer belongs to the lane, which gets another
# one.


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


# Run work that may hang outside the event loop: foreign files, /proc, programs.
#
# A stat of a dead mount never returns, and cannot be cancelled. So everything that touches
# foreign files is a job in a thread, or, where even that thread could not be killed (FUSE), in
# a process of its own. A job that takes too long is abandoned: another thread takes over the
# rest, and no other job for that path runs until it returns. When it does, its result still
# counts, and the jobs held back meanwhile run.
#
# The work of a job must be picklable, and must not change shared state.


MOST_STUCK: Final = 12  # hanging threads; beyond that, everything waits for one of them
MOST_HELD: Final = 2000  # jobs to keep for paths that do not respond; a rescan asks again
SLICE: Final = 0.02  # seconds to process results in a row: the event loop is blocked meanwhile
SWITCH: Final = 0.0005  # seconds until a busy thread yields to the event loop
PAUSE: Final = 0.5  # seconds after a failure; doubles with each
LONGEST_PAUSE: Final = 60.0
FORGOTTEN: Final = 300.0  # seconds after which a failure is no longer reported
NEWS: Final = 0.3  # seconds after a result until notes are compared: there may be many results
NAMED: Final = 5  # paths to name in health


class _Slow(Doer):
    """A lane other than the default one."""

    def __init__(self, reach: Reach, name: str, patience: float) -> None:
        self._reach, self._name, self._patience = reach, name, patience

    def take(self, job: Job) -> None:
        job.lane, job.patience = self._name, self._patience
        self._reach.take(job)

    def lane(self, name: str, patience: float) -> Doer:
        return self._reach.lane(name, patience)


class Reach(Doer):
    """Runs jobs by lane: those of one lane in order, one at a time.

    `changed` is called when something starts to hang, or responds again.
    """

    def __init__(
        self, changed: Callable[[], None] = lambda: None, modules: Collection[str] = ()
    ) -> None:
        self._changed = changed
        self._around = Around(MOUNTS, modules, self._wake)
        self._lanes: dict[str, Lane] = {}
        self._stuck: dict[Worker, tuple[Job, float]] = {}  # and since what time
        self._dead: set[str] = set()  # mounts
        self._held: dict[str, Job] = {}
        self._failed: dict[str, tuple[int, float, str]] = {}  # key → count, retry time, message
        self._done = self._around.done
        self._called = self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._heeded: Callable[[], Mapping[str, str]] | None = None
        self._heard: Mapping[str, str] = {}
        self._news: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def lane(self, name: str, patience: float) -> Doer:
        """See `Doer`."""
        return _Slow(self, name, patience)

    def take(self, job: Job) -> None:
        """Queue a job.  One that fails is reported in health, and not run again for a while."""
        if self._closed:
            return
        if self._failed and self._is_let_be(job.key):
            return
        if self._stuck and self._hangs(job.path):
            self._hold(job)
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            sys.setswitchinterval(SWITCH)
        lane = self._lanes.get(job.lane)
        if lane is None:
            lane = self._lanes[job.lane] = Lane(self._around)
        lane.put(job)
        if lane.worker is None:
            self._start(lane)
        if self._timer is None:
            self._timer = self._loop.call_later(DEADLINE / 4, self._inspect)

    @property
    def is_at_rest(self) -> bool:
        """Return whether there is no work left except what hangs."""
        is_busy = any(lane.is_busy for lane in self._lanes.values())  # first: it becomes a result
        return not (is_busy or self._done)

    @property
    def notes(self) -> dict[str, str]:
        """Return what does not respond and what cannot be read, for health."""
        notes: dict[str, str] = {}
        if self._stuck:
            since = min(t for _, t in self._stuck.values())
            paths = sorted({job.path for job, _ in self._stuck.values()})
            clock = time.strftime("%H:%M:%S", time.localtime(since))
            notes["unreachable"] = (
                f"does not respond (since {clock}): {_some([*sorted(self._dead), *paths])}; "
                "ignored until it does"
            )
            if len(self._stuck) >= MOST_STUCK:
                notes["unreachable"] += f"; everything else waits too: {MOST_STUCK} threads hang"
        if self._failed:
            until = time.monotonic() - FORGOTTEN
            self._failed = {k: f for k, f in self._failed.items() if f[1] > until}
            if self._failed:
                notes["unreadable"] = _some([what for _, _, what in self._failed.values()])
        return notes

    def share(self, descriptor: int) -> None:
        """Keep a descriptor open in every process that runs jobs."""
        self._around.shared.add(descriptor)

    def heed(self, notes: Callable[[], Mapping[str, str]]) -> None:
        """Also call `changed` soon after results have changed these notes."""
        self._heeded = notes

    def close(self) -> None:
        """Stop: nothing is called after this, and no thread delays the exit."""
        self._closed = True
        for timer in (self._timer, self._news):
            if timer is not None:
                timer.cancel()
        for lane in self._lanes.values():
            lane.close()

    def _wake(self) -> None:
        """Note, in a thread, that there are results."""
        if not self._called and self._loop is not None:
            self._called = True
            call_in(self._loop, self._deliver)

    # ------------------------------------------------------------ in the event loop

    def _start(self, lane: Lane) -> None:
        if len(self._stuck) < MOST_STUCK:
            lane.start()

    def _deliver(self) -> None:
        self._called = False
        if self._heeded is not None and self._news is None and self._loop is not None:
            self._news = self._loop.call_later(NEWS, self._hear, self._heeded)
        until = time.monotonic() + SLICE
        while self._done and not self._closed:
            worker, job, result, error = self._done.popleft()
            if error is None:
                try:
                    job.then(result)
                except Exception as e:
                    error = e
            if error is not None:
                self._fail(job, error)
            else:
                self._failed.pop(job.key, None)
            if worker in self._stuck:
                self._returned(worker)
            if time.monotonic() > until and self._done and not self._called:
                self._called = True
                assert self._loop is not None
                self._loop.call_soon(self._deliver)
                return

    def _hear(self, heeded: Callable[[], Mapping[str, str]]) -> None:
        self._news = None
        before, self._heard = self._heard, heeded()
        if before != self._heard:
            self._changed()

    def _inspect(self) -> None:
        """Abandon jobs that take too long, and go on with the rest."""
        now = time.monotonic()
        self._timer = None
        for lane in self._lanes.values():
            if (late := lane.abandon(now)) is not None:
                self._give_up(*late)
            if lane.waiting and lane.worker is None:
                self._start(lane)
        if self._done and not self._called:  # a hanging job may have delayed them
            self._deliver()
        if self._loop is not None and not self.is_at_rest:
            self._timer = self._loop.call_later(DEADLINE / 4, self._inspect)

    def _give_up(self, worker: Worker, job: Job) -> None:
        job.path = job.where() if job.where is not None else job.path
        self._stuck[worker] = job, time.time()
        self._count_dead()
        for lane in self._lanes.values():
            for one in lane.remove(self._hangs):
                self._hold(one)
        self._changed()

    def _returned(self, worker: Worker) -> None:
        del self._stuck[worker]
        self._count_dead()
        held, self._held = self._held, {}
        for one in held.values():
            self.take(one)
        for lane in self._lanes.values():
            if lane.waiting and lane.worker is None:
                self._start(lane)
        self._changed()

    def _count_dead(self) -> None:
        """Treat a mount as dead if two jobs hang in it."""
        mounts = [MOUNTS.hanging(job.path) for job, _ in self._stuck.values()]
        places = [mount.place for mount in mounts if mount]
        self._dead = {place for place in places if places.count(place) > 1}

    def _hangs(self, path: str) -> bool:
        """Return whether a path is, or is inside, something that does not respond."""
        if self._dead and (mount := MOUNTS.hanging(path)) and mount.place in self._dead:
            return True
        places = (job.path for job, _ in self._stuck.values())
        return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)

    def _hold(self, job: Job) -> None:
        self._held.pop(job.key, None)
        self._held[job.key] = job
        if len(self._held) > MOST_HELD:
            del self._held[next(iter(self._held))]

    def _fail(self, job: Job, error: Exception) -> None:
        count = self._failed.pop(job.key, (0, 0.0, ""))[0] + 1
        pause = min(PAUSE * 2.0 ** min(count, 10), LONGEST_PAUSE)
        what = line(f"{job.path or job.key}: {described(error)}", 300)
        self._failed[job.key] = count, time.monotonic() + pause, what
        if count == 1:
            self._changed()

    def _is_let_be(self, key: str) -> bool:
        failed = self._failed.get(key)
        return failed is not None and time.monotonic() < failed[1]


def _some(names: list[str]) -> str:
    """Join the first names, and say how many more there are."""
    more = len(names) - NAMED
    return ", ".join(line(n, 300) for n in names[:NAMED]) + (
        f" and {more} more" if more > 0 else ""
    )
