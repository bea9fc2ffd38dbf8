"""What an error of SQLite comes from: from around the file, or from what is in it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path
from typing import Final

SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
#: What a value, or a statement of ours, raises: no fault of the file.
OF_VALUES: Final = (
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.NotSupportedError,
    sqlite3.ProgrammingError,
)
#: What the disk, its mount and the machine bring; it passes, or a person is to see to it.
OF_THE_DISK: Final = ("full", "disk I/O", "out of memory", "interrupted")
#: What a mode, a mount and a limit of open files bring too.
OF_MODES: Final = ("readonly", "unable to open")


def is_busy(error: BaseException) -> bool:
    said = str(error)
    return isinstance(error, sqlite3.OperationalError) and ("locked" in said or "busy" in said)


def is_damage(error: BaseException, path: Path) -> bool:
    """Whether nothing but damage of the file explains it.

    SQLite says SQLITE_CORRUPT of some of it; of a table's name that is none any more, or a header
    that forbids to write, it says what it would say of a wrong statement or a mode.
    """
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, OF_VALUES):
        return False
    if type(error) is sqlite3.DatabaseError:
        return True
    said = str(error)
    if any(words in said for words in OF_THE_DISK):
        return False
    return not any(words in said for words in OF_MODES) or _can_be_written(path)


def odd(path: Path) -> str:
    """What lies where a file of the database belongs and is none; empty if all is well."""
    for suffix in SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            there = Path(f"{path}{suffix}")
            if not stat.S_ISREG(there.stat().st_mode):
                return f"{there} is not a file"
    return ""


def _can_be_written(path: Path) -> bool:
    files = [Path(f"{path}{suffix}") for suffix in SUFFIXES]
    if not all(os.access(f, os.R_OK | os.W_OK) for f in (path.parent, *files) if f.exists()):
        return False
    probe = path.with_name(f"{path.name}-probe.{os.getpid()}")
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        probe.unlink()
    except OSError:
        return False
    return True
