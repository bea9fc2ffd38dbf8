"""Follow the machines of a fleet: read their rows and transitions, and pass them on."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ..core.feed import MOST, OfOne
from .followed import Followed
from .stored import Item, item_of, listed, read, server_time
from .streams import LARGEST
from .subjects import Key, Subjects
from .wire import Message, Wire

TOGETHER: Final = 0.02  # seconds to collect changes in; a screen is drawn every 0.03
LOOK: Final = 1.0  # seconds between two checks for silent machines
PENDING: Final = 1 << 14  # messages that may wait; with more, we read everything again
ASKED: Final = 16  # machines whose rows are read at the same time
READ: Final = 8 * MOST  # of a machine: its rows, and marks of sessions that ended lately
TRIES: Final = 3  # connections that the list of a machine may break

#: Takes the messages about machines; returns when they are processed.
Deliver = Callable[[list[tuple[str, OfOne]]], Awaitable[None]]


class Reader:
    """Reads rows and transitions over one connection: what is stored, and what is new."""

    def __init__(self, wire: Wire, subjects: Subjects, followed: Followed) -> None:
        self._wire, self._subjects, self._followed = wire, subjects, followed

    async def run(self, ready: Callable[[], object]) -> None:
        """Follow until the connection breaks."""
        s, followed = self._subjects, self._followed
        wanted = followed.wanted.follow or ("",)
        followed.begin()
        async with contextlib.AsyncExitStack() as stack:
            for m in wanted:
                await self._listen(stack, s.seen(s.rows_of(m)), self._row)
                await self._listen(stack, s.seen(s.moved_of(m)), followed.news)
            await self._read(followed.wanted.follow)
            followed.complete()
            ready()
            await asyncio.get_running_loop().create_future()  # the rest comes by itself

    async def _listen(
        self, stack: contextlib.AsyncExitStack, subject: str, take: Callable[[Key, Item], None]
    ) -> None:
        async def receive(message: Message) -> None:
            item = item_of(message.subject, message)
            if item is not None and (key := self._key(item)) is not None:
                take(key, item)

        subscription = await self._wire.subscribe(subject, receive, PENDING)
        stack.push_async_callback(_end, subscription)

    async def _read(self, machines: tuple[str, ...]) -> None:
        """Read the rows that are stored: machine by machine, so that no list is too long.

        A machine can make its own too long for us, or for the server: the connection breaks then.
        So those that were being listed when it broke are listed one by one, at last not at all.
        """
        wire, s, tries = self._wire, self._subjects, self._followed.tries
        now = await server_time(wire, s) or time.time()
        if not machines:
            keys = map(s.key, await listed(wire, s.rows, s.beats))
            machines = tuple(key.machine for key in keys if key is not None)

        def take(item: Item) -> None:
            if (key := self._key(item)) is not None:
                self._row(key, item, max(0.0, now - item.t))

        async def rows_of(subjects: list[str]) -> None:
            left, count = subjects[:READ], 0

            def counted(item: Item) -> None:
                nonlocal count
                count += bool(item.data)
                take(item)

            while left and count <= MOST:
                await read(wire, s.rows, left[:MOST], counted)
                left = left[MOST:]

        async def one(machine: str) -> None:
            beat, found = s.row(Key(machine)), list[str]()
            async with some:
                if tries[machine] < TRIES:
                    tries[machine] += 1
                    found = await listed(wire, s.rows, s.rows_of(machine))
                else:
                    self._followed.refuse(machine)
                del tries[machine]
                await rows_of([beat, *(subject for subject in found if subject != beat)])

        some = asyncio.Semaphore(ASKED)
        suspects = sorted(filter(tries.get, machines), key=tries.__getitem__)
        await asyncio.gather(*(one(m) for m in machines if m not in tries))
        for machine in suspects:
            await one(machine)

    def _key(self, item: Item) -> Key | None:
        """Return what an item is about; count one that cannot be used."""
        key = self._subjects.key(item.subject)
        if key is None or len(item.data) > LARGEST:
            self._followed.refuse(key.machine if key is not None else "")
            return None
        return key

    def _row(self, key: Key, item: Item, age: float = 0.0) -> None:
        self._followed.row(key, item, age)


async def _end(subscription: Any) -> None:
    with contextlib.suppress(Exception):  # the connection is closed
        await subscription.unsubscribe()


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
