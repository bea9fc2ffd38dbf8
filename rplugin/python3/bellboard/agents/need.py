"""What an observer observes for sessions: which sessions those are, and what has come since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ..core.evidence import Evidence
from ..core.observing import Want
from ..core.session import Session
from ..system.notes import Notes
from ..system.reach import Hangs, Rounds, reached_from_here
from ..system.watch import Watched, Written

JOINED: Final = "joined"  # another session needs it
CHANGED: Final = "changed"  # a session has changed
LEFT: Final = "left"  # a session no longer needs it
PATHS: Final = "paths"  # a watched path may have changed
WRITTEN: Final = "written"  # a terminal was written to
DIED: Final = "died"  # a process of these sessions
RESCAN: Final = "rescan"  # no system reports every change
NEED: Final = "need"


class Means(NamedTuple):
    """What everything is observed with, and where it is reported."""

    watched: Watched
    report: Callable[[Evidence], None]
    clock: Callable[[], float]
    environ: Mapping[str, str]
    generation: str = ""
    since: float = 0.0  # before that, nobody may have observed anything
    brief: bool = False  # only once: what shows the state now is enough


class Need:
    """Something that is observed while anybody needs it: a session, or another need.

    A coroutine observes it: `news` tells it when to look again, and it reports what it finds.
    """

    def __init__(
        self,
        want: Want,
        means: Means,
        written: Written,
        notes: Notes,
        want_more: Callable[[Need, Iterable[Want]], None],
    ) -> None:
        self.want, self.means = want, means
        self.holders: set[str] = set()  # who needs it
        self.sessions: dict[str, Session] = {}  # those of them that are sessions, as they are now
        self.joined: set[str] = set()  # sessions that nobody has looked at yet
        self.changed: set[str] = set()  # sessions that have changed since
        self.left: list[Session] = []  # sessions that no longer need it
        self.paths: set[str] = set()  # watched paths that may have changed since
        self.died: dict[int, str] = {}  # processes that have died since, with their start times
        self.written: dict[str, float] = {}  # terminal → when it was written to
        self.rounds = Rounds()  # what is done for it in turns of their own
        self.wants_deaths = False  # those of processes of its agent
        self.is_extra = False  # what it finds is not missed by a session that is known
        self.at_end: Callable[[], object] = lambda: None  # what observes it has more to end
        self._written, self._notes, self._want_more = written, notes, want_more
        self._topics: set[str] = set()
        self.watched: set[str] = set()
        self._news: set[str] = set()
        self._heeds: tuple[str, ...] = ()
        self._woken = asyncio.Event()
        self._has_failed = self._is_over = False
        self._task: asyncio.Task[None] | None = None

    def start(self, observe: Observe) -> None:
        """Begin to observe it."""
        self._task = asyncio.get_running_loop().create_task(self._run(observe))

    def close(self) -> None:
        """Stop observing it."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
        self.rounds.close()
        self.watch()
        self.at_end()
        self._written.leave(self)
        self.say_only({})
        reached_from_here().succeed(str(self.want))

    @property
    def is_at_rest(self) -> bool:
        """Return whether all that has come was looked at."""
        rests = bool(self._heeds) and self._news.isdisjoint(self._heeds)
        return (rests or self._task is None or self._task.done()) and not self.rounds

    # ------------------------------------------------------------ for whom it is observed

    def take(self, holder: str, s: Session | None) -> None:
        """Note who needs it; a session as it is now."""
        self.holders.add(holder)
        if s is None:
            return
        if holder not in self.sessions:
            self.joined.add(holder)
            self.stir(JOINED)
        self.sessions[holder] = s
        self.changed.add(holder)
        self.stir(CHANGED)

    def leave(self, holder: str) -> None:
        """Drop who no longer needs it."""
        self.holders.discard(holder)
        self.joined.discard(holder)
        self.changed.discard(holder)
        if (s := self.sessions.pop(holder, None)) is not None and self.holders:
            self.left.append(s)
            self.stir(LEFT)

    def take_path(self, path: str) -> None:
        """Note that a watched path, or an entry of it, may have changed."""
        self.paths.add(path)
        self.stir(PATHS)

    def take_death(self, pid: int, started: str) -> None:
        """Note that a process has died."""
        self.died[pid] = started
        self.stir(DIED)

    def stir(self, what: str) -> None:
        """Note that something has come."""
        self._news.add(what)
        if what in self._heeds:
            self._woken.set()

    # ------------------------------------------------------------ for what observes it

    @property
    def session(self) -> Session:
        """Return the only session, or one of them."""
        return next(iter(self.sessions.values()))

    async def news(self, *heeds: str, within: float | None = None) -> set[str]:
        """Wait until one of these has come, at most for so long; return all that has."""
        if self._has_failed:
            self._has_failed = False
            reached_from_here().succeed(str(self.want))
        if self._news.isdisjoint(heeds):
            self._heeds = heeds
            try:
                await asyncio.wait_for(self._woken.wait(), within)
            except (TimeoutError, asyncio.TimeoutError):
                pass
            finally:
                self._heeds = ()
                self._woken.clear()
        if self._is_over:  # until Python 3.12, `wait_for` may swallow that
            raise asyncio.CancelledError
        news, self._news = self._news, set()
        return news

    def report(self, evidence: Evidence) -> None:
        """Report what was found."""
        self.means.report(evidence)

    def want_more(self, wants: Iterable[Want]) -> None:
        """Have these observed as well, and nothing else, while this is."""
        self._want_more(self, wants)

    def watch(self, *paths: str) -> None:
        """Watch these paths, and no others."""
        if self._is_over:
            paths = ()
        for path in self.watched - {*paths}:
            self.means.watched.leave(path, NEED, self)
        for path in paths:
            if path not in self.watched:
                self.means.watched.need(path, NEED, self)
        self.watched = {*paths}

    def listen(self, tty: str) -> None:
        """Note the next time that a terminal is written to."""
        self.written.pop(tty, None)
        self._written.add(tty, self)

    def heard(self, tty: str) -> None:
        """Take that a terminal was written to."""
        self.written[tty] = asyncio.get_running_loop().time()
        self.stir(WRITTEN)

    def say(self, topic: str, why: str) -> None:
        """Note in health what is wrong; "" if nothing is any longer."""
        if why:
            self._topics.add(topic)
            self._notes.say(topic, why)
        elif topic in self._topics:
            self._topics.discard(topic)
            self._notes.settle(topic)

    def say_only(self, notes: Mapping[str, str]) -> None:
        """Note this in health, and nothing else."""
        for topic in self._topics - notes.keys():
            self.say(topic, "")
        for topic, why in notes.items():
            self.say(topic, why)

    async def _run(self, observe: Observe) -> None:
        """Observe it; begin again after a failure of any kind, which concerns this one only."""
        while True:
            try:
                await observe(self)
            except Exception as error:
                if isinstance(error, Hangs) and error.place:
                    continue  # what is reached next waits until that returns
                self._has_failed = True
                name = str(self.want)
                await asyncio.sleep(reached_from_here().fail(name, name, error))
            else:
                return


Observe = Callable[[Need], Coroutine[Any, Any, None]]


class Observing(NamedTuple):
    """What an agent shows besides its hooks."""

    observe: Mapping[str, Observe]  # kind → what observes it
    wanted: Callable[[Session, float], Iterator[Want]]  # what a session needs of these at a time
    always: tuple[Want, ...] = ()  # needed whatever sessions there are
    forget: Callable[[str], object] = lambda sid: None  # drop a session that has ended
