"""Follow the machines of a fleet: read their rows and transitions, and pass them on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from .far import Said
from .followed import Followed
from .streams import LARGEST
from .subjects import Key, Subjects
from .tail import Item, Tail
from .waiting import together
from .wire import Wire

TOGETHER: Final = 0.02  # seconds to collect changes in; a screen is drawn every 0.03
BEHIND: Final = 20_000  # transitions to catch up with after a gap
LOOK: Final = 1.0  # seconds between two checks for silent machines

#: Takes an item of a stream; with the seconds that it had been stored when we began to read.
Take = Callable[[Key, Item, float], None]
#: Takes the messages about machines; returns when they are processed.
Deliver = Callable[[list[tuple[str, Said]]], Awaitable[None]]


class Reader:
    """Reads rows and transitions (on the wire: news) over one connection."""

    def __init__(self, wire: Wire, subjects: Subjects, followed: Followed) -> None:
        self._wire, self._subjects, self._followed = wire, subjects, followed
        self._reading = 0  # streams whose earlier messages have not all come

    async def run(self, ready: Callable[[], object]) -> None:
        """Follow until the connection breaks."""
        followed, subjects = self._followed, self._subjects
        wanted = followed.wanted.follow or ("",)
        self._reading = 2 * len(wanted)
        self._ready = ready
        followed.begin()
        start = {"deliver_policy": "last_per_subject"}
        rows = [(subjects.rows, subjects.rows_of(m), start) for m in wanted]
        start = await self._gap()
        news = [(subjects.news, subjects.news_of(m), start) for m in wanted]
        tasks = [self._follow(*each, followed.row) for each in rows]
        tasks += [self._follow(*each, self._news) for each in news]
        await together([asyncio.ensure_future(task) for task in tasks])

    async def _gap(self) -> dict[str, Any]:
        """Return where to continue in the transitions."""
        last = self._followed.last_news
        told = await self._wire.call(f"$JS.API.STREAM.INFO.{self._subjects.news}")
        newest = told["state"]["last_seq"]
        if not 0 < last <= newest:
            self._followed.last_news = 0
            return {"deliver_policy": "new"}
        first = max(last, newest - BEHIND) + 1
        return {"deliver_policy": "by_start_sequence", "opt_start_seq": first}

    async def _follow(self, stream: str, subject: str, start: dict[str, Any], take: Take) -> None:
        is_new = False  # whether all that was there has come

        def receive(item: Item) -> None:
            key = self._subjects.key(item.subject)
            if key is None or len(item.data) > LARGEST:
                self._followed.refuse(key.machine if key is not None else "")
            else:
                take(key, item, 0.0 if is_new else max(0.0, tail.created - item.t))

        def caught_up() -> None:
            nonlocal is_new
            is_new = True
            self._reading -= 1
            if not self._reading:
                self._followed.complete()
                self._ready()

        tail = Tail(self._wire, stream, subject, receive, caught_up)
        await tail.begin(start)
        await tail.run()

    def _news(self, key: Key, item: Item, age: float) -> None:
        if key.session:
            self._followed.news(key, item)


async def deliver(followed: Followed, to: Deliver) -> None:
    """Pass on what comes in, as fast as it is taken, forever."""
    while True:
        await followed.woken.wait()
        await asyncio.sleep(TOGETHER)
        followed.woken.clear()
        if said := followed.take(time.time()):
            await to(said)


async def watch(followed: Followed) -> None:
    """Check for silent machines, forever."""
    while True:
        followed.watch(time.monotonic())
        await asyncio.sleep(LOOK)
