"""The machines of a fleet as we know them: rows and transitions become the messages of a feed.

A machine is identified by the name that the server lets it write under, not by what it claims.
Changes wait here, one for each session, until the host has taken those before them: a host that is
slow sees fewer states in between, and no queue grows.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Final

from ..core.feed import MOST, QUIET, SILENT_AFTER, Gone, Hello, OfOne, Problem, moved_of, read
from ..core.row import Row, count_in, row_of
from ..core.session import STATUSES
from ..core.untrusted import object_of, value_of
from .far import Far
from .member import Joined
from .stored import Item
from .streams import TTL
from .subjects import Key
from .window import Window

MACHINES: Final = 256  # to follow
NAMED: Final = 5  # machines to name of those that send what cannot be used
COUNT: Final = 30.0  # seconds between two counts of what is not shown
SILENCE: Final = "it publishes nothing: no background process runs there, or it has no network"


class Followed:
    """All machines that are followed, and what could not be used."""

    def __init__(self, wanted: Joined) -> None:
        self.wanted = wanted
        self.window = Window()
        self.machines: dict[str, Far] = {}
        self._gone: dict[str, None] = {}  # machines that were forgotten, to be reported
        self.refused: dict[str, int] = {}  # machine → how much of it could not be used
        self.unread: dict[str, str] = {}  # machine → why its beat could not be read
        self.tries: Counter[str] = Counter()  # machine → connections that its list may have broken
        self.left_out: dict[str, int] = {}  # sessions that are not shown, by status
        self._counted = -COUNT
        self.is_read = False  # all rows were read on this connection
        self.woken = asyncio.Event()

    @property
    def notes(self) -> dict[str, str]:
        """Return what could not be used, by machine, for health."""
        refused, unread = list(self.refused.items()), dict(self.unread)
        return {
            f"fleet machine {name or 'of another name'}": unread.get(name)
            or f"{count} of its messages are not valid, and were refused: update bellboard there"
            for name, count in refused[:NAMED]
        }

    def refuse(self, machine: str) -> None:
        """Count something that could not be used; "": of no machine."""
        if machine in self.refused or len(self.refused) < MACHINES:
            self.refused[machine] = self.refused.get(machine, 0) + 1

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
            if far.is_up and silent > QUIET:
                far.is_up = False
                far.why = SILENCE
                far.says["lost"] = None
                self.woken.set()
            if silent > TTL and far.rows and not far.is_up:
                for key in [*far.rows]:
                    self._drop(far, key)
                self.woken.set()
        if self.is_read and now >= self._counted + COUNT:
            self.left_out, self._counted = self.window.left_out, now
        for key in self.window.vacancies() if self.is_read else ():
            self._show(key, self.machines[key.machine].rows[key])

    # ------------------------------------------------------------ what comes in

    def begin(self) -> None:
        """Expect all rows."""
        self.is_read = False
        for far in self.machines.values():
            far.found = {}

    def complete(self) -> None:
        """Note that all rows were read: missing ones are gone."""
        self.is_read = True
        for far in self.machines.values():
            for key in [k for k in far.rows if k not in far.found]:
                self._drop(far, key)
            far.found = {}
            far.says |= {"hello": None, "state": None}
            if not far.is_up:
                far.why = far.why or SILENCE
                far.says["lost"] = None
        self.woken.set()

    def row(self, key: Key, item: Item, age: float) -> None:
        """Take a row, a beat, or the removal of one; `age`: for how long it has been stored."""
        far = self._far(key.machine)
        if far is None:
            return
        if not self.is_read:
            if item.seq <= far.found.get(key, 0):
                return  # while we read what is stored, something newer came
            far.found[key] = item.seq
        if key.is_beat:
            self._beat(far, item, age)
            return
        if item.operation or not item.data:
            self._drop(far, key)
            return
        given = object_of(value_of(item.data))
        row = row_of(given.get("row"))
        if row is None or (row.session_id, row.agent) != (key.session, key.agent):
            self.refuse(key.machine)
            return
        if not _is_wanted(row, self.wanted):
            self._drop(far, key)
            return
        if key not in far.rows and len(far.rows) >= MOST:
            self.refuse(key.machine)
            return
        moved = moved_of(given.get("moved"))
        if moved is not None and moved.session_id == key.session:
            far.note(moved, given.get("cursor"))
        far.rows[key] = row
        far.advance(given.get("cursor"))
        self._show(key, row)

    def news(self, key: Key, item: Item) -> None:
        """Take a transition."""
        far = self._far(key.machine)
        moved = moved_of(given := object_of(value_of(item.data)))
        if far is None:
            return
        if moved is None or moved.session_id != key.session:
            self.refuse(key.machine)
            return
        cursor = f"{given.get('database')}.{moved.id}"
        far.advance(cursor)
        far.note(moved, cursor)
        self.woken.set()

    # ------------------------------------------------------------ what goes out

    def take(self, wall: float) -> list[tuple[str, OfOne]]:
        """Return what is new of each machine; each thing only once."""
        said: list[tuple[str, OfOne]] = [(name, Gone()) for name in self._gone]
        self._gone.clear()
        for far in self.machines.values():
            if self.is_read or "lost" in far.says:
                said += [(far.name, x) for x in far.take(self.window, wall + far.skew)]
        return said

    # ------------------------------------------------------------ parts

    def _show(self, key: Key, row: Row) -> None:
        """Report a row to the host, if it is to be shown."""
        gone = self.window.put(key, row, rotates=not self.is_read)
        for each in (key, gone):
            if each is not None and (each == gone or each in self.window):
                self.machines[each.machine].changed[each] = None
                self.woken.set()

    def _drop(self, far: Far, key: Key) -> None:
        """Forget a row, if it is known."""
        self.window.drop(key)
        if far.drop(key):
            far.changed[key] = None
            self.woken.set()

    def _far(self, machine: str) -> Far | None:
        wanted = self.wanted
        if machine == wanted.machine or (wanted.follow and machine not in wanted.follow):
            return None
        far = self.machines.get(machine)
        if far is None:
            if len(self.machines) >= MACHINES and not self._forgets_one():
                self.refuse(machine)
                return None
            far = self.machines[machine] = Far(machine)
        return far

    def _forgets_one(self) -> bool:
        """Forget a machine whose rows have expired; return whether there was one."""
        since = time.monotonic() - TTL
        for far in self.machines.values():
            if not (far.is_up or far.rows or far.changed) and far.heard < since:
                del self.machines[far.name]
                self._gone[far.name] = None
                return True
        return False

    def _beat(self, far: Far, item: Item, age: float) -> None:
        given = object_of(value_of(item.data))
        hello = read(item.data) if item.data else None
        if not isinstance(hello, Hello):
            self.refuse(far.name)
            if isinstance(hello, Problem):
                self.unread[far.name] = hello.text
            return
        self.unread.pop(far.name, None)
        counts = given.get("counts")
        counts = counts if isinstance(counts, dict) else {}
        far.counts = {status: n for status in STATUSES if (n := count_in(counts, status))}
        was, far.hello = far.hello, hello
        far.advance(given.get("cursor"))
        heard = time.monotonic() - age
        far.heard = max(far.heard, heard)
        if hello.now and age < SILENT_AFTER:
            far.skew = hello.now - (time.time() - age)
        if age < SILENT_AFTER:
            if not far.is_up or was.boot != hello.boot:
                far.is_up, far.why = True, ""
                far.says.pop("lost", None)
                far.says |= {"hello": None, "state": None}
            far.says["beat"] = None
        self.woken.set()


def _is_wanted(row: Row, wanted: Joined) -> bool:
    """Return whether a filter by agent or repository lets a row through."""
    places = {row.repository, row.repository.rpartition("/")[2], row.project} - {""}
    return (not wanted.agents or row.agent in wanted.agents) and (
        not wanted.repositories or not places.isdisjoint(wanted.repositories)
    )
