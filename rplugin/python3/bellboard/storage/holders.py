"""Who has board.db open, who sets it aside, who works through a backlog: locks of the kernel.

Each is a lock on an open file, so it goes with its process, whatever that dies of.  None is ever
waited for with the event loop standing still: a process that is suspended keeps what it holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Final

PAUSE: Final = 0.005  # between two tries
#: What SQLite locks to write: a byte of the shared memory, or RESERVED of the file itself.
PLACES: Final = (("board.db-shm", 120), ("board.db", 1 << 30 | 1))


class Drain:
    """Who works through a backlog: one host at a time, and the others let it.

    Each of them would else list what is left, to find it gone when it gets the lock.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "drain.lock"
        self._fd = -1
        self.is_ours = False

    def take(self) -> None:
        """Be the one, if there is none."""
        if not self.is_ours:
            self.is_ours = self._lock(fcntl.LOCK_EX)

    def leave(self) -> None:
        """Be it no more."""
        if self.is_ours:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            self.is_ours = False

    def is_taken(self) -> bool:
        """Whether another host is the one."""
        if self.is_ours:
            return False
        if not self._lock(fcntl.LOCK_SH):
            return True
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        return False

    def holder(self) -> int | None:
        """The process that is the one, where the system tells."""
        return _flocked(self._path, _held())

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self.is_ours = -1, False

    def _lock(self, how: int) -> bool:
        try:
            if self._fd < 0:
                self._fd = _opened(self._path)
            fcntl.flock(self._fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a network file system without locks, a full disk
            return how == fcntl.LOCK_SH
        return True


class Held(Exception):
    """Another process holds it."""


def share(home: Path, patience: float) -> int:
    """Note that this process has the database open; raise Held while it is being set aside."""
    fd = _opened(home / "board.lock")
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(PAUSE)
                continue
            os.close(fd)
            raise Held from None
        except OSError:  # a network file system without locks
            pass
        return fd


def alone(home: Path) -> int | None:
    """Have the database to ourselves, until this is closed; None if another has it open."""
    fd = _opened(home / "board.lock")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError:  # a network file system without locks
        pass
    return fd


def holder(home: Path) -> int | None:
    """The process that keeps others from writing or opening it, where the system tells."""
    held = _held()
    for name, byte in PLACES:
        for row in _of(home / name, held):
            if row[1] == "POSIX" and int(row[6]) <= byte and _end(row[7]) >= byte:
                return int(row[4])
    return _flocked(home / "board.lock", held)


def _held() -> list[list[str]]:
    """The locks that keep others out: `1: POSIX ADVISORY WRITE 4711 fd:01:2345 120 120`."""
    try:
        rows = [row.split() for row in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return []
    return [row for row in rows if row[3:4] == ["WRITE"] and len(row) == 8]


def _flocked(path: Path, held: list[list[str]]) -> int | None:
    return next((int(row[4]) for row in _of(path, held) if row[1] == "FLOCK"), None)


def _of(path: Path, rows: list[list[str]]) -> list[list[str]]:
    with contextlib.suppress(OSError):
        inode = path.stat().st_ino
        return [row for row in rows if row[5].endswith(f":{inode}")]
    return []


def _end(told: str) -> float:
    return float("inf") if told == "EOF" else int(told)


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)
