"""The file board.db: open in many processes, written by one at a time, perhaps damaged or newer.

Who has it open shares `board.lock`: a damaged file is set aside only by a process that holds that
lock alone.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ..core.text import line
from ..core.untrusted import LARGEST
from ..system.failures import described
from ..system.locks import Lock
from ..system.mounts import network_of
from .set_aside import SUFFIXES, move_away

CHECKPOINT: Final = 4000  # pages, 16 MB: a checkpoint waits for the disk, so it should be rare
WAL_LIMIT: Final = CHECKPOINT << 12  # bytes of the log to keep on disk
WAIT_MS: Final = 20  # for the lock: the event loop is blocked meanwhile
PATIENCE: Final = 1.0  # seconds, for others that open it at the same time and create its tables

SCHEMA: Final = 2
UNLIKELY: Final = 1000  # no released schema gets that high
NUMBERED: Final = ("transitions", "events")  # tables whose rows are known by their number

#: Schema → the statements that migrate to it.  A released migration is never changed.
MIGRATIONS: Final[Mapping[int, str]] = {
    1: """
    CREATE TABLE sessions (
      session_id TEXT PRIMARY KEY, revision INTEGER NOT NULL, listed INTEGER NOT NULL,
      last REAL NOT NULL, record BLOB
    ) WITHOUT ROWID;
    CREATE INDEX sessions_by_revision ON sessions (revision);
    CREATE TABLE transitions (
      id INTEGER PRIMARY KEY AUTOINCREMENT, t REAL NOT NULL, session_id TEXT NOT NULL,
      before TEXT, after TEXT, rule TEXT NOT NULL, why TEXT NOT NULL, live INTEGER NOT NULL
    );
    CREATE INDEX transitions_by_time ON transitions (t);
    CREATE TABLE events (
      id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, file TEXT NOT NULL,
      rule TEXT NOT NULL, taken INTEGER NOT NULL, why TEXT NOT NULL,
      before TEXT, after TEXT, event BLOB NOT NULL
    );
    CREATE INDEX events_by_session ON events (session_id);
    CREATE TABLE applied (name TEXT PRIMARY KEY, t REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE claims (
      transition_id INTEGER NOT NULL, effect TEXT NOT NULL, pid INTEGER NOT NULL, t REAL NOT NULL,
      PRIMARY KEY (transition_id, effect)
    ) WITHOUT ROWID;
    CREATE TABLE options (
      key TEXT PRIMARY KEY, value BLOB NOT NULL, pid INTEGER NOT NULL, t REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE editors (
      pid INTEGER PRIMARY KEY, server TEXT NOT NULL, tmux TEXT NOT NULL, pane TEXT NOT NULL,
      focused REAL NOT NULL
    );
    """,
    # nothing is written to it any more; older programs, which may run beside this one, do
    2: """
    CREATE TABLE IF NOT EXISTS damaged (
      id INTEGER PRIMARY KEY, t REAL NOT NULL, source TEXT NOT NULL, name TEXT NOT NULL,
      why TEXT NOT NULL, row BLOB NOT NULL
    )
    """,
}


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
        self._files: OpenFiles | None = None
        self._lock = Lock(home / "board.lock")
        try:
            if not (readonly or self._lock.share(patience)):
                raise Busy  # it is being set aside
            with self.plainly():
                self.db = self._open_readonly() if readonly else self._open()
        except BaseException:
            self._lock.close()
            raise

    def _open(self) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            made = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.fchmod(made, 0o600)  # whatever the umask
            os.close(made)
        self._files = OpenFiles(str(self.path))
        for there in _odd(self.path):
            if there == self.path:
                raise Damaged(f"{there} is not a file", self.inode)
            move_away(there, self.path)
        if what := _closed(self.path):
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
            self._check_schema(db)
            self.check_numbers(db)
            db.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
            self._files.note_logs()
        except BaseException:
            db.close()
            raise
        return db

    def _open_readonly(self) -> sqlite3.Connection:
        """Open it with its log, or without if no memory can be shared (such as on a full disk)."""
        for there in _odd(self.path):  # opening a pipe would hang
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

    def _migrate(self, db: sqlite3.Connection) -> None:
        if not 0 <= version_of(db) < UNLIKELY:
            raise Damaged(f"{self.path}: impossible schema version", self.inode)
        try:
            migrate(db, self.schema, self._migrations)
        except sqlite3.OperationalError as e:
            if is_busy(e):
                raise
            raise Unmigrated(f"{self.path} cannot be migrated: {described(e)}") from None

    def _check_schema(self, db: sqlite3.Connection) -> None:
        """Raise Damaged if the tables are not as we made them; a newer program may have others."""
        changes = int(db.execute("PRAGMA schema_version").fetchone()[0])
        if changes == self._checked:
            return
        if version_of(db) == self.schema and (what := altered(db, self.schema, self._migrations)):
            raise Damaged(f"{self.path} was altered: {line(what, 80)}", self.inode)
        self._checked = changes

    def check_numbers(self, db: sqlite3.Connection) -> None:
        """Raise Damaged if rows cannot be numbered on: SQLite has no number after the highest."""
        for table in NUMBERED:
            last = f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'"
            for query in (last, f"SELECT max(id) FROM {table}"):
                for (number,) in db.execute(query):
                    if type(number) not in (int, type(None)) or not 0 <= (number or 0) < LARGEST:
                        raise Damaged(f"{self.path}: impossible numbers of {table}", self.inode)

    def close(self) -> None:
        """Close it; leave nothing behind of a file that was removed or replaced."""
        if self._files is not None and self._files.is_log_readable():
            with contextlib.suppress(sqlite3.Error):
                self.db.execute("PRAGMA wal_checkpoint")
        self.db.close()
        if self._files is not None and self._files.is_lost():
            self._files.drop_logs()
        self._lock.close()

    # ------------------------------------------------------------ is it still the same file

    @property
    def inode(self) -> int:
        """Return the inode of the open file."""
        return self._files.inode if self._files is not None else 0

    def is_replaced(self) -> bool:
        """Return whether the database or its log was removed or replaced."""
        return self._files is not None and self._files.is_any_lost()

    def is_log_lost(self) -> bool:
        """Return whether only its log was."""
        return self.is_replaced() and not (self._files and self._files.is_lost())

    def check_place(self) -> None:
        """Raise Replaced if the database was removed or replaced."""
        if self.is_replaced():
            raise Replaced(f"{self.path} was removed or replaced")

    # ------------------------------------------------------------ errors in our words

    @contextlib.contextmanager
    def plainly(self) -> Iterator[None]:
        """Translate SQLite's errors into Busy, Replaced or Damaged."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as e:
            self.complain(e)
            raise

    def complain(self, e: BaseException) -> None:
        """Raise an error of SQLite as Busy, Replaced or Damaged, if it means one of these."""
        if is_busy(e):
            raise Busy from None
        if not isinstance(e, DAMAGE) or isinstance(e, Damaged | Unmigrated):
            return
        self.check_place()
        if type(e) in DAMAGE or (not self.readonly and _is_damage(e, self.path)):
            raise Damaged(f"{self.path}: {e}", self.inode) from None

    def all(self, query: str, *values: object) -> list[Any]:
        """Return the rows; text that is none is left as bytes."""
        with self.plainly():
            try:
                return self.db.execute(query, values).fetchall()
            except sqlite3.OperationalError as e:
                if "decode to UTF-8" not in str(e):
                    raise
            self.db.text_factory = _text_or_bytes  # from now on: it is slower, but rarely needed
            return self.db.execute(query, values).fetchall()

    # ------------------------------------------------------------ transactions

    def lock(self) -> WriteLock:
        """Hold the write lock; commit at the end, or roll back on an error."""
        return WriteLock(self)

    def check_version(self) -> None:
        """Raise Newer if the database belongs to a newer program."""
        if version_of(self.db) > self.schema:
            raise Newer("board.db belongs to a newer bellboard: restart Neovim")

    def check_commits(self) -> None:
        """Check whether another connection has committed; needs no lock."""
        before, self._seen = self._seen, self.db.execute("PRAGMA data_version").fetchone()[0]
        if before != self._seen:
            self.is_changed = True
            self.commits += 1

    def check_changes(self) -> None:
        """Check whether another program has changed the schema since."""
        self.check_version()
        self._check_schema(self.db)


class WriteLock:
    """BEGIN IMMEDIATE, then COMMIT or ROLLBACK.  As a generator, it would take as long as BEGIN."""

    def __init__(self, base: Database) -> None:
        self._base = base

    def __enter__(self) -> None:
        base = self._base
        try:
            base.db.execute("BEGIN IMMEDIATE")
            base.check_place()  # others may have opened it with another log
            base.check_commits()
            if base.is_changed:
                base.check_changes()
        except BaseException as e:
            self._roll_back()
            base.complain(e)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self._base.db.execute("COMMIT")
                self._base.commits += 1
                return
            except BaseException as e:
                self._roll_back()
                self._base.complain(e)
                raise
        self._roll_back()
        if isinstance(error, sqlite3.Error):  # any other may come from what was done meanwhile
            self._base.complain(error)
            if "full" in str(error):  # there is no room, or no number is left
                with contextlib.suppress(sqlite3.OperationalError):
                    self._base.check_numbers(self._base.db)

    def _roll_back(self) -> None:
        self._base.is_changed = True  # cached state may be wrong now
        if self._base.db.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # the original error says more
                self._base.db.execute("ROLLBACK")


def _text_or_bytes(cell: bytes) -> str | bytes:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return cell


# The tables.


def version_of(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def altered(db: sqlite3.Connection, schema: int, migrations: Mapping[int, str]) -> str:
    """Return the first difference from the schema that the migrations made, or "".

    A trigger or a view is a program: it can drop what we write, or never end.
    """
    theirs, ours = _objects(db), _made(tuple(migrations[n] for n in range(1, schema + 1)))
    return ", ".join(sorted({name for _, name, _ in theirs ^ ours}))


@functools.cache
def _made(migrations: tuple[str, ...]) -> frozenset[tuple[str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for migration in migrations:
            db.executescript(migration)
        return _objects(db)


def _objects(db: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Return all but SQLite's own, which no statement can change."""
    query = "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"
    return frozenset(db.execute(query))


def migrate(db: sqlite3.Connection, schema: int, migrations: Mapping[int, str]) -> None:
    """Migrate an older database completely or not at all; leave a newer one alone."""
    if version_of(db) >= schema:
        return
    db.execute("BEGIN IMMEDIATE")  # by now, another host may have done it
    try:
        made = version_of(db)
        if made == 0 and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise sqlite3.DatabaseError("it has tables but no schema version")
        for version in range(made + 1, schema + 1):
            for statement in migrations[version].split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {version}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


# What an error of SQLite means: trouble around the file, or damage inside it.

#: SQLITE_CORRUPT, SQLITE_NOTADB, and an SQLite message that is not UTF-8.
DAMAGE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
#: Raised for a value or a statement of ours: not the file's fault.
OF_VALUES: Final = (
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.NotSupportedError,
    sqlite3.ProgrammingError,
)
#: Messages about the disk or the machine: temporary, or for the user to fix.
OF_THE_DISK: Final = ("full", "disk I/O", "out of memory", "interrupted", "unable to open")


def is_busy(error: BaseException) -> bool:
    said = str(error)
    return isinstance(error, sqlite3.OperationalError) and ("locked" in said or "busy" in said)


def is_unreadable(error: BaseException) -> bool:
    """Return whether the log may have been cut, so that every process must open it again.

    A failed write, as with a full quota, does not mean that.  (Python 3.10 names no error.)
    """
    is_of_disk = isinstance(error, sqlite3.OperationalError) and "disk I/O" in str(error)
    return is_of_disk and getattr(error, "sqlite_errorname", "") != "SQLITE_IOERR_WRITE"


def _is_damage(error: BaseException, path: Path) -> bool:
    """Return whether only damage to the file explains the error.

    SQLite reports some damage as SQLITE_CORRUPT.  A broken table name, or a header that forbids
    writing, looks like a wrong statement or file mode instead.
    """
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, OF_VALUES):
        return False
    if type(error) is sqlite3.DatabaseError:
        return True
    said = str(error)
    if any(words in said for words in OF_THE_DISK):
        return False
    return "readonly" not in said or _forbids_writing(path)


def _forbids_writing(path: Path) -> bool:
    """Return whether the header lets only a newer SQLite write, which nothing else reports."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(19)[18:] > b"\2"
    return False


def _odd(path: Path) -> list[Path]:
    """Return which of the database's files are not regular files."""
    found = []
    for suffix in SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            there = Path(f"{path}{suffix}")
            if not stat.S_ISREG(there.stat().st_mode):
                found.append(there)
    return found


def _closed(path: Path) -> str:
    """Return which of the database's files we may not write, or "".

    SQLite opens such a file to read it, and goes on when it may be written again.
    """
    files = (f"{path}{suffix}" for suffix in SUFFIXES)
    return next((f for f in files if os.path.lexists(f) and not _may(f)), "")


def _may(path: str) -> bool:
    """Return whether we may read and write a file or folder."""
    return os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids)


# The files of an open database: whether they are still those that have their names.

File = tuple[int, int]  # device, inode


class OpenFiles:
    """The database as it was opened, and the files of SQLite's log once they exist.

    Commits to a file that was removed or replaced are lost: other hosts, and this one after a
    restart, open what is there.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known = {path: _file(path)}

    @property
    def inode(self) -> int:
        file = self._known[self._path]
        return file[1] if file else 0

    def note_logs(self) -> None:
        self._known |= {path: _file(path) for path in self._logs}

    def is_any_lost(self) -> bool:
        """Return whether any file was removed or replaced; takes a few microseconds."""
        return any(file and _file(path) != file for path, file in self._known.items())

    def is_lost(self) -> bool:
        """Return whether the database itself was, so that its log belongs to nothing."""
        return _file(self._path) != self._known[self._path]

    def is_log_readable(self) -> bool:
        """Return whether the log was removed, and nobody has written another since.

        Only this process and others that have it open can read it then.  But if another log has
        its place, they index that in the same shared memory, and reading gives the wrong pages.
        """
        file, now = self._known.get(log := self._logs[0]), _file(log)
        with contextlib.suppress(FileNotFoundError):
            return file is not None and now != file and os.stat(log).st_size == 0  # noqa: PTH116
        return file is not None

    def drop_logs(self) -> None:
        """Remove the log of the lost file: SQLite would apply it to the new one."""
        for path in self._logs:
            file = self._known.get(path)
            if file is not None and _file(path) == file:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108

    @property
    def _logs(self) -> tuple[str, str]:
        return f"{self._path}-wal", f"{self._path}-shm"


def _file(path: str) -> File | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # missing or unreachable
        return None
    return status.st_dev, status.st_ino
