"""Run work that may hang beside the event loop: foreign files, /proc, programs.

A stat of a dead mount never returns, and cannot be cancelled.  So everything that touches foreign
files is a job in a thread, or, where even that thread could not be killed (FUSE), in a process of
its own.  A job that takes too long is abandoned: another thread takes over the rest, and no other
job for that path runs until it returns.  When it does, its result still counts, and the jobs held
back meanwhile run.

The work of a job must be picklable, and must not change shared state.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from ..core.detail import line
from .doer import Doer
from .far import Ended, Far
from .files import Elsewhere, stay_near, touch
from .mounts import Mounts

DEADLINE: Final = 1.0  # seconds; reading a file takes 0.2 ms
STARTS: Final = 10.0  # more seconds if a process has to be started, under load
MOST_STUCK: Final = 12  # hanging threads; beyond that, everything waits for one of them
MOST_HELD: Final = 2000  # jobs to keep for paths that do not answer; a rescan asks again
SLICE: Final = 0.02  # seconds to process results in a row: the event loop is blocked meanwhile
SWITCH: Final = 0.0005  # seconds until a busy thread yields to the event loop
PAUSE: Final = 0.5  # seconds after a failure; doubles with each
LONGEST_PAUSE: Final = 60.0
FORGOTTEN: Final = 300.0  # seconds after which a failure is no longer reported
NEWS: Final = 0.3  # seconds after a result until notes are compared: there may be many results
NAMED: Final = 5  # paths to name in health

T = TypeVar("T")


@dataclass(slots=True)
class _Job:
    path: str
    work: Callable[[], Any]
    then: Callable[[Any], None]
    key: str
    where: Callable[[], str] | None
    lane: str
    patience: float


class _Slow(NamedTuple):
    """A lane other than the default one."""

    ask: Callable[[_Job], None]
    name: str
    patience: float

    def do(
        self,
        path: str,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        key: str = "",
        where: Callable[[], str] | None = None,
    ) -> None:
        self.ask(_Job(path, work, then, key or path, where, self.name, self.patience))

    def lane(self, name: str, patience: float) -> Doer:
        return _Slow(self.ask, name, patience)


class _Worker:
    """A thread of a lane, and its current job."""

    def __init__(self, lane: _Lane) -> None:
        self.lane = lane
        self.job: _Job | None = None
        self.begun = 0.0
        self.far: Far | None = None


class _Lane:
    """A queue and its thread; an abandoned thread no longer belongs to it."""

    def __init__(self) -> None:
        self.ready = threading.Condition()
        self.waiting: dict[str, _Job] = {}
        self.worker: _Worker | None = None


class Reach:
    """Runs jobs by lane: those of one lane in order, one at a time.

    `changed` is called when something starts to hang, or answers again.
    """

    def __init__(
        self,
        changed: Callable[[], None] = lambda: None,
        mounts: Mounts | None = None,
        modules: Collection[str] = (),
    ) -> None:
        self._changed = changed
        self._mounts = mounts or Mounts()
        self._shared: set[int] = set()
        self._modules = modules  # that a process of its own imports
        self._lanes: dict[str, _Lane] = {}
        self._stuck: dict[_Worker, tuple[_Job, float]] = {}  # and since what time
        self._dead: set[str] = set()  # mounts
        self._held: dict[str, _Job] = {}
        self._failed: dict[str, tuple[int, float, str]] = {}  # key → count, retry time, message
        self._done: deque[tuple[_Worker, _Job, Any, Exception | None]] = deque()
        self._called = self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._heeded: Callable[[], Mapping[str, str]] | None = None
        self._heard: Mapping[str, str] = {}
        self._news: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def do(
        self,
        path: str,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        key: str = "",
        where: Callable[[], str] | None = None,
    ) -> None:
        """See `Doer`.  A job that fails is reported in health, and not run again for a while."""
        self._ask(_Job(path, work, then, key or path, where, "", DEADLINE))

    def lane(self, name: str, patience: float) -> Doer:
        """See `Doer`."""
        return _Slow(self._ask, name, patience)

    def _ask(self, job: _Job) -> None:
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
        lane = self._lanes.setdefault(job.lane, _Lane())
        with lane.ready:
            lane.waiting[job.key] = job
            lane.ready.notify()
        if lane.worker is None:
            self._start(lane)
        if self._timer is None:
            self._timer = self._loop.call_later(DEADLINE / 4, self._inspect)

    @property
    def is_at_rest(self) -> bool:
        """Return whether there is no work left except what hangs."""
        lanes = self._lanes.values()
        busy = any(lane.waiting or (lane.worker and lane.worker.job) for lane in lanes)
        return not (busy or self._done)

    @property
    def notes(self) -> dict[str, str]:
        """Return what does not answer and what cannot be read, for health."""
        notes: dict[str, str] = {}
        if self._stuck:
            since = min(t for _, t in self._stuck.values())
            paths = sorted({job.path for job, _ in self._stuck.values()})
            clock = time.strftime("%H:%M:%S", time.localtime(since))
            notes["unreachable"] = (
                f"does not answer since {clock}: {_some([*sorted(self._dead), *paths])}; "
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
        self._shared.add(descriptor)

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
            with lane.ready:
                lane.waiting.clear()
                lane.worker = None
                lane.ready.notify_all()

    # ------------------------------------------------------------ on the threads

    def _start(self, lane: _Lane) -> None:
        if len(self._stuck) < MOST_STUCK:
            lane.worker = _Worker(lane)
            name = "bellboard reach"
            threading.Thread(target=self._run, args=(lane.worker,), name=name, daemon=True).start()

    def _run(self, worker: _Worker) -> None:
        stay_near(self._mounts)
        while (job := self._next(worker)) is not None:
            result, error = None, None
            try:
                result = self._work(worker, job)
            except Exception as e:  # any kind: it concerns this job only
                error = e
            self._done.append((worker, job, result, error))
            if not self._called and self._loop is not None:
                self._called = True
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._deliver)
        if worker.far is not None:
            worker.far.close()

    def _next(self, worker: _Worker) -> _Job | None:
        """Wait for the next job; return None if another worker has taken over the lane."""
        lane = worker.lane
        with lane.ready:
            worker.job = None
            while lane.worker is worker and not lane.waiting:
                lane.ready.wait()
            if lane.worker is not worker:
                return None
            worker.begun = time.monotonic()
            worker.job = job = lane.waiting.pop(next(iter(lane.waiting)))
            return job

    def _work(self, worker: _Worker, job: _Job) -> Any:
        try:
            touch(job.path)
            return job.work()
        except Elsewhere:
            if worker.far is None:
                worker.begun += STARTS
                worker.far = Far(self._shared, self._modules)
                worker.begun = time.monotonic()
            try:
                return worker.far.call(job.work)
            except Ended:
                worker.far = None
                raise

    # ------------------------------------------------------------ in the event loop

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
            worker = lane.worker
            with lane.ready:
                job = worker.job if worker is not None else None
                is_late = job is not None and worker and now > worker.begun + job.patience
                if is_late:
                    lane.worker = None
            if is_late and worker is not None and job is not None:
                self._give_up(worker, job)
            if lane.waiting and lane.worker is None:
                self._start(lane)
        if self._loop is not None and not self.is_at_rest:
            self._timer = self._loop.call_later(DEADLINE / 4, self._inspect)

    def _give_up(self, worker: _Worker, job: _Job) -> None:
        job.path = job.where() if job.where is not None else job.path
        self._stuck[worker] = job, time.time()
        self._count_dead()
        for lane in self._lanes.values():
            with lane.ready:
                hang = [j for j in lane.waiting.values() if self._hangs(j.path)]
                for one in hang:
                    del lane.waiting[one.key]
            for one in hang:
                self._hold(one)
        self._changed()

    def _returned(self, worker: _Worker) -> None:
        del self._stuck[worker]
        self._count_dead()
        held, self._held = self._held, {}
        for one in held.values():
            self._ask(one)
        for lane in self._lanes.values():
            if lane.waiting and lane.worker is None:
                self._start(lane)
        self._changed()

    def _count_dead(self) -> None:
        """Treat a mount as dead if two jobs hang in it."""
        mounts = [self._mounts.hanging(job.path) for job, _ in self._stuck.values()]
        places = [mount.place for mount in mounts if mount]
        self._dead = {place for place in places if places.count(place) > 1}

    def _hangs(self, path: str) -> bool:
        """Return whether a path is, or is inside, something that does not answer."""
        if self._dead and (mount := self._mounts.hanging(path)) and mount.place in self._dead:
            return True
        places = (job.path for job, _ in self._stuck.values())
        return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)

    def _hold(self, job: _Job) -> None:
        self._held.pop(job.key, None)
        self._held[job.key] = job
        if len(self._held) > MOST_HELD:
            del self._held[next(iter(self._held))]

    def _fail(self, job: _Job, error: Exception) -> None:
        count = self._failed.pop(job.key, (0, 0.0, ""))[0] + 1
        pause = min(PAUSE * 2.0 ** min(count, 10), LONGEST_PAUSE)
        what = line(f"{job.path}: {type(error).__name__}: {error}", 300)
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
