"""Read the messages of a fleet's machines on the server: during a connection, or once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec.structs import replace

from ..core.feed import MOST, OfOne
from .followed import Followed
from .member import Joined, UnusableSetting, credentials
from .nats_wire import Down, NatsMessage, NatsWire, NotPermitted, ServerRefused
from .streams import (
    LARGEST_ROW,
    Stored,
    ensure,
    read_stored,
    server_time,
    stored_in,
    stored_subjects,
)
from .subjects import Key, Subjects

TOGETHER: Final = 0.02  # seconds to collect changes in; a screen is drawn every 0.03
EACH: Final = 1.0  # seconds between two checks for silent machines
PENDING: Final = 1 << 14  # messages that may wait; with more, everything is read again
ASKED: Final = 16  # machines whose rows are read at the same time
READ: Final = 8 * MOST  # rows of a machine, with marks of sessions that ended lately
TRIES: Final = 3  # connections that the list of a machine may break

#: Takes the messages about machines; returns when they are processed.
Deliver = Callable[[list[tuple[str, OfOne]]], Awaitable[None]]


class TeamReader:
    """Reads stored and new rows and transitions over one connection."""

    def __init__(self, wire: NatsWire, subjects: Subjects, followed: Followed) -> None:
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
            await asyncio.get_running_loop().create_future()  # new messages call `take`

    async def _listen(
        self, stack: contextlib.AsyncExitStack, subject: str, take: Callable[[Key, Stored], None]
    ) -> None:
        async def receive(message: NatsMessage) -> None:
            item = stored_in(message.subject, message)
            if item is not None and (key := self._key(item)) is not None:
                take(key, item)

        subscription = await self._wire.subscribe(subject, receive, PENDING)
        stack.push_async_callback(_end, subscription)

    async def _read(self, machines: tuple[str, ...]) -> None:
        """Read the stored rows machine by machine, so that no list is too long.

        A machine can make its list too long for us, or for the server, which breaks the connection.
        So machines that were being listed when it broke are listed one by one, at last not at all.
        """
        wire, s, tries = self._wire, self._subjects, self._followed.tries
        now = await server_time(wire, s) or time.time()
        if not machines:
            keys = map(s.key, await stored_subjects(wire, s.rows, s.beats))
            machines = tuple(key.machine for key in keys if key is not None)

        def take(item: Stored) -> None:
            if (key := self._key(item)) is not None:
                self._row(key, item, max(0.0, now - item.t))

        async def rows_of(subjects: list[str]) -> None:
            left, count = subjects[:READ], 0

            def counted(item: Stored) -> None:
                nonlocal count
                count += bool(item.data)
                take(item)

            while left and count <= MOST:
                await read_stored(wire, s.rows, left[:MOST], counted)
                left = left[MOST:]

        async def one(machine: str) -> None:
            beat, found = s.row(Key(machine)), list[str]()
            async with some:
                if tries[machine] < TRIES:
                    tries[machine] += 1
                    found = await stored_subjects(wire, s.rows, s.rows_of(machine))
                else:
                    self._followed.refuse(machine)
                del tries[machine]
                await rows_of([beat, *(subject for subject in found if subject != beat)])

        some = asyncio.Semaphore(ASKED)
        suspects = sorted(filter(tries.get, machines), key=tries.__getitem__)
        await asyncio.gather(*(one(m) for m in machines if m not in tries))
        for machine in suspects:
            await one(machine)

    def _key(self, item: Stored) -> Key | None:
        """Return the key of a message; count an invalid one."""
        key = self._subjects.key(item.subject)
        if key is None or len(item.data) > LARGEST_ROW:
            self._followed.refuse(key.machine if key is not None else "")
            return None
        return key

    def _row(self, key: Key, item: Stored, age: float = 0.0) -> None:
        self._followed.row(key, item, age)


async def _end(subscription: Any) -> None:
    with contextlib.suppress(Exception):  # the connection is closed
        await subscription.unsubscribe()


async def deliver(followed: Followed, to: Deliver) -> None:
    """Pass on the news, as fast as the reader takes it, forever."""
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
        await asyncio.sleep(EACH)


# Look at a fleet once, for a command: whether we can connect, and its machines.


READ_WITHIN: Final = 15.0  # seconds for the server to send all rows
READ_PARTLY: Final = (
    f"the server has not sent everything within {READ_WITHIN:.0f} s; this list may be short"
)


async def try_connection(j: Joined) -> str:
    """Connect, and create missing streams; return why that fails, or ""."""
    try:
        wire = await _connected(j)
    except (Down, UnusableSetting) as e:
        return str(e)
    await wire.close()
    return ""


async def look_at_team(j: Joined) -> tuple[dict[str, Any], str]:
    """Return each machine with its counts and the age of its beat, and why that fails, or ""."""
    followed = Followed(replace(j, machine="", agents=(), repositories=()))
    why = READ_PARTLY
    for left in range(TRIES + 1)[::-1]:
        try:
            wire = await _connected(j)
            try:
                why = "" if await _read(wire, j, followed) else READ_PARTLY
                break
            finally:
                await wire.close()
        except NotPermitted:
            return {}, "these credentials may not read all machines of this team"
        except (Down, ServerRefused, UnusableSetting) as e:
            if not (followed.tries and left):  # a list that breaks it is left out at last
                return {}, str(e)
    now = time.monotonic()
    machines = followed.machines.values()
    return {m.name: {"counts": m.counts, "age": max(0.0, now - m.heard)} for m in machines}, why


async def _connected(j: Joined) -> NatsWire:
    wire = NatsWire(j, credentials(j.creds), lambda subject: None)
    await wire.open()
    try:
        await ensure(wire, Subjects(j.team))
    except BaseException:
        await wire.close()
        raise
    return wire


async def _read(wire: NatsWire, j: Joined, followed: Followed) -> bool:
    """Read all rows; return whether that succeeded in time."""
    read = asyncio.Event()
    running = asyncio.ensure_future(TeamReader(wire, Subjects(j.team), followed).run(read.set))
    tasks = [running, asyncio.ensure_future(wire.breaks()), asyncio.ensure_future(read.wait())]
    try:
        await asyncio.wait(tasks, timeout=READ_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks[:2]:
            if task.done():
                task.result()
        return read.is_set()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
