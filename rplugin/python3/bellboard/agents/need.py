"""The needs of observers: a need has its sessions, and the news that came for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ..core.evidence import Evidence
from ..core.observing import Want
from ..core.session import Session
from ..system.notes import Notes
from ..system.reach import Rounds, reached_from_here
from ..system.watch import Watched, Written

JOINED: Final = "joined"  # another session needs it
CHANGED: Final = "changed"  # a session has changed
LEFT: Final = "left"  # a session no longer needs it
PATHS: Final = "paths"  # a watched path may have changed
WRITTEN: Final = "written"  # a terminal was written to
DIED: Final = "died"  # a process of these sessions
RESCAN: Final = "rescan"  # time to look again: no system reports every change
NEED: Final = "need"


class Means(NamedTuple):
    """The means of all observers: watches, the clock, the environment, the way to report."""

    watched: Watched
    report: Callable[[Evidence], None]
    clock: Callable[[], float]
    environ: Mapping[str, str]
    generation: str = ""
    since: float = 0.0  # before this time, nobody may have observed anything
    brief: bool = False  # observe once, and only the present state


class Need:
    """A thing to observe for its holders: sessions, or other needs.

    A coroutine observes it: `news` says when to look again, and `report` takes the findings.
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
        self.holders: set[str] = set()  # sessions and needs
        self.sessions: dict[str, Session] = {}  # the holders that are sessions, as they are now
        self.joined: set[str] = set()  # sessions that nobody has looked at yet
        self.changed: set[str] = set()  # sessions that have changed since
        self.left: list[Session] = []  # sessions that no longer need it
        self.paths: set[str] = set()  # watched paths that may have changed since
        self.died: dict[int, str] = {}  # processes that have died since, with their start times
        self.written: dict[str, float] = {}  # terminal → when it was written to
        self.rounds = Rounds()  # work for it in turns of its own
        self.wants_deaths = False  # whether to report deaths of the agent's processes
        self.is_extra = False  # whether known sessions can do without it
        self.at_end: Callable[[], object] = lambda: None  # called when the need ends
        self._written, self._notes, self._want_more = written, notes, want_more
        self._topics: set[str] = set()
        self.watched: set[str] = set()
        self._news: set[str] = set()
        self._heeds: tuple[str, ...] = ()
        self._woken = asyncio.Event()
        self._has_failed = self._is_over = False
        self._task: asyncio.Task[None] | None = None

    def start(self, observe: Observe) -> None:
        """Begin to observe."""
        self._task = asyncio.get_running_loop().create_task(self._run(observe))

    def close(self) -> None:
        """Stop observing."""
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
        """Return whether the observer has looked at all news."""
        rests = bool(self._heeds) and self._news.isdisjoint(self._heeds)
        return (rests or self._task is None or self._task.done()) and not self.rounds

    # ------------------------------------------------------------ for its holders

    def take(self, holder: str, s: Session | None) -> None:
        """Add a holder; of a session, take its present state."""
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
        """Drop a holder."""
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
        """Note news of this kind."""
        self._news.add(what)
        if what in self._heeds:
            self._woken.set()

    # ------------------------------------------------------------ for its observer

    @property
    def session(self) -> Session:
        """Return the only session, or one of them."""
        return next(iter(self.sessions.values()))

    async def news(self, *heeds: str, within: float | None = None) -> set[str]:
        """Wait for one of these kinds of news, at most `within` seconds; return all news."""
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
        if self._is_over:  # until Python 3.12, `wait_for` may swallow a cancellation
            raise asyncio.CancelledError
        news, self._news = self._news, set()
        return news

    def report(self, evidence: Evidence) -> None:
        """Report a finding."""
        self.means.report(evidence)

    def want_more(self, wants: Iterable[Want]) -> None:
        """Have these and no other needs observed as well, while this one is."""
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
        """Note that a terminal was written to."""
        self.written[tty] = asyncio.get_running_loop().time()
        self.stir(WRITTEN)

    def say(self, topic: str, why: str) -> None:
        """Note a problem in health; with "", remove the note."""
        if why:
            self._topics.add(topic)
            self._notes.say(topic, why)
        elif topic in self._topics:
            self._topics.discard(topic)
            self._notes.settle(topic)

    def say_only(self, notes: Mapping[str, str]) -> None:
        """Note these problems in health, and no others."""
        for topic in self._topics - notes.keys():
            self.say(topic, "")
        for topic, why in notes.items():
            self.say(topic, why)

    async def _run(self, observe: Observe) -> None:
        """Observe, and start again after any failure, which concerns this need only."""
        while True:
            try:
                await observe(self)
            except Exception as error:
                self._has_failed = True
                name = str(self.want)
                await asyncio.sleep(reached_from_here().fail(name, name, error))
            else:
                return


Observe = Callable[[Need], Coroutine[Any, Any, None]]


class Observing(NamedTuple):
    """The observers of an agent, for all that it shows besides its hooks."""

    observe: Mapping[str, Observe]  # kind of need → observer
    wanted: Callable[[Session, float], Iterator[Want]]  # needs of a session at a time
    always: tuple[Want, ...] = ()  # needs independent of sessions
    forget: Callable[[str], object] = lambda sid: None  # drops a session that has ended
