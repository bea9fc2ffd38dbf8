"""Publish the sessions of this machine: a key for each, written when its row changes.

Each write names the revision that it replaces, so two machines with one name notice each other.
All keys are written again before the server lets them expire.  Of unsent changes
only the latest is kept: memory grows with the sessions, never with the time without a server.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..core.feed import FeedChange, FeedState, Hello, Moved
from ..core.row import Row
from ..core.untrusted import object_of, value_of
from .nats_wire import WRONG_LAST, NatsWire, ServerRefused, is_set
from .streams import (
    LARGEST_ROW,
    TTL,
    Stored,
    last_stored,
    read_stored,
    server_time,
    stored_subjects,
)
from .subjects import Key, Subjects

BEAT: Final = 10.0  # seconds between two beats
WINDOW: Final = 16  # writes under way: more would only queue on a busy server
KEPT: Final = 1000  # transitions that wait for a server
TRIES: Final = 3
SOONEST, LATEST = 0.25, 0.4  # a row is written again after this part of its lifetime
AGAIN: Final = 60.0  # seconds until another try, without the permission to publish

ROW: Final = b'"row":'

_encode = msgspec.json.Encoder().encode


class Taken(Exception):
    """Another machine publishes under our name now."""


class Shelf:
    """The sessions that this machine shows; outlives a connection, and is used in one thread."""

    def __init__(self, machine: str, by: str, hello: Callable[[], Hello]) -> None:
        self.machine, self.by, self.hello = machine, by, hello
        self.rows: dict[Key, Row] = {}
        self.last: dict[str, Moved] = {}  # the last transition of each session
        self.changed: dict[Key, None] = {}
        self.news: deque[Moved] = deque(maxlen=KEPT)
        self.database = ""
        self.cursor = ""
        self.woken = asyncio.Event()
        self.beyond = 0  # sessions beyond the most that are published
        self.is_whole = asyncio.Event()  # set once all rows of a state have come
        self._missing: set[str] = set()  # sessions of a state whose rows have not come yet

    def take(self, said: FeedState | FeedChange) -> None:
        """Take a message of this machine's feed."""
        if said.cursor:
            self.database, self.cursor = said.cursor.rpartition(".")[0], said.cursor
        self.beyond = said.beyond
        self.news.extend(said.transitions)
        if isinstance(said, FeedState):
            self._missing = set(said.all)
            self._remove([key for key in self.rows if key.session not in self._missing])
        elif said.removed:
            self._missing.difference_update(said.removed)
            self._remove([key for key in self.rows if key.session in said.removed])
        for row in said.sessions:
            key = Key(self.machine, row.agent, row.session_id)
            if _is_news(self.rows.get(key), row):
                self.rows[key] = row
                self.changed[key] = None
            self._missing.discard(row.session_id)
        if not self._missing:
            self.is_whole.set()
        self.last |= {m.session_id: m for m in said.transitions}
        if self.changed or self.news:
            self.woken.set()

    def _remove(self, keys: Sequence[Key]) -> None:
        for key in keys:
            del self.rows[key]
            self.changed[key] = None
        listed = {key.session for key in self.rows}
        self.last = {sid: m for sid, m in self.last.items() if sid in listed}


