"""Lock files, held by one process at a time, with a limit on how long to wait.

A holder that is suspended keeps its lock until it continues.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from .files import status_of
from .processes import frozen

PATIENCE: Final = 2.0  # seconds; work under such a lock takes milliseconds
PAUSE: Final = 0.005
LOCKS: Final = "/proc/locks"


class Held(OSError):
    """Another process holds the lock; the text says which, and what to do."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EAGAIN, why)

    def __str__(self) -> str:
        return str(self.strerror)


@contextlib.contextmanager
def locked(path: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of a file, which is created if needed; raise `Held` after `patience`."""
    descriptor = opened(path)
    try:
        if not take(descriptor, patience):
            raise Held(_why(path))
        yield
    finally:
        os.close(descriptor)


def opened(path: Path) -> int:
    """Open a file to lock it; it is created if needed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def take(descriptor: int, patience: float, how: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file or folder until it is closed; return False if others hold it for longer."""
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE)
        else:
            return True


def held(path: Path) -> list[list[str]]:
    """Return the exclusive locks on a file, if the system lists them.

    Each as its fields: `1: POSIX ADVISORY WRITE 4711 fd:01:2345 120 120`.
    """
    try:
        inode = status_of(path).st_ino
    except OSError:
        return []
    return [row for row in _rows() if row[5].endswith(f":{inode}")]


def holders(paths: Iterable[Path]) -> dict[Path, int]:
    """Return the processes that hold the locks of files, as far as the system lists them."""
    by_inode = {row[5].rpartition(":")[2]: int(row[4]) for row in _rows() if row[1] == "FLOCK"}
    found = {}
    for path in paths:
        with contextlib.suppress(OSError):
            if (pid := by_inode.get(str(status_of(path).st_ino))) is not None:
                found[path] = pid
    return found


def holder(path: Path) -> int | None:
    """Return the process that holds the lock of a file, if the system lists it."""
    return next((int(row[4]) for row in held(path) if row[1] == "FLOCK"), None)


def _rows() -> list[list[str]]:
    try:
        rows = [row.split() for row in Path(LOCKS).read_text().splitlines()]
    except OSError:
        return []
    return [row for row in rows if len(row) == 8 and row[3] == "WRITE"]


def _why(path: Path) -> str:
    pid = holder(path)
    if pid is None:
        return f"{path} is held by another process; try again"
    return f"{path} is held by process {pid}{frozen(pid) or ': try again, or stop it'}"
