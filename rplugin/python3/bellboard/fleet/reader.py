"""Follow the machines of a fleet: what is stored and sent becomes what a feed says.

A machine is who the server lets write under its name; what a message claims to be does not count.
Changes wait here, one for each session, until the host has taken those before them: a host that is
slow sees fewer states in between, and no queue grows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ..core.feed import MOST, SILENT, Beat, Change, Hello, Moved, State, cursor_of, moved_of, read
from ..core.lenient import value_of
from ..core.row import Row, row_of
from .streams import LARGEST, TTL
from .subjects import Key, Subjects
from .tail import Item, Tail
from .wire import Wire

MACHINES: Final = 256  # to follow
TOGETHER: Final = 0.02  # seconds to collect changes in; a screen is drawn every 0.03
BEHIND: Final = 20_000  # transitions to catch up with after a gap
SILENCE: Final = "it does not publish: no host runs there, or it has no network"
LOOK: Final = 1.0  # seconds between two looks for machines that are silent

Said = Hello | State | Change | Beat


class Lost(NamedTuple):
    """A machine cannot be followed now; the text says why."""

    why: str


#: Takes an item of a stream; with the seconds that it had been stored when we began to read.
Take = Callable[[Key, Item, float], None]
#: Takes what was said of machines; returns when that is processed.
Deliver = Callable[[list[tuple[str, "Said | Lost"]]], Awaitable[None]]


class Far:
    """A machine as we know it; outlives a connection."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hello = Hello()
        self.cursor = ""
        self.counts: dict[str, int] = {}
        self.heard = -1e9  # when it last beat, by our monotonic clock
        self.skew = 0.0  # its clock less ours
        self.is_up = False
        self.why = ""
        self.rows: dict[Key, Row] = {}
        self.marks: dict[Key, tuple[int, float]] = {}  # the number and time of each row
        self.changed: dict[Key, None] = {}
        self.moved: dict[int, Moved] = {}
        self.found: set[Key] = set()  # while all rows are read again
        self.says: dict[str, None] = {}  # what to say besides changes: hello, state, beat

    def note(self, moved: Moved) -> None:
        """Keep a transition until it is told."""
        self.moved[moved.id] = moved
        while len(self.moved) > MOST:
            del self.moved[next(iter(self.moved))]

    def drop(self, key: Key) -> bool:
        """Forget a row; return whether it was known."""
        self.marks.pop(key, None)
        return self.rows.pop(key, None) is not None


class Followed:
    """All machines that are followed, and what could not be used."""

    def __init__(self, own: str, follow: tuple[str, ...] = ()) -> None:
        self.own, self.follow = own, follow
        self.machines: dict[str, Far] = {}
        self.last_news = 0  # its number in the stream
        self.skipped = 0
        self.is_read = False  # all rows were read on this connection
        self.woken = asyncio.Event()

    def lose(self, why: str) -> None:
        """Note that none can be followed."""
        for far in self.machines.values():
            if far.is_up or not far.why:
                far.is_up, far.why = False, why
                far.says["lost"] = None
        self.woken.set()

    def watch(self, now: float) -> None:
        """Note which machines are silent, and forget those whose rows have expired."""
        for far in self.machines.values():
            silent = now - far.heard
            if far.is_up and silent > SILENT:
                far.is_up = False
                far.why = SILENCE
                far.says["lost"] = None
                self.woken.set()
            if silent > TTL and far.rows and not far.is_up:
                far.changed = dict.fromkeys(far.rows)
                far.rows, far.marks = {}, {}
                self.woken.set()

    # ------------------------------------------------------------ what comes in

    def begin(self) -> None:
        """Expect all rows."""
        self.is_read = False
        for far in self.machines.values():
            far.found = set()

    def complete(self) -> None:
        """Note that all rows were read: what did not come is gone."""
        self.is_read = True
        for far in self.machines.values():
            for key in [k for k in far.rows if k not in far.found]:
                far.drop(key)
            far.says |= {"hello": None, "state": None}
            if not far.is_up:
                far.why = far.why or SILENCE
                far.says["lost"] = None
        self.woken.set()

    def row(self, key: Key, item: Item, age: float) -> None:
        """Take a row, a beat, or that one is gone; `age`: for how long it has been stored."""
        far = self._far(key.machine)
        if far is None:
            return
        if key.is_beat:
            self._beat(far, item, age)
            return
        far.found.add(key)
        if far.marks.get(key) == (item.seq, item.t):
            return
        if item.operation or not item.data:
            if far.drop(key):
                far.changed[key] = None
                self.woken.set()
            return
        given = _object(item.data)
        row = row_of(given.get("row"))
        if row is None or (row.session_id, row.agent) != (key.session, key.agent):
            self.skipped += 1
            return
        if key not in far.rows and len(far.rows) >= MOST:
            self.skipped += 1
            return
        moved = moved_of(given.get("moved"))
        if moved is not None and moved.session_id == key.session:
            far.note(moved)
        far.rows[key], far.marks[key], far.changed[key] = row, (item.seq, item.t), None
        far.cursor = _later(far.cursor, given.get("cursor"))
        self.woken.set()

    def news(self, key: Key, item: Item) -> None:
        """Take a transition."""
        self.last_news = max(self.last_news, item.seq)
        far = self._far(key.machine)
        moved = moved_of(given := _object(item.data))
        if far is None or moved is None or moved.session_id != key.session:
            self.skipped += far is not None
            return
        far.cursor = _later(far.cursor, f"{given.get('database')}.{moved.id}")
        far.note(moved)
        self.woken.set()

    # ------------------------------------------------------------ what goes out

    def take(self, wall: float) -> list[tuple[str, Said | Lost]]:
        """Return, once, what is to be said of each machine."""
        said: list[tuple[str, Said | Lost]] = []
        for far in self.machines.values():
            if self.is_read or "lost" in far.says:
                said += [(far.name, x) for x in _said(far, wall + far.skew)]
        return said

    # ------------------------------------------------------------ parts

    def _far(self, machine: str) -> Far | None:
        if machine == self.own or (self.follow and machine not in self.follow):
            return None
        far = self.machines.get(machine)
        if far is None:
            if len(self.machines) >= MACHINES:
                self.skipped += 1
                return None
            far = self.machines[machine] = Far(machine)
        return far

    def _beat(self, far: Far, item: Item, age: float) -> None:
        given = _object(item.data)
        hello = read(item.data) if item.data else None
        if not isinstance(hello, Hello):
            self.skipped += 1
            return
        counts = given.get("counts")
        far.counts = {
            k: v for k, v in (counts.items() if isinstance(counts, dict) else ()) if type(v) is int
        }
        was, far.hello = far.hello, hello
        far.cursor = _later(far.cursor, given.get("cursor"))
        heard = time.monotonic() - age
        far.heard = max(far.heard, heard)
        if hello.now and age < SILENT:
            far.skew = hello.now - (time.time() - age)
        if age < SILENT:
            if not far.is_up or was.boot != hello.boot:
                far.is_up, far.why = True, ""
                far.says.pop("lost", None)
                far.says |= {"hello": None, "state": None}
            far.says["beat"] = None
        self.woken.set()


