"""The file board.db: open in many processes, written by one at a time, perhaps damaged or newer.

`board.lock` shows who has it open (see `holders.py`): a damaged database is set aside only by a
process that holds that lock alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ..core.text import line
from ..system.failures import described
from ..system.mounts import network_of
from . import holders
from .causes import closed, is_busy, is_damage, odd
from .damaged import move_away
from .identity import Identity
from .schema import MIGRATIONS, SCHEMA, UNLIKELY, altered, migrate, version_of

CHECKPOINT: Final = 4000  # pages, 16 MB: a checkpoint waits for the disk, so it should be rare
WAL_LIMIT: Final = CHECKPOINT << 12  # bytes of the log to keep on disk
WAIT_MS: Final = 20  # for the lock: the event loop is blocked meanwhile
LARGEST = 256 << 20  # bytes; all that is kept has at most 150 MB
PATIENCE: Final = 1.0  # seconds, for others that open it at the same time and create its tables


#: SQLITE_CORRUPT, SQLITE_NOTADB, and an SQLite message that is not UTF-8.
DAMAGE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)


class Busy(Exception):
    """Another host holds the lock."""


class Draining(Busy):
    """Another host is working through a backlog."""


class Newer(Exception):
    """The database was written by a newer program; this one must not write to it."""


class Replaced(FileNotFoundError):
    """The open file was removed or replaced: open the new one."""


class Damaged(sqlite3.DatabaseError):
    """The file is damaged, or not a database."""

    def __init__(self, text: str, inode: int) -> None:
        super().__init__(text)
        self.inode = inode  # of the damaged file


class Unmigrated(sqlite3.OperationalError):
    """An older database could not be migrated; it is unchanged."""


class Database:
    """A connection to board.db."""

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
        self._migrations = migrations
        self._checked = -1  # SQLite's counter of changes to the schema, when it was checked
        self._seen = -1  # SQLite's counter of commits by others
        self.is_changed = True  # by another connection, since this was cleared
        self.commits = 0  # ours and others', since this was cleared
        self._identity: Identity | None = None
        self._share = -1
        self.drain = holders.Drain(home)
        try:
            self._share = -1 if readonly else holders.share(home, patience)
            with self.plainly():
                self.db = self._open_readonly() if readonly else self._open_twice()
        except holders.Held:
            raise Busy from None
        except BaseException:
            self._leave()
            raise

    def _open_twice(self) -> sqlite3.Connection:
        """Open it; another process may replace its log at that moment, once."""
        try:
            return self._open()
        except Replaced:
            return self._open()

    def _open(self) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            made = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.fchmod(made, 0o600)  # whatever the umask
            os.close(made)
        self._identity = Identity(str(self.path), WAL_LIMIT)
        for there in odd(self.path):
            if there == self.path:
                raise Damaged(f"{there} is not a file", self._identity.inode)
            move_away(there, self.path)
        if what := closed(self.path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), what)
        db = sqlite3.connect(self.path, timeout=self.patience, isolation_level=None)
        try:
            if self.path.stat().st_size == 0:  # later the whole file would have to be rewritten
                db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            # WAL needs shared memory, which network file systems do not have
            db.execute(f"PRAGMA journal_mode = {'DELETE' if self.network else 'WAL'}")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
            self._migrate(db)
            self._check_room(db)
            self._check_schema(db)
            db.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
            if not (self._identity.note_logs() or self.network):
                raise Replaced(f"the log of {self.path} was replaced while it was opened")
        except BaseException:
            db.close()
            self._identity.close()
            raise
        return db

    def _migrate(self, db: sqlite3.Connection) -> None:
        if not 0 <= version_of(db) < UNLIKELY:
            raise Damaged(f"{self.path}: impossible schema version", self.inode)
        try:
            migrate(db, self.schema, self._migrations)
        except sqlite3.OperationalError as e:
            if is_busy(e):
                raise
            raise Unmigrated(f"{self.path} cannot be migrated: {described(e)}") from None

    def _check_room(self, db: sqlite3.Connection) -> None:
        """Raise Damaged if the file is far too large: finding a cell in it can take seconds."""
        pages, size = (int(db.execute(f"PRAGMA page_{x}").fetchone()[0]) for x in ("count", "size"))
        if pages * size > LARGEST:
            raise Damaged(f"{self.path} is far too large: {pages * size >> 20} MB", self.inode)

    def _check_schema(self, db: sqlite3.Connection) -> None:
        """Raise Damaged if the tables are not as we made them; those of a newer program may be."""
        changes = int(db.execute("PRAGMA schema_version").fetchone()[0])
        if changes == self._checked:
            return
        if version_of(db) == self.schema and (what := altered(db, self.schema, self._migrations)):
            raise Damaged(f"{self.path} was altered: {line(what, 80)}", self.inode)
        self._checked = changes

    def _open_readonly(self) -> sqlite3.Connection:
        """Open it with its log, or without if no memory can be shared (such as on a full disk)."""
        for there in odd(self.path):  # opening a pipe would hang
            raise sqlite3.OperationalError(f"{there} is not a file; move it away")
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
        """Close it; leave nothing behind of a file that was removed or replaced."""
        if self._identity is not None and self._identity.is_log_readable():
            with contextlib.suppress(sqlite3.Error):
                self.db.execute("PRAGMA wal_checkpoint")
        if self._identity is not None:  # closing may copy the log into the database
            self._identity.empty_overwritten_log()
        self.db.close()
        if self._identity is not None:
            if self._identity.is_file_lost():
                self._identity.drop_logs()
            self._identity.close()
        self._leave()

    @property
    def inode(self) -> int:
        """Return the inode of the open file."""
        return self._identity.inode if self._identity is not None else 0

    def _leave(self) -> None:
        self.drain.close()
        if self._share >= 0:
            os.close(self._share)
            self._share = -1

    def is_replaced(self) -> bool:
        """Return whether the database or its log was removed or replaced."""
        return self._identity is not None and self._identity.is_lost()

    def is_log_lost(self) -> bool:
        """Return whether only its log was."""
        return self.is_replaced() and not (self._identity and self._identity.is_file_lost())

    def note_commit(self) -> None:
        """Note that the log has grown."""
        if self._identity is not None:
            self._identity.note_commit()

    def check_place(self) -> None:
        """Raise Replaced if the database was removed or replaced."""
        if self.is_replaced():
            raise Replaced(f"{self.path} was removed or replaced")

    @contextlib.contextmanager
    def plainly(self) -> Iterator[None]:
        """Translate SQLite's errors into Busy, Replaced or Damaged."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as e:
            self.complain(e)
            raise

    def complain(self, e: BaseException) -> None:
        """Raise Busy, Replaced or Damaged if that is what the error means."""
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
            self.db.text_factory = _odd_text  # from now on: it is slower, but rarely needed
            return self.db.execute(query, values).fetchall()

    # ------------------------------------------------------------ the lock

    def lock(self) -> Lock:
        """Hold the write lock; commit at the end, or roll back on an error."""
        return Lock(self)

    def check_version(self) -> None:
        """Raise Newer if the database belongs to a newer program, Damaged if it is too large."""
        if version_of(self.db) > self.schema:
            raise Newer("board.db belongs to a newer bellboard: restart Neovim")
        self._check_room(self.db)

    def check_commits(self) -> None:
        """Check whether another connection has committed; needs no lock."""
        before, self._seen = self._seen, self.db.execute("PRAGMA data_version").fetchone()[0]
        if before != self._seen:
            self.is_changed = True
            self.commits += 1


def _odd_text(cell: bytes) -> str:
    """Decode a damaged cell, with invalid bytes as lone surrogates."""
    return cell.decode("utf-8", "surrogateescape")


class Lock:
    """A transaction; a class because two generators would take as long as BEGIN."""

    def __init__(self, base: Database) -> None:
        self.base = base

    def __enter__(self) -> None:
        base = self.base
        try:
            base.db.execute("BEGIN IMMEDIATE")
            base.check_place()  # others may have opened it with another log
            base.check_commits()
            if base.is_changed:
                base.check_version()
                base._check_schema(base.db)
        except BaseException as e:
            self._roll_back()
            base.complain(e)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self.base.db.execute("COMMIT")
                self.base.commits += 1
                self.base.note_commit()
                return
            except BaseException as e:
                self._roll_back()
                self.base.complain(e)
                raise
        self._roll_back()
        if isinstance(error, sqlite3.Error):  # any other may come from what was done meanwhile
            self.base.complain(error)

    def _roll_back(self) -> None:
        self.base.is_changed = True  # cached state may be wrong now
        if self.base.db.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # the original error says more
                self.base.db.execute("ROLLBACK")
