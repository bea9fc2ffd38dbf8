"""Run work that may hang outside the event loop: foreign files, /proc, programs.

A stat of a dead mount never returns, and cannot be cancelled.  So everything that touches foreign
files is awaited here, and done by a thread, or, where even that thread could not be killed (FUSE),
by a process of its own.  One thread does quick work in order; while it takes long, another one goes
on with the rest.  Work that takes too long is named in health, and other work at that path waits
until it returns.

The work must be picklable, and must not change shared state.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from ..core.text import line
from .failures import Backoff, Declined, described
from .files import MayHang, stay_near, touch
from .mounts import MOUNTS
from .notes import Notes
from .threads import Thread, call_in

if TYPE_CHECKING:
    import asyncio

    from .separate import Separate

DEADLINE: Final = 1.0  # seconds; reading a file takes 0.2 ms
ERRAND: Final = 3.0  # seconds of an errand; one takes 1 ms, or 200 ms in another process
STARTS: Final = 10.0  # more seconds if a process has to be started, under load
LONG: Final = 0.05  # seconds after which another thread goes on with the rest
BEGIN: Final = 1.0  # seconds in which a thread begins, unless it had no memory for that
MOST: Final = 24  # threads that do not return; beyond that, everything waits for one of them
TOGETHER: Final = 0.001  # seconds in which results are collected while there is more to do
AT_A_TIME: Final = 50  # results to pass on in a row: the event loop is blocked meanwhile
SWITCH: Final = 0.0005  # seconds until a busy thread yields to the event loop
PAUSE: Final = 1.0  # seconds after a failure; doubles with each
LONGEST_PAUSE: Final = 60.0
FORGOTTEN: Final = 300.0  # seconds after which a failure is no longer reported
NEWS: Final = 0.3  # seconds after a result until notes are compared: there may be many results
NAMED: Final = 5  # paths to name in health

T = TypeVar("T")
Place = str | Callable[[], str]  # a path, or what returns the current one of work that reads many


class Hangs(Declined):
    """The work did not return in time; its result will be ignored."""

    def __init__(self, within: float) -> None:
        what = f"timed out after {within:g} s: a program or a mount hangs"
        super().__init__(f"{what}; check your mounts, then try again")


class Full(Declined):
    """The work was not begun: too much other work hangs."""

    def __init__(self) -> None:
        what = "too many requests are waiting for a program or a mount that does not respond"
        super().__init__(f"{what}; check your mounts, then try again")


async def reach(work: Callable[[], T], path: Place = "", within: float = 0.0) -> T:
    """Run work that may hang; return its result, or raise what it raises.

    After `within` seconds its path is named in health.  Its result is taken however late it comes:
    on a busy machine it would take no less time if it were begun again.  While something hangs at
    `path`, work there waits for it instead of starting.

    Work that reads many places raises `Hangs`, as the next one can pass over the place.  Without a
    path, it is an errand: somebody waits for it.  It may take longer, raises `Hangs`, too, and
    `Full` if too much hangs.
    """
    within = within or (DEADLINE if path else ERRAND)
    if _alone.get():
        return _waited(work, within)
    return await reached_from_here().run(work, path, within)  # type: ignore[no-any-return]


def reached_from_here() -> Reach:
    """Return the runner of work for the current event loop."""
    import asyncio

    loop = asyncio.get_running_loop()
    return _reaches.get(loop) or Reach().open()


# ------------------------------------------------------------ without an event loop

_alone: Final = ContextVar("whether no event loop waits for the work", default=False)


def run_alone(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits only with `reach` and `sleep`, without an event loop.

    A command has nothing to do meanwhile, and loading asyncio takes longer than most work.
    """
    before = _alone.set(True)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        _alone.reset(before)
    coroutine.close()
    raise RuntimeError("this needs an event loop")


async def sleep(seconds: float) -> None:
    """Sleep, with or without an event loop."""
    if _alone.get():
        time.sleep(seconds)
        return
    import asyncio

    await asyncio.sleep(seconds)


def _waited(work: Callable[[], T], within: float) -> T:
    found: list[tuple[Any, Exception | None]] = []
    worker = _Worker()
    thread = Thread(lambda: found.append(worker.outcome(work, "")), "bellboard reach")
    thread.start()
    thread.join(within)
    if not found:
        raise Hangs(within)
    result, error = found[0]
    worker.close()
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


