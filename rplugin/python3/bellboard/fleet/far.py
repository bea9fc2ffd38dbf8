"""A machine of a fleet as we know it, and what is still to be passed on about it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..core.feed import (
    MOST,
    Beat,
    Change,
    Cursor,
    Hello,
    Moved,
    OfOne,
    Problem,
    State,
    cursor_of,
)
from ..core.row import Row
from .subjects import Key
from .window import Window

TWICE: Final = 256  # transitions of a machine to remember: each comes with its row and on its own


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
        self._noted: dict[Cursor, None] = {}  # where these transitions are
        self.found: dict[Key, int] = {}  # the number of each, while all rows are read again
        self.told: set[Key] = set()  # the sessions that the host knows
        self.says: dict[str, None] = {}  # what to pass on besides changes: hello, state, beat

    def note(self, moved: Moved, cursor: object) -> None:
        """Keep a transition until it is passed on, once; `cursor`: any of the same database."""
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
        """Move to a later cursor; one of another database is later."""
        new, old = cursor_of(cursor), cursor_of(self.cursor)
        if new is None:
            return
        if old is None or old.database != new.database or new.last >= old.last:
            self.cursor = str(new)

    def drop(self, key: Key) -> bool:
        """Forget a row; return whether it was known."""
        return self.rows.pop(key, None) is not None

    def take(self, window: Window, now: float) -> list[OfOne]:
        """Return what is new about it, and mark that as passed on."""
        said: list[OfOne] = []
        says, changed, moved = self.says, self.changed, tuple(self.moved.values())
        self.says, self.changed, self.moved = {}, {}, {}
        if "hello" in says and self.hello.machine:
            said.append(replace(self.hello, now=now))
        if "state" in says:
            keys = [key for key in self.rows if key in window]
            self.told = set(keys)
            rows = tuple(self.rows[key] for key in keys)
            said.append(State(now, self.cursor, tuple(key.session for key in keys), rows, moved))
        elif changed or moved:
            keys = [key for key in changed if key in self.rows and key in window]
            gone = self.told.intersection(changed).difference(keys)
            self.told = self.told.union(keys) - gone
            rows = tuple(self.rows[key] for key in keys)
            said.append(Change(now, self.cursor, rows, tuple(key.session for key in gone), moved))
        elif "beat" in says:
            said.append(Beat(now, self.cursor))
        if "lost" in says:
            said.append(Problem(self.why))
        return said
