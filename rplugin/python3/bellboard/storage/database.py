"""The file board.db: many have it open, one at a time writes, and it may be damaged or newer.

`board.lock` tells who has it open (see `holders.py`): only who gets it alone sets a damaged
database aside.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ..system.mounts import network_of
from . import holders
from .causes import SUFFIXES, is_busy, is_damage, odd
from .identity import Identity
from .schema import MIGRATIONS, SCHEMA, UNLIKELY, migrate, version_of

CHECKPOINT: Final = 4000  # pages, 16 MB: a checkpoint waits for the disk, so they are to be rare
WAL_LIMIT: Final = CHECKPOINT << 12  # bytes of the log that stay on the disk
WAIT_MS: Final = 20  # for the lock, with the event loop standing still
PATIENCE: Final = 1.0  # for others that open it at the same time, and make its tables
MOST_ASIDE: Final = 5  # damaged ones that are kept: the newest


#: SQLITE_CORRUPT, SQLITE_NOTADB; and a message of it that quotes what is no text.
DAMAGE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)


class Busy(Exception):
    """Another host holds the lock."""


class Draining(Busy):
    """Another host works through a backlog, and gets on with it."""


class Newer(Exception):
    """The database was written by a newer program; this one may not write it."""


class Replaced(FileNotFoundError):
    """The file that is open is not the one that is there now: open that."""


class Damaged(sqlite3.DatabaseError):
    """The file is no database, or not a whole one."""

    def __init__(self, text: str, inode: int) -> None:
        super().__init__(text)
        self.inode = inode  # of the file that is


class Unmigrated(sqlite3.OperationalError):
    """An older database could not be brought forward; it is as it was."""


class Database:
    """One connection to board.db: many have it open, one at a time writes."""

    def __init__(
        self,
        home: Path,
        readonly: bool = False,
        network: str | None = None,
        schema: int = SCHEMA,
        migrations: Mapping[int, str] = MIGRATIONS,
        patience: float = PATIENCE,
    ) -> None:
        self.path = home / "board.db"
        self.patience = patience
        self.network = network_of(home) if network is None else network
        self.readonly = readonly
        self.schema = schema
        self._seen = -1  # what SQLite says of commits by others
        self.is_changed = True  # by another connection, since somebody cleared this
        self.commits = 0  # seen, ours and others', since somebody cleared this
        self._identity: Identity | None = None
        self._share = -1
        self.drain = holders.Drain(home)
        try:
            self._share = -1 if readonly else holders.share(home, patience)
            with self.plainly():
                self.db = self._open_readonly() if readonly else self._open(migrations)
        except holders.Held:
            raise Busy from None
        except BaseException:
            self._leave()
            raise

    def _open(self, migrations: Mapping[int, str]) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self._identity = Identity(str(self.path))
        if what := odd(self.path):
            raise Damaged(what, self._identity.inode)
        db = sqlite3.connect(self.path, timeout=self.patience, isolation_level=None)
        try:
            if self.path.stat().st_size == 0:  # later it would have to be written anew
                db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            # WAL needs shared memory, which no network file system gives
            db.execute(f"PRAGMA journal_mode = {'DELETE' if self.network else 'WAL'}")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
            self._migrate(db, migrations)
            db.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
            self._identity.note_logs()
        except BaseException:
            db.close()
            raise
        return db

    def _migrate(self, db: sqlite3.Connection, migrations: Mapping[int, str]) -> None:
        if not 0 <= version_of(db) < UNLIKELY:
            raise Damaged(f"{self.path}: no program has its version", self.inode)
        try:
            migrate(db, self.schema, migrations)
        except sqlite3.OperationalError as e:
            if is_busy(e):
                raise
            raise Unmigrated(f"{self.path} cannot be brought forward: {e}") from None

    def _open_readonly(self) -> sqlite3.Connection:
        """As it is with its log; where no memory can be shared (a full disk), without."""
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        db = sqlite3.connect(uri, uri=True, timeout=WAIT_MS / 1000, isolation_level=None)
        try:
            db.execute("PRAGMA schema_version")
        except sqlite3.OperationalError as e:
            if is_busy(e):
                return db
            db.close()
            db = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
        return db

    def close(self) -> None:
        """Let go of it; of a file that was removed or replaced nothing is left behind."""
        if self.is_replaced():
            with contextlib.suppress(sqlite3.Error):
                self.db.execute("PRAGMA wal_checkpoint")  # its log alone may be lost
        self.db.close()
        if self._identity is not None and self._identity.is_file_lost():
            self._identity.drop_logs()
        self._leave()

    @property
    def inode(self) -> int:
        """Of the file that is open."""
        return self._identity.inode if self._identity is not None else 0

    def _leave(self) -> None:
        self.drain.close()
        if self._share >= 0:
            os.close(self._share)
            self._share = -1

    def is_replaced(self) -> bool:
        """Whether the path, or that of its log, leads to another file by now, or to none."""
        return self._identity is not None and self._identity.is_lost()

    def check_place(self) -> None:
        """Raise Replaced if what was committed is not in the file that is there now."""
        if self.is_replaced():
            raise Replaced(f"{self.path} was removed or replaced")

    @contextlib.contextmanager
    def plainly(self) -> Iterator[None]:
        """Say Busy, Replaced or Damaged for what SQLite says in many ways."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as e:
            self.complain(e)
            raise

    def complain(self, e: BaseException) -> None:
        """Raise Busy, Replaced or Damaged if that is what it means."""
        if is_busy(e):
            raise Busy from None
        if not isinstance(e, DAMAGE) or isinstance(e, Damaged | Unmigrated):
            return
        self.check_place()
        if type(e) in DAMAGE or (not self.readonly and is_damage(e, self.path)):
            raise Damaged(f"{self.path}: {e}", self.inode) from None

    def all(self, query: str, *values: object) -> list[Any]:
        with self.plainly():
            try:
                return self.db.execute(query, values).fetchall()
            except sqlite3.OperationalError as e:
                if "decode to UTF-8" not in str(e):
                    raise
            self.db.text_factory = _odd_text
            try:
                return self.db.execute(query, values).fetchall()
            finally:
                self.db.text_factory = str

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
        return holders.holder(self.path.parent)

    def look(self) -> None:
        """Notice whether another connection has committed; costs no lock."""
        before, self._seen = self._seen, self.db.execute("PRAGMA data_version").fetchone()[0]
        if before != self._seen:
            self.is_changed = True
            self.commits += 1