class RowPublisher:
    """Writes the rows on the shelf, over one connection."""

    def __init__(self, wire: NatsWire, subjects: Subjects, shelf: Shelf) -> None:
        self._wire, self._subjects, self._shelf = wire, subjects, shelf
        self._revisions: dict[Key, int] = {}
        self._due: dict[Key, float] = {}  # when to write a row again
        self._stored: dict[Key, bytes] = {}  # values on the server when we came
        self._beat = Key(shelf.machine)

    async def run(self, ready: Callable[[], object]) -> None:
        """Publish until the connection breaks; raise `Taken` or `NotPermitted`."""
        await self._shelf.is_whole.wait()  # other rows on the server are then removed
        await self._read_own()
        await self._take_name()
        ready()
        shelf = self._shelf
        left = [k for k in self._revisions if k not in shelf.rows and not k.is_beat]
        shelf.changed |= dict.fromkeys([*filter(self._is_to_write, shelf.rows), *left])
        self._stored.clear()
        beat = time.monotonic() + BEAT
        while True:
            shelf.woken.clear()
            await self._write_rows()
            await self._write_news()
            now = time.monotonic()
            if now >= beat:
                await self._write_beat()
                beat = now + BEAT
                shelf.changed |= {k: None for k, due in self._due.items() if due <= now}
            if not (shelf.changed or shelf.news):
                await is_set(shelf.woken, max(0.0, beat - now))

    # ------------------------------------------------------------ the name

    async def _read_own(self) -> None:
        """Learn which keys of this machine the server has, and their revisions."""
        wire, s, now = self._wire, self._subjects, await server_time(self._wire, self._subjects)

        def take(item: Stored) -> None:
            key = s.key(item.subject)
            if key is None or (item.operation and not key.is_beat):
                pass  # the row is gone
            elif key.is_beat:
                self._revisions[key] = item.seq
            else:
                self._revisions[key], self._stored[key] = item.seq, item.data
                stored = max(0.0, now - item.t)  # seconds on the server
                self._due[key] = time.monotonic() + TTL * SOONEST - stored

        await read_stored(
            wire, s.rows, await stored_subjects(wire, s.rows, s.rows_of(self._shelf.machine)), take
        )

    async def _take_name(self) -> None:
        """Write our first beat, unless another machine has the name and still beats."""
        if await self._is_others():
            before = await self._last(self._beat)
            await asyncio.sleep(BEAT * 1.5)
            if (await self._last(self._beat))[0] != before[0]:
                raise Taken(
                    f"another machine publishes as {self._shelf.machine}: join again with "
                    "another name (--machine NAME), here or there"
                )
        self._revisions[self._beat] = (await self._last(self._beat))[0]
        await self._write_beat()

    async def _is_others(self) -> bool:
        by = (await self._last(self._beat))[1].get("by")
        return by is not None and by != self._shelf.by

    async def _last(self, key: Key) -> tuple[int, dict[str, Any]]:
        """Return the revision and the value of a key; revision 0 if there is no value."""
        item = await last_stored(self._wire, self._subjects.rows, self._subjects.row(key))
        return (item.seq, object_of(value_of(item.data))) if item is not None else (0, {})

    async def _write_beat(self) -> None:
        shelf = self._shelf
        said = msgspec.to_builtins(shelf.hello())
        counts: dict[str, int] = {}
        for row in shelf.rows.values():
            counts[row.status] = counts.get(row.status, 0) + 1
        value = {**said, "by": shelf.by, "cursor": shelf.cursor, "counts": counts}
        try:
            await self._put(self._beat, _encode(value), 1)
        except ServerRefused as e:
            if e.code != WRONG_LAST:
                raise
            if await self._is_others():
                raise Taken(
                    f"another machine began to publish as {shelf.machine}: join again with "
                    "another name (--machine NAME), here or there"
                ) from None
            self._revisions[self._beat] = (await self._last(self._beat))[0]

    # ------------------------------------------------------------ rows and news

    async def _write_rows(self) -> None:
        shelf = self._shelf
        while shelf.changed:
            part = list(shelf.changed)[:WINDOW]
            for key in part:
                del shelf.changed[key]
            done = await asyncio.gather(*map(self._write, part), return_exceptions=True)
            failed = [(k, e) for k, e in zip(part, done, strict=True) if e is not None]
            shelf.changed |= {k: None for k, _ in failed}
            for _, e in failed:
                raise e

    def _is_to_write(self, key: Key) -> bool:
        """Return whether the server has another row: after an outage, most rows are the same."""
        made = written(self._shelf.rows[key], None, "").partition(ROW)[2]
        return self._stored.get(key, b"").partition(ROW)[2] != made

    async def _write(self, key: Key) -> None:
        """Write a row, or its removal."""
        row = self._shelf.rows.get(key)
        if row is None:
            if self._revisions.get(key):
                await self._put(key, b"", TRIES, {"KV-Operation": "DEL"})
            self._revisions.pop(key, None)
            self._due.pop(key, None)
            return
        value = written(row, self._shelf.last.get(key.session), self._shelf.cursor)
        await self._put(key, value, TRIES)
        self._due[key] = time.monotonic() + TTL * random.uniform(SOONEST, LATEST)

    async def _put(
        self, key: Key, value: bytes, tries: int, headers: Mapping[str, str] | None = None
    ) -> None:
        subject = self._subjects.row(key)
        for left in range(tries)[::-1]:
            expected = {"Nats-Expected-Last-Subject-Sequence": str(self._revisions.get(key, 0))}
            try:
                self._revisions[key] = await self._wire.put(
                    subject, value, {**expected, **(headers or {})}
                )
            except ServerRefused as e:
                if e.code != WRONG_LAST or not left:
                    raise
                self._revisions[key] = (await self._last(key))[0]
            else:
                return

    async def _write_news(self) -> None:
        shelf = self._shelf
        agents = {key.session: key.agent for key in shelf.rows} if shelf.news else {}
        while shelf.news:
            part = [shelf.news[n] for n in range(min(WINDOW, len(shelf.news)))]
            await asyncio.gather(*(self._tell(m, agents.get(m.session_id, "")) for m in part))
            for m in part:
                if shelf.news and shelf.news[0] is m:
                    shelf.news.popleft()

    async def _tell(self, m: Moved, agent: str) -> None:
        database = self._shelf.database
        subject = self._subjects.moved(Key(self._shelf.machine, agent, m.session_id))
        await self._wire.put(subject, _encode({"database": database, **msgspec.to_builtins(m)}))


def written(row: Row, moved: Moved | None, cursor: str) -> bytes:
    """Return a row as it is written, without its lists if it would be too large."""
    more = {"cursor": cursor, **({"moved": moved} if moved is not None else {})}
    value = _encode({**more, "row": row})
    if len(value) <= LARGEST_ROW:
        return value
    return _encode({**more, "row": replace(row, agents=(), background=())})


def _is_news(old: Row | None, new: Row) -> bool:
    """Return whether more than the time of the last event changed."""
    return old is None or replace(old, updated=new.updated) != new