# ------------------------------------------------------------ with one


class _Job:
    def __init__(
        self, work: Callable[[], Any], path: Place, within: float, future: asyncio.Future[Any]
    ) -> None:
        self.work, self.path, self.within, self.future = work, path, within, future
        self.since = time.monotonic()  # when it was queued, and then when it began
        self.more = 0.0  # seconds until a process has been started for it
        self.is_over = False

    @property
    def waits(self) -> bool:
        """Return whether its result is awaited however late it comes."""
        return isinstance(self.path, str) and bool(self.path) and not self.future.done()

    @property
    def place(self) -> str:
        return self.path if isinstance(self.path, str) else self.path()


class _Worker:
    """A thread, its current job, and its process for work that must not run in a thread."""

    def __init__(self, modules: Collection[str] = (), shared: Collection[int] = ()) -> None:
        self.job: _Job | None = None
        self._modules, self._shared = modules, shared
        self._separate: Separate | None = None

    def outcome(self, work: Callable[[], Any], path: str) -> tuple[Any, Exception | None]:
        """Run work; return its result, or what it has raised."""
        stay_near(MOUNTS)
        try:
            try:
                touch(path)
                return work(), None
            except MayHang:
                return self._elsewhere(work), None
        except Exception as error:  # any kind: it concerns this work only
            return None, error

    def close(self) -> None:
        """End its process."""
        if self._separate is not None:
            self._separate.close()

    def _elsewhere(self, work: Callable[[], Any]) -> Any:
        from .separate import Ended, Separate

        if self._separate is None:
            if self.job is not None:
                self.job.more = STARTS
            self._separate = Separate(self._shared, self._modules)
            if self.job is not None:
                self.job.since, self.job.more = time.monotonic(), 0.0
        try:
            return self._separate.call(work)
        except Ended:
            self._separate = None
            raise


