"""board.db, shared by all hosts: one writer at a time, any number of readers, and any may die.

The contract of the hosts (`folding.py` keeps it, this file supports it):

1. A host takes the write lock (`lock`: BEGIN IMMEDIATE) and only then lists and reads the spool.
   So no host has folded what it finds there, unless its name is in `applied`.
2. Names in `applied` are skipped: their host has not unlinked them yet, or died before it could.
3. Events are folded one by one.  One that raises goes to `spool/bad` with its traceback, and the
   board is unchanged.
4. Sessions, transitions, events and names are written in one transaction (WAL, synchronous=NORMAL:
   the death of a process loses or duplicates nothing; a crash of the machine may lose the last
   moments).
5. Only then are the files unlinked.  A name leaves `applied` in a later transaction, once its file
   is gone: soon, by the host that unlinked it, or later, by whichever host sweeps (`sweep`).
6. Every host publishes from its own cursors (`revision`, `transition`), no matter who committed.

Sessions carry the revision of the transaction that wrote them.  Under the lock, a host updates its
memory with the rows newer than its own revision; a row without a record is a deleted session.  So
the result of a fold, and its clock, depend only on what was committed, not on the host.

Effects that happen once per machine are claimed first (`shared.py`), so they run at most once.

Versions: `user_version` is the schema.  A newer program migrates under the lock; an older one stops
writing to a newer database (`Newer`).  A damaged database (`Damaged`) is renamed with a date, once
nobody else has it open; the spool loses nothing.  A damaged row moves to a table of its own
(`rows.py`).  Events committed to a file that was removed or replaced (`Replaced`) are not unlinked,
and are folded again.  If the WAL file is lost, a host stops writing: others may have a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from ..core.board import Board
from ..core.events import Event
from ..core.records import LEDGER, Folded, Transition
from ..core.session import is_far, is_listed
from ..core.untrusted import LARGEST
from .database import Busy, Damaged, Draining, Newer, Replaced
from .rows import UNSOUND, Cells, blob, moderate, number, text, time
from .schema import SCHEMA
from .shared import Claim, Editor, Shared
from .upkeep import KEEP

#: Kinds of events with the time since which something is true, maybe before it was noticed.
DATED: Final = frozenset(
    {"registry", "process gone", "screen idle", "screen busy", "screen waiting", "far"}
)
TWICE: Final = 60.0  # seconds in which several hosts may report the same finding under one name

__all__ = [
    "KEEP",
    "SCHEMA",
    "Busy",
    "Claim",
    "Damaged",
    "Draining",
    "Editor",
    "Newer",
    "Replaced",
    "Store",
]


_encode = msgspec.msgpack.Encoder().encode


class Store(Shared):
    """The contents of board.db."""

    revision = 0  # the newest one that the board in memory has
    _applied: set[str] | None = None  # cached names, valid until another host commits

    def __init__(self, *given: Any, **how: Any) -> None:
        self.mend: set[str] = set()  # sessions with a damaged row, to be written again
        super().__init__(*given, **how)

    # ------------------------------------------------------------ sessions

    def refresh(self, board: Board) -> set[str]:
        """Update the board in memory with what was committed; return the changed sessions."""
        query = f"SELECT session_id, revision, {moderate('record')} FROM sessions"
        if self.revision:  # otherwise read all: a comparison does not find a damaged revision
            query += f" WHERE revision > {self.revision} AND revision < {LARGEST}"
        rows = self.all(query)
        found = self.sound("sessions", rows, self._known)
        try:
            board.load((sid, body) for sid, _, body in found if body is not None)
        except UNSOUND:
            self._load_singly(board, found)
        for sid, revision, body in found:
            self.revision = max(self.revision, revision)
            if body is None:
                board.drop(sid)
                board.dirty.discard(sid)
        return {r[0] for r in found} - {LEDGER}

    def _known(self, row: Cells) -> tuple[str, int, bytes | None]:
        """Validate a row of sessions; note a damaged one, to be written again."""
        sid = text(row[0])
        try:
            return sid, number(row[1]), None if row[2] is None else blob(row[2])
        except ValueError:
            self.mend.add(sid)
            if isinstance(row[2], bytes):
                return sid, 0, row[2]  # only its time of writing is unknown
            raise

    def _load_singly(self, board: Board, found: Sequence[tuple[str, int, bytes | None]]) -> None:
        for sid, _, body in found:
            if body is not None:
                try:
                    board.load([(sid, body)])
                except UNSOUND as e:
                    self.suspect("sessions", (sid,), e)
                    self.mend.add(sid)

    def write(
        self,
        board: Board,
        names: Iterable[str],
        folded: Sequence[tuple[str, Folded]],
        live_since: float,
        now: float,
        behind: int = 0,
    ) -> None:
        """Write the results of folding these files; call this within the lock.

        Skip the event log if the `behind` files still pending would push these events out of it.
        """
        db = self.db
        rows = [(n, now) for n in names]
        db.executemany("INSERT INTO applied VALUES (?, ?)", rows)
        if self._applied is not None:
            self._applied.update(n for n, _ in rows)
        if folded and behind < self.keep_events:
            log = [_row(file, f) for file, f in folded]
            db.executemany("INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", log)
            far = [row for row in log if is_far(row[0])]
            self.limit("events", self.keep_events, len(log), len(far))
            self.limit_bytes(*(sum(len(row[-1]) for row in rows) for rows in (log, far)))
        if folded:
            board.dirty.add(LEDGER)  # the next host must fold with the same clock
        changes = [
            (*astuple(c), _is_live(f.event, c, live_since)) for _, f in folded for c in f.changes
        ]
        if changes:
            db.executemany("INSERT INTO transitions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", changes)
            far = [row for row in changes if is_far(row[1])]
            self.limit("transitions", self.keep_transitions, len(changes), len(far))
        dirty = board.take_dirty()
        if dirty:
            query = f"SELECT max(revision) FROM sessions WHERE revision < {LARGEST}"
            self.revision = max(self.revision, int(db.execute(query).fetchone()[0] or 0)) + 1
            db.executemany(
                "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)",
                [(sid, self.revision, *_index(board, sid), body) for sid, body in dirty],
            )

    # ------------------------------------------------------------ names

    def applied(self, names: Sequence[str]) -> set[str]:
        """Return which of these names have been folded."""
        if self._applied is not None:
            return self._applied.intersection(names)
        found: set[str] = set()
        for start in range(0, len(names), 500):  # SQLite may allow no more than 999 marks
            part = names[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self.all(f"SELECT name FROM applied WHERE name IN ({marks})", *part)
            found.update(r[0] for r in rows)
        return found

    def caught_up(self) -> None:
        """Note that the commits of others were read, and drop the cached names."""
        self.is_changed, self._applied = False, None

    def remember_applied(self) -> None:
        """Cache the applied names, until another host commits."""
        if self._applied is None:
            self._applied = {r[0] for r in self.all("SELECT name FROM applied")}

    def forget_applied(self, names: Iterable[str]) -> None:
        """Forget names whose files are gone; call this within the lock."""
        names = list(names)
        self.db.executemany("DELETE FROM applied WHERE name = ?", [(n,) for n in names])
        if self._applied is not None:
            self._applied.difference_update(names)

    def sweep(self, now: float, is_there: Callable[[str], bool]) -> None:
        """Forget the names that dead hosts left, and those kept against duplicates."""
        old = now - TWICE
        if self.all("SELECT 1 FROM applied WHERE t NOT BETWEEN ? AND ? LIMIT 1", old, now + TWICE):
            with self.lock():
                rows = self.all("SELECT name, t FROM applied")
                named = self.sound("applied", rows, lambda r: (text(r[0]), time(r[1])))
                gone = [n for n, t in named if not old < t < now + TWICE and not is_there(n)]
                self.forget_applied(gone)


def _row(file: str, f: Folded) -> tuple[Any, ...]:
    own = next((c for c in f.changes if c.session_id == f.session_id), None)
    statuses = (own.before, own.after) if own else (None, None)
    rule, taken, why = f.verdict
    return (f.session_id, file, rule, taken, why, *statuses, _encode(f.event))


def _is_live(e: Event, c: Transition, since: float) -> bool:
    """Return whether it happened, and was not only noticed, while a host was running."""
    happened = min(e.t, e.at) if e.kind in DATED else e.t
    return min(c.t, happened) >= since and c.after != "unknown"


def _index(board: Board, sid: str) -> tuple[bool, float]:
    """Return the other columns of a record: whether it is listed, and its newest evidence."""
    s = board.sessions.get(sid)
    if s is None:
        return False, board.ledger.clock
    return is_listed(s), max(s.last, s.ended)
