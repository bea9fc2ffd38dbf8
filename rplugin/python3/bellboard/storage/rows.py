"""Validate rows, and set damaged ones aside with a date and the reason.

A cell may hold anything, whatever its column says: SQLite stores text in a numeric column, and a
byte on disk may have changed.  So every value is checked.  A row that fails is noted, and the next
host that holds the lock moves it to the table `damaged`.  A huge cell is never read: moving or
deleting 300 MB takes seconds, so the whole file is set aside instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from time import localtime, strftime
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from ..core.untrusted import LARGEST, LATEST
from ..system.failures import described
from .database import Damaged, Database

KEYS: Final = {  # table → the columns that identify a row
    "sessions": ("session_id",),
    "transitions": ("id",),
    "events": ("id",),
    "claims": ("transition_id", "effect"),
    "applied": ("name",),
    "options": ("key",),
    "editors": ("pid",),
}
BLOBS: Final = {"sessions": "record", "events": "event", "options": "value"}
MOST_KEPT: Final = 200  # damaged rows to keep
LONGEST_ROW: Final = 1 << 20  # bytes to keep of one
LONGEST_NAME: Final = 200
LARGEST_CELL: Final = 8 << 20  # bytes to read; a record has some kB

UNSOUND: Final = (
    *(TypeError, ValueError, LookupError, ArithmeticError, RecursionError),
    msgspec.MsgspecError,
)
T = TypeVar("T")
Cells = tuple[Any, ...]


class Unsound(NamedTuple):
    """A damaged row that was set aside."""

    t: float
    table: str
    name: str  # the session, the option, or the row number
    why: str

    def __str__(self) -> str:
        date = strftime("%Y-%m-%d %H:%M", localtime(self.t))
        what = "session" if self.table == "sessions" else f"row of {self.table}"
        return f"{what} {self.name} could not be read ({self.why}) and was set aside on {date}"


class Rows(Database):
    """A database whose rows are validated."""

    unsound: dict[tuple[str, Cells], tuple[str, str]]  # table and key → name and reason

    def __init__(self, *given: Any, **how: Any) -> None:
        self.unsound = {}
        super().__init__(*given, **how)

    def sound(
        self, table: str, rows: Iterable[Cells], make: Callable[[Cells], T], columns: int = 1
    ) -> list[T]:
        """Convert rows with `make`, skipping those that fail; a row starts with its key columns."""
        found = []
        for row in rows:
            try:
                found.append(make(row))
            except UNSOUND as e:
                self.suspect(table, row[:columns], e)
        return found

    def suspect(self, table: str, key: Cells, why: object) -> None:
        """Note a damaged row, to be set aside by whoever next holds the lock."""
        name = str(key[0])[:LONGEST_NAME].encode("utf-8", "backslashreplace").decode()
        reason = (described(why) if isinstance(why, Exception) else str(why))[:LONGEST_NAME]
        self.unsound[table, key] = name or "the ledger", reason

    def set_unsound_aside(self, now: float) -> list[Unsound]:
        """Set the noted rows aside; call this within the lock."""
        moved = []
        for (table, key), (name, why) in self.unsound.items():
            where = " AND ".join(
                f"{c} IS {_mark(x)}" for c, x in zip(KEYS[table], key, strict=True)
            )
            values = [_bound(x) for x in key]
            self._check_size(table, where, values)
            rows = self.all(f"SELECT * FROM {table} WHERE {where}", *values)
            if rows:
                row = msgspec.msgpack.encode([_bound(cell) for cell in rows[0]])[:LONGEST_ROW]
                found = Unsound(now, table, name, why)
                self.db.execute("INSERT INTO damaged VALUES (NULL, ?, ?, ?, ?, ?)", (*found, row))
                self.db.execute(f"DELETE FROM {table} WHERE {where}", values)
                moved.append(found)
        self.unsound.clear()
        if moved:
            query = "DELETE FROM damaged WHERE id <= (SELECT max(id) FROM damaged) - ?"
            self.db.execute(query, (MOST_KEPT,))
        return moved

    def _check_size(self, table: str, where: str, values: list[Any]) -> None:
        """Raise Damaged if a row is too large to be moved."""
        column = BLOBS.get(table)
        query = f"SELECT 1 FROM {table} WHERE {where} AND length({column}) > {LARGEST_CELL}"
        if column and self.all(query, *values):
            raise Damaged(f"{self.path}: a row of {table} is far too large", self.inode)

    def set_aside_since(self, t: float) -> list[Unsound]:
        """Return the rows set aside since `t`, oldest first."""
        try:
            rows = self.all("SELECT t, source, name, why FROM damaged WHERE t >= ? ORDER BY id", t)
            return [Unsound(time(r[0]), *map(text, r[1:])) for r in rows]
        except (sqlite3.OperationalError, *UNSOUND):  # an older database, read only
            return []


# ---------------------------------------------------------------- cells


def moderate(column: str) -> str:
    """Return an expression for a column, 0 if a cell is huge; SQLite need not read it for that."""
    return f"CASE WHEN length({column}) > {LARGEST_CELL} THEN 0 ELSE {column} END"


def text(cell: object) -> str:
    """Return a cell that is valid text."""
    if not isinstance(cell, str) or not _is_whole(cell):
        raise ValueError(f"{_shown(cell)} is not text")
    return cell


def text_or_none(cell: object) -> str | None:
    return None if cell is None else text(cell)


def number(cell: object, least: int = 0) -> int:
    """Return a cell that is an integer in range."""
    if type(cell) is not int or not least <= cell < LARGEST:
        raise ValueError(f"{_shown(cell)} is not a number in range")
    return cell


def time(cell: object) -> float:
    """Return a cell that is a time."""
    if not isinstance(cell, int | float) or not abs(cell) <= LATEST:
        raise ValueError(f"{_shown(cell)} is not a time")
    return float(cell)


def blob(cell: object) -> bytes:
    """Return a cell that is bytes."""
    if not isinstance(cell, bytes):
        raise ValueError(f"{_shown(cell)} is not a record")
    return cell


def _shown(cell: object) -> str:
    return repr(cell)[:40]


def _is_whole(cell: str) -> bool:
    try:
        return cell.isascii() or bool(cell.encode())
    except UnicodeEncodeError:
        return False


def _bound(cell: Any) -> Any:
    """Return a cell in a form that SQLite accepts again."""
    if isinstance(cell, str) and not _is_whole(cell):
        return cell.encode("utf-8", "surrogateescape")
    return cell


def _mark(cell: Any) -> str:
    return "CAST(? AS TEXT)" if isinstance(cell, str) else "?"