class Reach:
    """Runs the work of one event loop.

    `changed` is called when something starts to hang, or responds again, and soon after results
    have changed what is noted in health.  `modules` are imported
    in a process that runs work, so that its first work takes no longer than the next.
    """

    def __init__(
        self, changed: Callable[[], None] = lambda: None, modules: Collection[str] = ()
    ) -> None:
        self._changed, self._modules = changed, modules
        self._shared: set[int] = set()  # descriptors to keep open in such a process
        self._ready = threading.Condition()  # of the next four
        self._waiting: deque[_Job] = deque()
        self._running: set[_Job] = set()
        self._done: deque[tuple[_Job, Any, Exception | None]] = deque()
        self._worker: _Worker | None = None  # who takes the next job
        self._held: list[_Job] = []  # until what hangs at their path returns
        self._stuck: dict[_Job, tuple[str, float]] = {}  # what hangs: where, since what time
        self._dead: set[str] = set()  # mounts
        self._failed: dict[str, tuple[Backoff, str]] = {}  # key → its pause, what failed
        self.rounds = 0  # coroutines of `Rounds` that run
        self.notes = Notes()
        self._called = self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._heard = Notes.changes  # when `changed` was called last
        self._news: asyncio.TimerHandle | None = None

    def open(self) -> Reach:
        """Run what is reached from the current event loop from now on."""
        import asyncio

        self.loop = asyncio.get_running_loop()
        _reaches[self.loop] = self
        sys.setswitchinterval(SWITCH)
        return self

    async def run(self, work: Callable[[], Any], path: Place, within: float) -> Any:
        """See `reach`."""
        if self._closed:
            import asyncio

            raise asyncio.CancelledError
        job = _Job(work, path, within, self.loop.create_future())
        self._put(job)
        try:
            return await job.future
        except BaseException:
            self._forget(job)
            raise

    @property
    def is_at_rest(self) -> bool:
        """Return whether no work is left except work that hangs."""
        with self._ready:
            is_busy = self._waiting or any(not job.is_over for job in self._running)
        hang = sum(job.waits for job in self._stuck)
        return not (is_busy or self._done) and self.rounds <= len(self._held) + hang

    def note(self) -> None:
        """Note in health which paths do not respond, and which cannot be read."""
        notes: dict[str, str] = {}
        if paths := sorted({place for place, _ in self._stuck.values() if place}):
            since = min(t for place, t in self._stuck.values() if place)
            clock = time.strftime("%H:%M:%S", time.localtime(since))
            notes["unreachable"] = (
                f"does not respond (since {clock}): {_some([*sorted(self._dead), *paths])}; "
                "ignored until it does"
            )
            if len(self._stuck) >= MOST:
                notes["unreachable"] += f"; everything else waits too: {MOST} threads hang"
        if self._failed:
            since = time.monotonic() - FORGOTTEN
            self._failed = {k: f for k, f in self._failed.items() if f[0].until > since}
            if self._failed:
                notes["unreadable"] = _some([what for _, what in self._failed.values()])
        self.notes.replace(notes)

    def share(self, descriptor: int) -> None:
        """Keep a descriptor open in every process that runs work."""
        self._shared.add(descriptor)

    def ended(self, task: asyncio.Task[None]) -> None:
        """Note the end of a coroutine."""
        self.rounds -= 1

    def close(self) -> None:
        """Stop: nothing is called after this, and no thread delays the exit."""
        self._closed = True
        for timer in (self._timer, self._news):
            if timer is not None:
                timer.cancel()
        with self._ready:
            self._waiting.clear()
            self._worker = None
            self._ready.notify_all()

    # ------------------------------------------------------------ what fails

    def fail(self, key: str, what: str, error: Exception) -> float:
        """Note that something failed, which is named in health; return how long to let it be."""
        backoff = self._failed.pop(key, (Backoff(PAUSE, LONGEST_PAUSE), ""))[0]
        pause = backoff.fail()
        self._failed[key] = backoff, line(f"{what}: {described(error)}", 300)
        self.note()
        if backoff.times == 1:
            self._tell()
        return pause

    def succeed(self, key: str) -> None:
        """Note that something works."""
        if self._failed.pop(key, None) is not None:
            self.note()

    def lets_be(self, key: str) -> bool:
        """Return whether something has just failed."""
        failed = self._failed.get(key)
        return failed is not None and failed[0].is_waiting

    # ------------------------------------------------------------ in the event loop

    def _put(self, job: _Job) -> None:
        if self._stuck and self._hangs(job.place):
            self._held.append(job)
            return
        if not job.path and len(self._stuck) >= MOST:
            raise Full
        with self._ready:
            self._waiting.append(job)
            self._ready.notify()
        if self._worker is None:
            self._start()
        if self._timer is None:
            self._timer = self.loop.call_later(LONG, self._inspect)

    def _forget(self, job: _Job) -> None:
        """Drop a job that nobody waits for any longer, if it has not begun."""
        for jobs in (self._held, self._waiting):
            if job in jobs:
                with self._ready, contextlib.suppress(ValueError):
                    jobs.remove(job)

    def _start(self) -> None:
        """Let another thread take the next job."""
        if len(self._running) + len(self._stuck) >= MOST:
            return
        worker = _Worker(self._modules, self._shared)
        self._worker = worker  # first: it ends if it does not take the next job
        try:
            Thread(partial(self._serve, worker), "bellboard reach").start()
        except RuntimeError:  # no thread, no memory: it is tried again soon
            self._worker = None

    def _deliver(self) -> None:
        self._called = False
        if self._news is None:
            self._news = self.loop.call_later(NEWS, self._hear)
        for _ in range(min(len(self._done), AT_A_TIME)):
            job, result, error = self._done.popleft()
            self._running.discard(job)
            if job in self._stuck:
                self._returned(job)
            if job.future.done():
                continue
            if error is not None:
                job.future.set_exception(error)
            else:
                job.future.set_result(result)
        if self._done and not self._called:
            self._called = True
            self.loop.call_soon(self._deliver)

    def _hear(self) -> None:
        self._news = None
        if self._heard != Notes.changes:
            self._tell()

    def _tell(self) -> None:
        self._heard = Notes.changes
        self._changed()

    def _inspect(self) -> None:
        """Find work that takes too long, and let another thread go on with the rest."""
        now = time.monotonic()
        self._timer = None
        for job in [
            x for x in self._running if not x.is_over and now > x.since + x.within + x.more
        ]:
            self._hang(job)
        if self._is_late(now):
            self._start()
            for job in list(self._waiting):
                if not job.path and now > job.since + job.within and not job.future.done():
                    job.future.set_exception(Full())
        if self._done and not self._called:  # a hanging job may have delayed them
            self._deliver()
        if not self.is_at_rest:
            self._timer = self.loop.call_later(LONG, self._inspect)

    def _is_late(self, now: float) -> bool:
        """Return whether jobs wait for a thread that takes long, or did not begin."""
        with self._ready:
            if self._worker is None or not self._waiting:
                return bool(self._waiting)
            if (job := self._worker.job) is not None:
                return now > job.since + LONG
            return now > self._waiting[0].since + BEGIN

    def _hang(self, job: _Job) -> None:
        with self._ready:
            if self._worker is not None and self._worker.job is job:
                self._worker = None
            self._running.discard(job)
        self._stuck[job] = job.place, time.time()
        self._count_dead()
        if not (job.waits or job.future.done()):
            job.future.set_exception(Hangs(job.within))
        with self._ready:
            held = [one for one in self._waiting if self._hangs(one.place)]
            for one in held:
                self._waiting.remove(one)
        self._held += held
        self.note()
        self._tell()

    def _returned(self, job: _Job) -> None:
        del self._stuck[job]
        self._count_dead()
        held, self._held = self._held, []
        for one in held:
            self._put(one)
        if self._waiting and self._worker is None:
            self._start()
        self.note()
        self._tell()

    def _count_dead(self) -> None:
        """Treat a mount as dead if two jobs hang in it."""
        mounts = [MOUNTS.hanging(place) for place, _ in self._stuck.values()]
        places = [mount.place for mount in mounts if mount]
        self._dead = {place for place in places if places.count(place) > 1}

    def _hangs(self, path: str) -> bool:
        """Return whether a path is, or is inside, something that does not respond."""
        if not path:
            return False
        if self._dead and (mount := MOUNTS.hanging(path)) and mount.place in self._dead:
            return True
        places = (place for place, _ in self._stuck.values() if place)
        return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)

    # ------------------------------------------------------------ in a thread

    def _serve(self, worker: _Worker) -> None:
        """Run one job after the other until another thread does."""
        pending = 0.0  # since when there are results of which the event loop does not know
        while True:
            with self._ready:
                worker.job = None
                while self._worker is worker and not self._waiting:
                    if pending:
                        pending = self._notify()
                    self._ready.wait()
                if self._worker is not worker:
                    break
                job = worker.job = self._waiting.popleft()
                job.since = time.monotonic()
                self._running.add(job)
            found: tuple[Any, Exception | None] = None, None
            if not job.future.cancelled():
                found = worker.outcome(job.work, job.place)
            job.is_over = True
            self._done.append((job, *found))
            now = time.monotonic()
            pending = pending or now
            if now > pending + TOGETHER or self._worker is not worker:
                pending = self._notify()
        if pending:
            self._notify()
        worker.close()

    def _notify(self) -> float:
        """Make the event loop take the results; waking it costs as much as a quick job."""
        if not self._called and not self._closed:
            self._called = True
            call_in(self.loop, self._deliver)
        return 0.0


