"""Kernel locks that say who has board.db open, sets it aside, or works through a backlog.

Each is a lock on an open file, so it disappears with its process, however that dies.  The event
loop never waits for one: a suspended process keeps its locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from ..system import locks

#: What SQLite locks for writing: a byte of the shared memory, or RESERVED in the file itself.
LOCKED: Final = (("board.db-shm", 120), ("board.db", 1 << 30 | 1))


class Drain:
    """The right to work through a backlog, held by one host at a time.

    Without it, every host would list the remaining files, only to find them gone once it gets the
    database lock.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "drain.lock"
        self._fd = -1
        self.is_ours = False

    def take(self) -> None:
        """Try to take the lock."""
        if not self.is_ours:
            self.is_ours = self._lock(fcntl.LOCK_EX)

    def leave(self) -> None:
        """Release the lock."""
        if self.is_ours:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            self.is_ours = False

    def is_taken(self) -> bool:
        """Return whether another host has it."""
        if self.is_ours:
            return False
        if not self._lock(fcntl.LOCK_SH):
            return True
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        return False

    def holder(self) -> int | None:
        """Return the process that has it, if the system lists it."""
        return locks.holder(self._path)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self.is_ours = -1, False

    def _lock(self, how: int) -> bool:
        try:
            if self._fd < 0:
                self._fd = locks.opened(self._path)
            return locks.take(self._fd, 0.0, how)
        except OSError:  # a network file system without locks, a full disk
            return how == fcntl.LOCK_SH


class Held(Exception):
    """Another process holds the lock."""


def share(home: Path, patience: float) -> int:
    """Record that this process has the database open; raise Held while it is being set aside."""
    if (fd := _locked(home, patience, fcntl.LOCK_SH)) is None:
        raise Held
    return fd


def alone(home: Path) -> int | None:
    """Lock the database for this process alone; return None if another has it open."""
    return _locked(home, 0.0, fcntl.LOCK_EX)


def holder(home: Path) -> int | None:
    """Return the process that blocks writing or opening, if the system lists it."""
    for name, byte in LOCKED:
        for row in locks.held(home / name):
            if row[1] == "POSIX" and int(row[6]) <= byte and _end(row[7]) >= byte:
                return int(row[4])
    return locks.holder(home / "board.lock")


def _end(field: str) -> float:
    return float("inf") if field == "EOF" else int(field)


def _locked(home: Path, patience: float, how: int) -> int | None:
    fd = locks.opened(home / "board.lock")
    with contextlib.suppress(OSError):  # a network file system without locks
        if not locks.take(fd, patience, how):
            os.close(fd)
            return None
    return fd
