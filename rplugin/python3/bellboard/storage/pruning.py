"""Keep board.db small and sound: delete old rows and free their pages, a little at a time.

Each step holds the lock and blocks the event loop for a few milliseconds, and leaves the rest to
the next one.  Work that waits for the disk runs in a thread with its own connection.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from typing import Final

from ..core.untrusted import LARGEST
from ..system.threads import Thread
from .database import Damaged, Database

KEEP: Final = 30 * 86400.0  # seconds to keep history and ended sessions
GONE: Final = 3600.0  # seconds a host may be suspended and still learn that a session is gone
STEP: Final = 2000  # rows to delete in one step
PARTS: Final = 64  # of what is kept of a table: rows that are added between two counts
SPARE: Final = 64  # free pages to keep: the next events need them
SLICE: Final = 0.02  # seconds to free pages in one step
CHECK: Final = "PRAGMA integrity_check(1)"  # 100 MB take about a second
OFTEN: Final = (250, 400)  # commits between two of our checkpoints; SQLite's come at about 500
SOME: Final = 16  # commits between two checks of the room on the disk
ALL: Final = ""  # rows of a table; any condition, even "true", would make counting slow
FAR: Final = "WHERE instr(session_id, '/') > 0"  # of these, those of other machines: `is_far`
FAR_PART: Final = 4  # of a limit, one in so many: no session here loses its own to them


class Pruning:
    """The limits of a database, and what is done at intervals to keep it small and sound."""

    keep_events = 20_000  # in the log for explain and record
    keep_bytes = 64 << 20  # of these: events are small, but can be made large
    keep_transitions = 200_000  # a month of the busiest user; guards against a runaway loop

    def __init__(self, database: Database) -> None:
        self._database = database
        #: rows since the last count, by table and which of them
        self._added: dict[tuple[str, str], int] = {}
        #: bytes since the last count, by which events; so the first write counts
        self._logged = dict.fromkeys((FAR, ALL), self.keep_bytes)
        self._due = random.randint(*OFTEN)
        self._looked = 0  # commits when the room on the disk was last checked
        self._thread: Thread | None = None
        self._shrunk = False  # pages were freed in the log, and not yet in the file
        self.checked = True  # set to False, `check` begins
        self._damage = ""  # what it found

    # ------------------------------------------------------------ at each write, within the lock

    def limit(self, table: str, most: int, new: int, far: int) -> None:
        """Keep only the newest rows, after `new` were added, `far` of them of other machines."""
        # often: otherwise a busy hour between two prunes leaves a large file
        part = most // PARTS
        for which, share, more in ((FAR, most // FAR_PART, far), (ALL, most, new)):
            added = self._added.get((table, which), random.randint(0, part)) + more
            self._added[table, which] = added
            if added < part or not more:
                continue
            self._added[table, which] = 0
            ((count,),) = self._database.all(f"SELECT count(*) FROM {table} {which}")
            if count > share:
                self._database.db.execute(
                    f"DELETE FROM {table} WHERE id IN"
                    f" (SELECT id FROM {table} {which} ORDER BY id LIMIT ?)",
                    (min(count - share, STEP + added),),  # more than it grows
                )

    def limit_bytes(self, new: int, far: int) -> None:
        """Keep only the newest events, after `new` bytes, `far` of them of other machines."""
        most = self.keep_bytes
        for which, share, more in ((FAR, most // FAR_PART, far), (ALL, most, new)):
            self._logged[which] += more
            if self._logged[which] < most // 16 or not more:  # it takes 0.1 s
                continue
            self._logged[which] = 0
            rows = self._database.all(
                "SELECT id FROM (SELECT id, sum(length(event)) OVER (ORDER BY id DESC) AS bytes"
                f" FROM events {which}) WHERE bytes > ? LIMIT 1",
                share,
            )
            if rows:
                self._database.db.execute(
                    "DELETE FROM events WHERE id <= ? AND id IN"
                    f" (SELECT id FROM events {which} ORDER BY id LIMIT ?)",
                    (rows[0][0], STEP),
                )

    # ------------------------------------------------------------ at intervals

    def prune(self, now: float) -> bool:
        """Delete old rows; return whether more may be left."""
        more = False
        old = now - KEEP
        newest = f"(SELECT max(revision) FROM sessions WHERE revision < {LARGEST})"
        with self._database.lock():
            for query, *values in (
                # keep the newest revision: hosts compare theirs with it
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
                more |= self._database.db.execute(query, values).rowcount >= STEP
        return more

    def shrink(self) -> None:
        """Return free pages to the file system."""
        if self._free() > SPARE:
            self._shrunk = True
            if self._database.all("PRAGMA auto_vacuum") != [(2,)]:  # created by an older program
                self._aside("PRAGMA auto_vacuum = INCREMENTAL", "VACUUM")
                return
            until = time.monotonic() + SLICE
            # damage found only here affects no event: whoever needs the page finds it too
            with contextlib.suppress(Damaged), self._database.lock():
                while (free := self._free()) > SPARE and time.monotonic() < until:
                    step = min(free - SPARE, SPARE)
                    self._database.db.execute(f"PRAGMA incremental_vacuum({step})").fetchall()
        if self._shrunk:
            self._shrunk = not self._aside("PRAGMA wal_checkpoint")

    def _free(self) -> int:
        return int(self._database.all("PRAGMA freelist_count")[0][0])

    def check(self) -> bool:
        """Check the whole file once, in a thread; return whether to call this again soon.

        Damage in what is rarely read would be found only by whoever needs it.
        """
        if self._damage:
            raise Damaged(f"{self._database.path}: {self._damage}", self._database.inode)
        if not self.checked and not self._database.network:  # there, nobody could write meanwhile
            self.checked = self._aside(CHECK)
            return True
        return self._thread is not None and self._thread.is_alive()

    def keep_log_small(self) -> None:
        """Checkpoint SQLite's log in the background, before a COMMIT has to wait for that."""
        is_due = self._database.commits >= self._due
        if is_due or (self._database.commits >= self._looked + SOME and self._is_disk_small()):
            self._database.commits, self._due = 0, random.randint(*OFTEN)
            self._aside("PRAGMA wal_checkpoint")
        self._looked = min(self._looked, self._database.commits)

    def _is_disk_small(self) -> bool:
        """Return whether the log could soon fill the disk, with no room left to copy it."""
        self._looked = self._database.commits
        with contextlib.suppress(OSError):
            disk, log = os.statvfs(self._database.path), os.stat(f"{self._database.path}-wal")  # noqa: PTH116
            return disk.f_bavail * disk.f_frsize < 2 * log.st_size
        return False

    def _aside(self, *statements: str) -> bool:
        """Run statements in a thread, unless one still runs or hangs; return whether it began."""
        if (self._thread is not None and self._thread.is_alive()) or self._database.is_replaced():
            return False
        self._thread = Thread(target=self._run, args=statements)
        try:
            self._thread.start()
        except RuntimeError:  # the system has none to spare
            return False
        return True

    def _run(self, *statements: str) -> None:
        uri = f"{self._database.path.absolute().as_uri()}?mode=rw"
        try:
            db = sqlite3.connect(uri, uri=True, timeout=1.0, isolation_level=None)
            with contextlib.closing(db):
                for statement in statements:
                    found = db.execute(statement).fetchall()
                    if statement == CHECK and found != [("ok",)]:
                        self._damage = " ".join(str(found[0][0]).split())
        except sqlite3.OperationalError:  # locked, full, gone: try again next time
            pass
        except sqlite3.DatabaseError as e:
            self._damage = str(e)
