"""Run work that may hang outside the event loop: foreign files, /proc, programs.

A stat of a dead mount never returns, and cannot be cancelled.  So everything that touches foreign
files is a job in a thread, or, where even that thread could not be killed (FUSE), in a process of
its own.  A job that takes too long is abandoned: another thread takes over the rest, and no other
job for that path runs until it returns.  When it does, its result still counts, and the jobs held
back meanwhile run.

The work of a job must be picklable, and must not change shared state.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from ..core.detail import line
from .doer import DEADLINE, Doer, Job
from .failures import described
from .lanes import Around, Lane, Worker
from .mounts import MOUNTS
from .threads import call_in

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
