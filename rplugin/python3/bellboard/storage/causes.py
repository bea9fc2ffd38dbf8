"""Find out what an SQLite error means: trouble around the file, or damage inside it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path
from typing import Final

SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
#: Raised for a value or a statement of ours: not the file's fault.
OF_VALUES: Final = (
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.NotSupportedError,
    sqlite3.ProgrammingError,
)
#: Messages about the disk or the machine: temporary, or for the user to fix.
OF_THE_DISK: Final = ("full", "disk I/O", "out of memory", "interrupted")
#: Messages that can also come from file modes, mounts, or the limit of open files.
OF_MODES: Final = ("readonly", "unable to open")
AT_ONCE: Final = 8  # descriptors; with too few left, SQLite cannot open its files, too


def is_busy(error: BaseException) -> bool:
    said = str(error)
    return isinstance(error, sqlite3.OperationalError) and ("locked" in said or "busy" in said)


def is_unreadable(error: BaseException) -> bool:
    """Return whether the log may have been cut, so that every process must open it again.

    A failed write, as with a full quota, does not mean that.  (Python 3.10 names no error.)
    """
    is_of_disk = isinstance(error, sqlite3.OperationalError) and "disk I/O" in str(error)
    return is_of_disk and getattr(error, "sqlite_errorname", "") != "SQLITE_IOERR_WRITE"


def is_damage(error: BaseException, path: Path) -> bool:
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
    return not any(words in said for words in OF_MODES) or _can_be_written(path)


def odd(path: Path) -> list[Path]:
    """Return which of the database's files are not regular files."""
    found = []
    for suffix in SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            there = Path(f"{path}{suffix}")
            if not stat.S_ISREG(there.stat().st_mode):
                found.append(there)
    return found


def closed(path: Path) -> str:
    """Return which of the database's files we may not write, or "".

    SQLite opens such a file to read it, and goes on when it may be written again.
    """
    files = (f"{path}{suffix}" for suffix in SUFFIXES)
    return next((f for f in files if os.path.lexists(f) and not _may(f)), "")


def _may(path: str) -> bool:
    """Return whether we may read and write a file or folder."""
    return os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _can_be_written(path: Path) -> bool:
    if closed(path) or not _may(str(path.parent)):
        return False
    probe = path.with_name(f"{path.name}-probe.{os.getpid()}")
    held: list[int] = []
    try:
        held.append(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        probe.unlink()
        for _ in range(AT_ONCE):
            held.append(os.dup(held[0]))
    except OSError:
        return False
    finally:
        for descriptor in held:
            os.close(descriptor)
    return True
