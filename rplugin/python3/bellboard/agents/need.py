"""What an observer observes for sessions: which sessions those are, and what has come since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ..core.evidence import Evidence
from ..core.observing import Want
from ..core.session import Session
from ..system.notes import Notes
from ..system.reach import Hangs, reached_from_here
from ..system.watch import Written
from .agent import Means

JOINED: Final = "joined"  # another session needs it
CHANGED: Final = "changed"  # a session has changed
PATHS: Final = "paths"  # a watched path may have changed
WRITTEN: Final = "written"  # a terminal was written to
DIED: Final = "died"  # the process
RESCAN: Final = "rescan"  # no system reports every change
NEED: Final = "need"


class Need:
    """Something that sessions need observed, while at least one does.

    A coroutine observes it: `news` tells it when to look again, and it reports what it finds.
    """

    def __init__(
        self, want: Want, means: Means, since: float, written: Written, notes: Notes
    ) -> None:
        self.want, self.means = want, means
        self.since = since  # before that, nobody may have observed it
        self.sessions: dict[str, Session] = {}  # as they are now
        self.joined: set[str] = set()  # sessions that nobody has looked at yet
        self.written: dict[str, float] = {}  # terminal → when it was written to
        self.ended = ""  # start time of the process that has died
        self.at_end: Callable[[], object] = lambda: None  # what observes it has more to end
        self._written, self._notes = written, notes
        self._topics: set[str] = set()
        self._paths: set[str] = set()
        self._news: set[str] = set()
        self._heeds: tuple[str, ...] = ()
        self._woken = asyncio.Event()
        self._has_failed = False
        self._task: asyncio.Task[None] | None = None

    def start(self, observe: Callable[[Need], Coroutine[Any, Any, None]]) -> None:
        """Begin to observe it."""
        self._task = asyncio.get_running_loop().create_task(self._run(observe))

    def close(self) -> None:
        """Stop observing it."""
        if self._task is not None:
            self._task.cancel()
        self.watch()
        self.at_end()
        self._written.leave(self)
        self.settle(*self._topics)
        reached_from_here().succeed(str(self.want))

    # ------------------------------------------------------------ for whom it is observed

    def take(self, s: Session) -> None:
        """Note a session that needs it, as it is now."""
        if s.session_id not in self.sessions:
            self.joined.add(s.session_id)
            self.stir(JOINED)
        self.sessions[s.session_id] = s
        self.stir(CHANGED)

    def leave(self, sid: str) -> None:
        """Drop a session that no longer needs it."""
        self.sessions.pop(sid, None)
        self.joined.discard(sid)

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
        news, self._news = self._news, set()
        return news

    def report(self, finding: Evidence) -> None:
        """Report what was found."""
        self.means.report(finding)

    def watch(self, *paths: str) -> None:
        """Watch these paths, and no others."""
        for path in self._paths - {*paths}:
            self.means.watched.leave(path, NEED, self)
        for path in {*paths} - self._paths:
            self.means.watched.need(path, NEED, self)
        self._paths = {*paths}

    def listen(self, tty: str) -> None:
        """Note the next time that a terminal is written to."""
        self.written.pop(tty, None)
        self._written.add(tty, self)

    def heard(self, tty: str) -> None:
        """Take that a terminal was written to."""
        self.written[tty] = asyncio.get_running_loop().time()
        self.stir(WRITTEN)

    def say(self, topic: str, why: str) -> None:
        """Note in health what is wrong."""
        self._topics.add(topic)
        self._notes.say(topic, why)

    def settle(self, *topics: str) -> None:
        """Note that something is no longer wrong."""
        self._topics = self._topics - {*topics}
        self._notes.settle(*topics)

    async def _run(self, observe: Callable[[Need], Coroutine[Any, Any, None]]) -> None:
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
