"""board.db stays small and sound: what is old goes, and its pages with it, a little at a time.

Each step holds the lock, and the event loop, for a few milliseconds; what is left is for the next.
What may take longer, as it waits for the disk, is done by a thread with a connection of its own.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from typing import Any, Final

from ..core.lenient import LARGEST
from .database import Damaged
from .rows import Rows

KEEP: Final = 30 * 86400.0  # of history, and of ended sessions
GONE: Final = 3600.0  # so long a host may be suspended and still learn that a session is gone
STEP: Final = 2000  # rows that one step drops
SPARE: Final = 64  # pages that may lie free: the next events need them again
LONGEST: Final = 0.02  # seconds of giving pages back in one step
OFTEN: Final = (250, 400)  # commits between two of our checkpoints; SQLite's come at 500 or so
NUMBERED: Final = ("transitions", "events")


class Upkeep(Rows):
    """A database that does not grow for ever."""

    keep_events = 20_000  # of the log that explain and record read
    keep_bytes = 64 << 20  # of these: events are small, and may be made large
    keep_transitions = 200_000  # a month of the busiest user; against a loop gone wild

    def __init__(self, *given: Any, **how: Any) -> None:
        super().__init__(*given, **how)
        self._logged = self.keep_bytes  # bytes since they were last counted: count at the first
        self.inspected = False
        self._due = random.randint(*OFTEN)
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------ within the lock, with each write

    def limit(self, table: str, most: int) -> None:
        """Keep only the newest."""
        # with every write: a busy hour between two prunes would else leave a big file for ever
        self.db.execute(
            f"DELETE FROM {table} WHERE id <="
            f" (SELECT max(id) FROM {table} WHERE id < {LARGEST}) - ?",
            (most,),
        )

    def limit_bytes(self, more: int) -> None:
        """Keep only the newest events, now that so many bytes have come."""
        self._logged += more
        if self._logged < self.keep_bytes // 16:
            return
        self._logged = 0
        rows = self.all(
            "SELECT id FROM (SELECT id, sum(length(event)) OVER (ORDER BY id DESC) AS bytes"
            " FROM events) WHERE bytes > ? LIMIT 1",
            self.keep_bytes,
        )
        if rows:
            self.db.execute(
                "DELETE FROM events WHERE id IN"
                " (SELECT id FROM events WHERE id <= ? ORDER BY id LIMIT ?)",
                (rows[0][0], STEP),
            )

    def inspect(self) -> bool:
        """See once that rows can be numbered, as after the highest number there is none."""
        if self.inspected:
            return False
        for table in NUMBERED:
            query = f"SELECT id FROM {table} WHERE id >= {LARGEST} OR id < 0 LIMIT {STEP}"
            for row in self.all(query):
                self.suspect(table, row, "its number does not fit")
        wrong = f"typeof(seq) != 'integer' OR seq >= {LARGEST} OR seq < 0"
        for (table,) in self.all(f"SELECT name FROM sqlite_sequence WHERE {wrong}"):
            if table in NUMBERED:
                highest = f"SELECT coalesce(max(id), 0) FROM {table} WHERE id < {LARGEST}"
                self.db.execute(
                    f"UPDATE sqlite_sequence SET seq = ({highest}) WHERE name = ?", (table,)
                )
        self.inspected = True
        return True

    # ------------------------------------------------------------ now and then

    def prune(self, now: float) -> None:
        """Drop what is older than it is kept."""
        old = now - KEEP
        newest = f"(SELECT max(revision) FROM sessions WHERE revision < {LARGEST})"
        with self.lock():
            for query, *values in (
                # the newest revision stays: hosts compare theirs with it
                (
                    "DELETE FROM sessions WHERE session_id IN (SELECT session_id FROM sessions"
                    " WHERE session_id != '' AND NOT listed AND last < ?"
                    f" AND (record IS NULL OR last < ?) AND revision < {newest} LIMIT {STEP})",
                    *(now - GONE, old),
                ),
                (
                    "DELETE FROM transitions WHERE id IN"
                    f" (SELECT id FROM transitions WHERE t < ? LIMIT {STEP})",
                    old,
                ),
                (
                    "DELETE FROM claims WHERE (transition_id, effect) IN"
                    f" (SELECT transition_id, effect FROM claims WHERE t < ? LIMIT {STEP})",
                    old,
                ),
            ):
                self.db.execute(query, values)

    def shrink(self) -> None:
        """Give pages that lie free back to the disk."""
        if self._free() <= SPARE:
            return
        if self.all("PRAGMA auto_vacuum") != [(2,)]:  # made by an older program
            self._aside("PRAGMA auto_vacuum = INCREMENTAL", "VACUUM")
            return
        until = time.monotonic() + LONGEST
        # damage met in here alone is in no event's way: whoever needs a page meets it too
        with contextlib.suppress(Damaged), self.lock():
            while (free := self._free()) > SPARE and time.monotonic() < until:
                self.db.execute(f"PRAGMA incremental_vacuum({min(free - SPARE, SPARE)})").fetchall()
        self._aside("PRAGMA wal_checkpoint")

    def _free(self) -> int:
        return int(self.all("PRAGMA freelist_count")[0][0])

    def keep_log_small(self) -> None:
        """Have SQLite's log copied into the file, before a COMMIT has to wait for that."""
        if self.commits >= self._due:
            self.commits, self._due = 0, random.randint(*OFTEN)
            self._aside("PRAGMA wal_checkpoint")

    def _aside(self, *statements: str) -> None:
        """Run them beside the event loop; one such thread at a time, and if it hangs, one."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, args=statements, daemon=True)
            self._thread.start()

    def _run(self, *statements: str) -> None:
        uri = f"{self.path.absolute().as_uri()}?mode=rw"
        with contextlib.suppress(sqlite3.Error):  # held, full, gone: the next time will do
            db = sqlite3.connect(uri, uri=True, timeout=1.0, isolation_level=None)
            with contextlib.closing(db):
                for statement in statements:
                    db.execute(statement).fetchall()
