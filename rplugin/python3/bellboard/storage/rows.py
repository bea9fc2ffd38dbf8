"""Rows that cannot be what they are: set aside with a date and the reason, and the rest goes on.

A cell may hold anything, whatever its column says: SQLite keeps a text in a column of numbers, and
a byte on the disk may have changed.  What is read is checked.  A row that fails is noted, and moved
into the table `damaged` by whoever next holds the lock, so that nobody meets it twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from time import localtime, strftime
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from ..core.bounds import LATEST
from ..core.lenient import LARGEST
from .database import Database

KEYS: Final = {  # of each table, what one row is found by
    "sessions": ("session_id",),
    "transitions": ("id",),
    "events": ("id",),
    "claims": ("transition_id", "effect"),
    "applied": ("name",),
    "options": ("key",),
    "editors": ("pid",),
}
MOST_KEPT: Final = 200  # of the rows that were set aside
LONGEST: Final = 1 << 20  # bytes of one that is kept
LONGEST_NAME: Final = 200

UNSOUND: Final = (
    *(TypeError, ValueError, LookupError, ArithmeticError, RecursionError),
    msgspec.MsgspecError,
)
T = TypeVar("T")
Cells = tuple[Any, ...]


class Unsound(NamedTuple):
    """A row that was set aside."""

    t: float
    table: str
    name: str  # the session, the option, or the number of the row
    why: str

    def __str__(self) -> str:
        date = strftime("%Y-%m-%d %H:%M", localtime(self.t))
        what = "session" if self.table == "sessions" else f"a row of {self.table},"
        return f"{what} {self.name} could not be read ({self.why}) and was set aside on {date}"


class Rows(Database):
    """A database whose rows are looked at before they are believed."""

    unsound: dict[tuple[str, Cells], tuple[str, str]]  # table and key → name and reason

    def __init__(self, *given: Any, **how: Any) -> None:
        self.unsound = {}
        super().__init__(*given, **how)

    def sound(
        self, table: str, rows: Iterable[Cells], make: Callable[[Cells], T], columns: int = 1
    ) -> list[T]:
        """What each row makes, but for those that make nothing; a row begins with its key."""
        found = []
        for row in rows:
            try:
                found.append(make(row))
            except UNSOUND as e:
                self.suspect(table, row[:columns], e)
        return found

    def suspect(self, table: str, key: Cells, why: object) -> None:
        """Have a row set aside by whoever next holds the lock."""
        name = str(key[0])[:LONGEST_NAME].encode("utf-8", "backslashreplace").decode()
        reason = str(why)[:LONGEST_NAME] or type(why).__name__
        self.unsound[table, key] = name or "the ledger", reason

    def set_unsound_aside(self, now: float) -> list[Unsound]:
        """Move those rows out of the way, within the lock."""
        moved = []
        for (table, key), (name, why) in self.unsound.items():
            where = " AND ".join(
                f"{c} IS {_mark(x)}" for c, x in zip(KEYS[table], key, strict=True)
            )
            values = [_bound(x) for x in key]
            rows = self.all(f"SELECT * FROM {table} WHERE {where}", *values)
            if rows:
                row = msgspec.msgpack.encode([_bound(cell) for cell in rows[0]])[:LONGEST]
                found = Unsound(now, table, name, why)
                self.db.execute("INSERT INTO damaged VALUES (NULL, ?, ?, ?, ?, ?)", (*found, row))
                self.db.execute(f"DELETE FROM {table} WHERE {where}", values)
                moved.append(found)
        self.unsound.clear()
        if moved:
            query = "DELETE FROM damaged WHERE id <= (SELECT max(id) FROM damaged) - ?"
            self.db.execute(query, (MOST_KEPT,))
        return moved

    def set_aside_since(self, t: float) -> list[Unsound]:
        """The rows that were set aside since then, oldest first."""
        try:
            rows = self.all("SELECT t, source, name, why FROM damaged WHERE t >= ? ORDER BY id", t)
            return [Unsound(time(r[0]), *map(text, r[1:])) for r in rows]
        except (sqlite3.OperationalError, *UNSOUND):  # an older database, read only
            return []


# ---------------------------------------------------------------- what a cell may hold


def text(cell: object) -> str:
    """It, if it is text that can be written again."""
    if not isinstance(cell, str) or not _is_whole(cell):
        raise ValueError(f"{_shown(cell)} is no text")
    return cell


def text_or_none(cell: object) -> str | None:
    return None if cell is None else text(cell)


def number(cell: object, least: int = 0) -> int:
    """It, if it is a whole number that can be counted on from."""
    if type(cell) is not int or not least <= cell < LARGEST:
        raise ValueError(f"{_shown(cell)} is no number that fits")
    return cell


def time(cell: object) -> float:
    """It, if it is a time."""
    if not isinstance(cell, int | float) or not abs(cell) <= LATEST:
        raise ValueError(f"{_shown(cell)} is no time")
    return float(cell)


def blob(cell: object) -> bytes:
    """It, if it is bytes."""
    if not isinstance(cell, bytes):
        raise ValueError(f"{_shown(cell)} is no record")
    return cell


def _shown(cell: object) -> str:
    return repr(cell)[:40]


def _is_whole(cell: str) -> bool:
    try:
        return cell.isascii() or bool(cell.encode())
    except UnicodeEncodeError:
        return False


def _bound(cell: Any) -> Any:
    """A cell as SQLite takes it back."""
    if isinstance(cell, str) and not _is_whole(cell):
        return cell.encode("utf-8", "surrogateescape")
    return cell


def _mark(cell: Any) -> str:
    return "CAST(? AS TEXT)" if isinstance(cell, str) else "?"