def _odd_text(cell: bytes) -> str:
    """Text of a damaged cell: each byte that is none stands as half a character."""
    return cell.decode("utf-8", "surrogateescape")


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
                self.base.commits += 1
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
            with contextlib.suppress(sqlite3.Error):  # what led here says more
                self.base.db.execute("ROLLBACK")


def set_aside(home: Path, inode: int) -> Path | None:
    """Move a damaged database away, dated; None if another host has it open.

    `inode` is the damaged file's: another host may have replaced it already.
    """
    path = home / "board.db"
    held = holders.alone(home)
    if held is None:
        return None
    try:
        if path.stat().st_ino != inode:
            return path
        date = time.strftime("%Y%m%d-%H%M%S")
        there = home / f"board.db.damaged-{date}-{random.randrange(1000):03}"
        for suffix in reversed(SUFFIXES):  # the file comes last: until then it can be done again
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{there}{suffix}")
        _keep_newest(home)
    except FileNotFoundError:
        return path
    finally:
        os.close(held)
    return there


def _keep_newest(home: Path) -> None:
    for old in sorted(home.glob("board.db.damaged-*[0-9]"))[:-MOST_ASIDE]:
        for suffix in SUFFIXES:
            with contextlib.suppress(OSError):
                Path(f"{old}{suffix}").unlink()
