"""The file board.db: many have it open, one at a time writes, and it may be damaged or newer.

`board.lock` tells who has it open: each holds a shared lock on it, which the kernel takes back
when the process dies. Only who gets it alone sets a damaged database aside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .mounts import network_of
from .schema import MIGRATIONS, SCHEMA, migrate, version_of

CHECKPOINT: Final = 4000  # pages, 16 MB: a checkpoint waits for the disk, so they are to be rare
WAL_LIMIT: Final = CHECKPOINT << 12  # bytes of the log that stay on the disk
WAIT_MS: Final = 20  # for the lock, with the event loop standing still


class Busy(Exception):
    """Another host holds the lock."""


class Newer(Exception):
    """The database was written by a newer program; this one may not write it."""


class Damaged(sqlite3.DatabaseError):
    """The file is no database, or not a whole one."""

    def __init__(self, text: str, inode: int) -> None:
        super().__init__(text)
        self.inode = inode  # of the file that is


class Database:
    """One connection to board.db: many have it open, one at a time writes."""

    def __init__(
        self,
        home: Path,
        readonly: bool = False,
        network: str | None = None,
        schema: int = SCHEMA,
        migrations: Mapping[int, str] = MIGRATIONS,
    ) -> None:
        self.path = home / "board.db"
        self.network = network_of(home) if network is None else network
        self.readonly = readonly
        self.schema = schema
        self._seen = -1  # what SQLite says of commits by others
        self.is_changed = True  # by another connection, since somebody cleared this
        self._inode = 0
        self._share = -1 if readonly else _share(home)
        try:
            with self.plainly():
                self.db = self._open_readonly() if readonly else self._open(migrations)
        except BaseException:
            self._leave()
            raise

    def _open(self, migrations: Mapping[int, str]) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self._inode = self.path.stat().st_ino
        db = sqlite3.connect(self.path, timeout=1.0, isolation_level=None)
        try:
            # WAL needs shared memory, which no network file system gives
            db.execute(f"PRAGMA journal_mode = {'DELETE' if self.network else 'WAL'}")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
            migrate(db, self.schema, migrations)
            db.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
        except BaseException:
            db.close()
            raise
        return db

    def _open_readonly(self) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, timeout=WAIT_MS / 1000, isolation_level=None)

    def close(self) -> None:
        self.db.close()
        self._leave()

    def _leave(self) -> None:
        if self._share >= 0:
            os.close(self._share)
            self._share = -1

    def is_replaced(self) -> bool:
        """Whether the path leads to another file by now: it was set aside, or removed."""
        try:
            return self.path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    @contextlib.contextmanager
    def plainly(self) -> Iterator[None]:
        """Say Busy or Damaged for what SQLite says in many ways."""
        try:
            yield
        except sqlite3.DatabaseError as e:
            self.complain(e)
            raise

    def complain(self, e: BaseException) -> None:
        """Raise Busy or Damaged if that is what it means."""
        if isinstance(e, sqlite3.OperationalError):
            if "locked" in str(e) or "busy" in str(e):
                raise Busy from None
        elif type(e) is sqlite3.DatabaseError:  # SQLITE_CORRUPT, SQLITE_NOTADB
            raise Damaged(f"{self.path}: {e}", self._inode) from None

    def all(self, query: str, *values: object) -> list[Any]:
        with self.plainly():
            return self.db.execute(query, values).fetchall()

    # ------------------------------------------------------------ the lock

    def lock(self) -> Lock:
        """Hold the write lock; commit at the end, or leave everything as it was."""
        return Lock(self)

    def check_version(self) -> None:
        """Raise Newer if a newer program has been here."""
        if version_of(self.db) > self.schema:
            raise Newer("board.db belongs to a newer bellboard: restart Neovim")

    def holder(self) -> int | None:
        """The process that holds the lock, where the system tells."""
        # what SQLite locks to write: a byte of the shared memory, or RESERVED of the file itself
        places = (f"{self.path}-shm", "120"), (str(self.path), "1073741825")
        with contextlib.suppress(OSError):
            held = [row.split() for row in Path("/proc/locks").read_text().splitlines()]
            for path, byte in places:
                with contextlib.suppress(FileNotFoundError):
                    inode = str(Path(path).stat().st_ino)
                    for row in held:  # 1: POSIX ADVISORY WRITE 4711 fd:01:2345 120 120
                        if (
                            row[3:4] == ["WRITE"]
                            and row[5].endswith(f":{inode}")
                            and row[6] == byte
                        ):
                            return int(row[4])
        return None

    def look(self) -> None:
        """Notice whether another connection has committed; costs no lock."""
        before, self._seen = self._seen, self.db.execute("PRAGMA data_version").fetchone()[0]
        self.is_changed = self.is_changed or before != self._seen


class Lock:
    """A transaction; a class of its own, for two generators would take as long as BEGIN does."""

    def __init__(self, base: Database) -> None:
        self.base = base

    def __enter__(self) -> None:
        base = self.base
        try:
            base.db.execute("BEGIN IMMEDIATE")
            base.look()
            if base.is_changed:
                base.check_version()
        except BaseException as e:
            self._roll_back()
            base.complain(e)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self.base.db.execute("COMMIT")
                return
            except BaseException as e:
                self._roll_back()
                self.base.complain(e)
                raise
        self._roll_back()
        self.base.complain(error)

    def _roll_back(self) -> None:
        self.base.is_changed = True  # what was remembered of it may not be true
        if self.base.db.in_transaction:
            self.base.db.execute("ROLLBACK")


def _share(home: Path) -> int:
    """Note that this process has the database open; the kernel forgets it with the process."""
    fd = os.open(home / "board.lock", os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):  # a network file system without locks
        fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def set_aside(home: Path, inode: int) -> Path | None:
    """Move a damaged database away, dated; None if another host has it open.

    `inode` is the damaged file's: another host may have replaced it already.
    """
    path = home / "board.db"
    fd = os.open(home / "board.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino != inode:
            return path
        date = time.strftime("%Y%m%d-%H%M%S")
        there = home / f"board.db.damaged-{date}-{random.randrange(1000):03}"
        for suffix in ("-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{there}{suffix}")
        path.rename(there)
    except BlockingIOError:
        return None
    except FileNotFoundError:
        return path
    finally:
        os.close(fd)
    return there