class Reader:
    """Reads rows and news over one connection."""

    def __init__(self, wire: Wire, subjects: Subjects, followed: Followed) -> None:
        self._wire, self._subjects, self._followed = wire, subjects, followed
        self._reading = 0  # streams of which not everything that was there has come

    async def run(self, ready: Callable[[], object]) -> None:
        """Follow until the connection breaks."""
        followed, subjects, wanted = self._followed, self._subjects, self._followed.follow or ("",)
        self._reading = 2 * len(wanted)
        self._ready = ready
        followed.begin()
        start = {"deliver_policy": "last_per_subject"}
        rows = [(subjects.rows, subjects.rows_of(m), start) for m in wanted]
        start = await self._gap()
        news = [(subjects.news, subjects.news_of(m), start) for m in wanted]
        tasks = [self._follow(*each, self._row) for each in rows]
        tasks += [self._follow(*each, self._news) for each in news]
        await together([asyncio.ensure_future(task) for task in tasks])

    async def _gap(self) -> dict[str, Any]:
        """Return where to go on in the news."""
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
                self._followed.skipped += 1
            else:
                take(key, item, 0.0 if is_new else max(0.0, tail.created - item.t))
            if not (item.pending or is_new):
                caught_up()

        def caught_up() -> None:
            nonlocal is_new
            is_new = True
            self._reading -= 1
            if not self._reading:
                self._followed.complete()
                self._ready()

        tail = Tail(self._wire, stream, subject, receive)
        if not await tail.begin(start):
            caught_up()
        await tail.run()

    def _row(self, key: Key, item: Item, age: float) -> None:
        self._followed.row(key, item, age)

    def _news(self, key: Key, item: Item, age: float) -> None:
        if key.session:
            self._followed.news(key, item)


async def together(tasks: list[asyncio.Future[Any]]) -> None:
    """Wait until one of them fails, end the others, and raise its exception."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:  # once: a second time would interrupt how it ends
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
    for result in done:
        if isinstance(result, Exception):
            raise result


async def deliver(followed: Followed, to: Deliver) -> None:
    """Hand on what comes in, as fast as it is taken, for ever."""
    while True:
        await followed.woken.wait()
        await asyncio.sleep(TOGETHER)
        followed.woken.clear()
        if said := followed.take(time.time()):
            await to(said)


async def watch(followed: Followed) -> None:
    """Look for silent machines, for ever."""
    while True:
        followed.watch(time.monotonic())
        await asyncio.sleep(LOOK)


def _said(far: Far, now: float) -> list[Said | Lost]:
    """Return what is to be said of a machine, and note that it was."""
    said: list[Said | Lost] = []
    says, changed, moved = far.says, far.changed, tuple(far.moved.values())
    far.says, far.changed, far.moved = {}, {}, {}
    if "hello" in says and far.hello.machine:
        said.append(replace(far.hello, now=now))
    if "state" in says:
        ids = tuple(key.session for key in far.rows)
        said.append(State(now, far.cursor, ids, tuple(far.rows.values()), moved))
    elif changed or moved:
        rows = tuple(far.rows[key] for key in changed if key in far.rows)
        gone = tuple(key.session for key in changed if key not in far.rows)
        said.append(Change(now, far.cursor, rows, gone, moved))
    elif "beat" in says:
        said.append(Beat(now, far.cursor))
    if "lost" in says:
        said.append(Lost(far.why))
    return said


def _object(raw: bytes) -> dict[str, Any]:
    given = value_of(raw)
    return given if isinstance(given, dict) else {}


def _later(known: str, told: object) -> str:
    """Return the later of two cursors; that of another database is later."""
    new, old = cursor_of(told), cursor_of(known)
    if new is None:
        return known
    if old is None or old.database != new.database or new.last >= old.last:
        return str(new)
    return known
