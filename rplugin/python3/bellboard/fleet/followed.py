"""The machines of a fleet as we know them: rows and transitions become the messages of a feed.

A machine is identified by the name that the server lets it write under, whatever it claims.
Changes wait here, one for each session, until the host has taken earlier changes: a slow host
misses states in between, and no queue grows.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from itertools import chain, islice
from operator import itemgetter
from typing import Final

from msgspec.structs import replace

from ..core.feed import (
    MOST,
    QUIET,
    SILENT_AFTER,
    Beat,
    Cursor,
    FeedChange,
    FeedProblem,
    FeedState,
    Gone,
    Hello,
    Moved,
    OfOne,
    cursor_of,
    moved_of,
    read,
)
from ..core.published import needs_somebody
from ..core.row import Row, count_in, row_of
from ..core.session import STATUSES
from ..core.untrusted import object_of, value_of
from .member import Joined
from .streams import TTL, Stored
from .subjects import Key

# The shown sessions: all that need somebody, and as many others as there is room for.
#
# A person reads the board, and this machine stores, draws and announces each of its rows.  So it
# shows a limited part of a large fleet, and counts the rest.  If there is no room for all that need
# somebody, the machine with most of them makes room for others: no machine fills the board alone.

SHOWN: Final = 1000


class Window:
    """The keys of sessions with their statuses: shown sessions, and all others."""

    def __init__(self, most: int = SHOWN) -> None:
        self._most = most
        self._urgent: dict[Key, str] = {}  # shown, the oldest change first
        self._calm: dict[Key, str] = {}
        self._waiting: dict[Key, str] = {}  # not shown, but urgent
        self._others: dict[Key, str] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._urgent or key in self._calm

    @property
    def left_out(self) -> dict[str, int]:
        """Return the number of hidden sessions by status."""
        return dict(Counter([*self._waiting.values(), *self._others.values()]))

    @property
    def is_short(self) -> bool:
        """Return whether sessions that need somebody are not shown."""
        return bool(self._waiting)

    def put(self, key: Key, row: Row, rotates: bool = False) -> Key | None:
        """Note that a session changed; return the session that makes room for it, if any.

        An urgent session replaces a calm one, or a session of a machine that shows more.
        A calm session replaces a calm one if `rotates`.
        """
        self.drop(key)
        is_urgent, gone = needs_somebody(row.status, row.markers, row.hidden), None
        if not self._room():
            gone = next(iter(self._calm), None) if is_urgent or rotates else None
            if gone is not None:
                self._others[gone] = self._calm.pop(gone)
            elif is_urgent and (gone := self._excess(key.machine)) is not None:
                self._waiting[gone] = self._urgent.pop(gone)
            else:
                (self._waiting if is_urgent else self._others)[key] = row.status
                return None
        (self._urgent if is_urgent else self._calm)[key] = row.status
        return gone

    def drop(self, key: Key) -> None:
        """Forget a session."""
        for part in (self._urgent, self._calm, self._waiting, self._others):
            part.pop(key, None)

    def vacancies(self) -> list[Key]:
        """Return hidden sessions for which there is room now."""
        return list(islice(chain(self._waiting, self._others), max(self._room(), 0)))

    def _excess(self, machine: str) -> Key | None:
        """Return an urgent session of the machine that shows most, if it can make room."""
        shown = Counter(key.machine for key in self._urgent)
        most, count = max(shown.items(), key=itemgetter(1))
        if count <= shown[machine] + 1:
            return None
        return next(key for key in self._urgent if key.machine == most)

    def _room(self) -> int:
        return self._most - len(self._urgent) - len(self._calm)


# A machine of a fleet as we know it, and its news for the host.


TWICE: Final = 256  # transitions to remember of a machine: each comes twice, with its row and alone


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
        self.changed: dict[Key, None] = {}
        self.moved: dict[int, Moved] = {}
        self._noted: dict[Cursor, None] = {}  # cursors of the transitions
        self.found: dict[Key, int] = {}  # key → sequence number, while all rows are read again
        self.told: set[Key] = set()  # the sessions that the host knows
        self.says: dict[str, None] = {}  # messages to pass on besides changes: hello, state, beat

    def note(self, moved: Moved, cursor: object) -> None:
        """Keep a transition until it is passed on, once; `cursor` is any of the same database."""
        known = cursor_of(cursor) or Cursor("", 0)
        at = known._replace(last=moved.id)
        if at in self._noted:
            return
        self._noted[at] = None
        if len(self._noted) > TWICE:
            del self._noted[next(iter(self._noted))]
        self.moved[moved.id] = moved
        while len(self.moved) > MOST:
            del self.moved[next(iter(self.moved))]

    def advance(self, cursor: object) -> None:
        """Move to a later cursor; a cursor of another database counts as later."""
        new, old = cursor_of(cursor), cursor_of(self.cursor)
        if new is None:
            return
        if old is None or old.database != new.database or new.last >= old.last:
            self.cursor = str(new)

    def drop(self, key: Key) -> bool:
        """Forget a row; return whether it was known."""
        return self.rows.pop(key, None) is not None

    def take(self, window: Window, now: float) -> list[OfOne]:
        """Return the news of the machine, and mark it as passed on."""
        said: list[OfOne] = []
        says, changed, moved = self.says, self.changed, tuple(self.moved.values())
        self.says, self.changed, self.moved = {}, {}, {}
        if "hello" in says and self.hello.machine:
            said.append(replace(self.hello, now=now))
        if "state" in says:
            keys = [key for key in self.rows if key in window]
            self.told = set(keys)
            rows = tuple(self.rows[key] for key in keys)
            said.append(
                FeedState(now, self.cursor, tuple(key.session for key in keys), rows, moved)
            )
        elif changed or moved:
            keys = [key for key in changed if key in self.rows and key in window]
            gone = self.told.intersection(changed).difference(keys)
            self.told = self.told.union(keys) - gone
            rows = tuple(self.rows[key] for key in keys)
            said.append(
                FeedChange(now, self.cursor, rows, tuple(key.session for key in gone), moved)
            )
        elif "beat" in says:
            said.append(Beat(now, self.cursor))
        if "lost" in says:
            said.append(FeedProblem(self.why))
        return said


MACHINES: Final = 256  # most machines to follow
NAMED: Final = 5  # machines to name that send invalid messages
COUNT: Final = 30.0  # seconds between two counts of hidden sessions
SILENCE: Final = "it publishes nothing: no background process runs there, or it has no network"


class Followed:
    """All followed machines, and their invalid messages."""

    def __init__(self, wanted: Joined) -> None:
        self.wanted = wanted
        self.window = Window()
        self.machines: dict[str, Far] = {}
        self._gone: dict[str, None] = {}  # machines that were forgotten, to be reported
        self.refused: dict[str, int] = {}  # machine → number of invalid messages
        self.unread: dict[str, str] = {}  # machine → why its beat could not be read
        self.tries: Counter[str] = Counter()  # machine → connections that its list may have broken
        self.left_out: dict[str, int] = {}  # hidden sessions, by status
        self._counted = -COUNT
        self.is_read = False  # whether all rows were read on this connection
        self.woken = asyncio.Event()

    @property
    def notes(self) -> dict[str, str]:
        """Return the invalid messages by machine, for health."""
        refused, unread = list(self.refused.items()), dict(self.unread)
        return {
            f"fleet machine {name or 'of another name'}": unread.get(name)
            or f"{count} of its messages are not valid, and were refused: update bellboard there"
            for name, count in refused[:NAMED]
        }

    def refuse(self, machine: str) -> None:
        """Count an invalid message of a machine; "" if it names none."""
        if machine in self.refused or len(self.refused) < MACHINES:
            self.refused[machine] = self.refused.get(machine, 0) + 1

    def lose(self, why: str) -> None:
        """Note that no machine can be followed."""
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

    def row(self, key: Key, item: Stored, age: float) -> None:
        """Take a row, a beat, or the removal of either, stored `age` seconds ago."""
        far = self._far(key.machine)
        if far is None:
            return
        if not self.is_read:
            if item.seq <= far.found.get(key, 0):
                return  # a newer message came while we read the stored ones
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

    def news(self, key: Key, item: Stored) -> None:
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
        """Return the news of each machine, once."""
        said: list[tuple[str, OfOne]] = [(name, Gone()) for name in self._gone]
        self._gone.clear()
        for far in self.machines.values():
            if self.is_read or "lost" in far.says:
                said += [(far.name, x) for x in far.take(self.window, wall + far.skew)]
        return said

    # ------------------------------------------------------------ parts

    def _show(self, key: Key, row: Row) -> None:
        """Report a row to the host, if there is room for it."""
        gone = self.window.put(key, row, rotates=not self.is_read)
        for each in (key, gone):
            if each is not None and (each == gone or each in self.window):
                self.machines[each.machine].changed[each] = None
                self.woken.set()

    def _drop(self, far: Far, key: Key) -> None:
        """Forget a row, if known."""
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
        """Forget a machine whose rows have expired; return whether there was such a machine."""
        since = time.monotonic() - TTL
        for far in self.machines.values():
            if not (far.is_up or far.rows or far.changed) and far.heard < since:
                del self.machines[far.name]
                self._gone[far.name] = None
                return True
        return False

    def _beat(self, far: Far, item: Stored, age: float) -> None:
        given = object_of(value_of(item.data))
        hello = read(item.data) if item.data else None
        if not isinstance(hello, Hello):
            self.refuse(far.name)
            if isinstance(hello, FeedProblem):
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