_reaches: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Reach]] = WeakKeyDictionary()


def _some(names: list[str]) -> str:
    """Join the first names, and say how many more there are."""
    more = len(names) - NAMED
    return ", ".join(line(n, 300) for n in names[:NAMED]) + (
        f" and {more} more" if more > 0 else ""
    )


class Rounds:
    """Runs a coroutine for each key: never twice at once, and once more if it is asked meanwhile.

    One that fails is named in health, and not run again for a while.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, Callable[[], Awaitable[None]]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: str) -> bool:
        return key in self._tasks

    def run(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run it soon."""
        if key in self._tasks:
            self._again[key] = work
            return
        here = reached_from_here()
        if not here.lets_be(key):
            here.rounds += 1
            self._tasks[key] = task = here.loop.create_task(self._run(here, key, work))
            task.add_done_callback(here.ended)

    def drop(self, key: str) -> None:
        """Stop the work for a key."""
        self._again.pop(key, None)
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    def close(self) -> None:
        """Stop all."""
        for key in list(self._tasks):
            self.drop(key)

    async def _run(self, here: Reach, key: str, work: Callable[[], Awaitable[None]] | None) -> None:
        import asyncio

        me = asyncio.current_task()
        while work is not None:
            try:
                await work()
            except Exception as error:  # of any kind: it concerns this one only
                here.fail(key, key, error)
            else:
                here.succeed(key)
            work = self._again.pop(key, None)
        if self._tasks.get(key) is me:
            del self._tasks[key]
