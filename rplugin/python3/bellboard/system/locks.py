"""Locks: on a file that one process holds at a time, or several share.

A lock ends with the process that holds it, however that dies.  The event loop never waits for one:
a suspended process keeps its locks.
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

from ..core.untrusted import decimal
from .files import read, status_of
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


class Lock:
    """The lock of a file, which is made if needed; in it stands the process that took it last.

    A file system without locks, as some on a network are, grants each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_ours = False  # ours alone
        self._descriptor = -1

    def take(self, patience: float = 0.0) -> bool:
        """Take the lock alone; return False if others hold it for longer than `patience`."""
        if not self.is_ours and _granted(self.descriptor, patience):
            self.is_ours = True
            with contextlib.suppress(OSError):  # a full disk
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
        return self.is_ours

    def share(self, patience: float = 0.0) -> bool:
        """Hold it with others that share it; return False if one holds it alone for longer."""
        return _granted(self.descriptor, patience, fcntl.LOCK_SH)

    def is_taken(self) -> bool:
        """Return whether another process holds it alone."""
        if self.is_ours:
            return False
        try:
            if not self.share():
                return True
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        except OSError:
            pass
        return False

    def holder(self) -> int | None:
        """Return the process that took it last: it holds it, if it `is_taken`."""
        with contextlib.suppress(OSError):
            return decimal(read(self.path, 64)[0].decode("ascii", "replace"))
        return None

    def leave(self) -> None:
        """Let others have it, and keep the file open."""
        if self.is_ours:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.is_ours = False

    def close(self) -> None:
        """Let others have it, once no child of ours has the file open either."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self.is_ours = -1, False

    @property
    def descriptor(self) -> int:
        """Return the descriptor of the file, which holds the lock; the file is opened if needed."""
        if self._descriptor < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
            self._descriptor = os.open(self.path, flags, 0o600)
        return self._descriptor


@contextlib.contextmanager
def locked(path: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of a file; raise `Held` after `patience`."""
    lock = Lock(path)
    try:
        if not lock.take(patience):
            pid = lock.holder()
            advice = frozen(pid) if pid else ""
            by = f"process {pid}{advice or ': try again, or stop it'}" if pid else "another process"
            raise Held(f"{path} is held by {by}")
        yield
    finally:
        lock.close()


def lock_folder(descriptor: int, patience: float) -> bool:
    """Lock an open folder, alone, until it is closed; return False if others hold it for longer."""
    return _granted(descriptor, patience)


def _granted(descriptor: int, patience: float, how: int = fcntl.LOCK_EX) -> bool:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE)
        except OSError as e:
            if e.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
            return True
        else:
            return True


# The locks of files that are not ours, as far as the system lists them.


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


def _rows() -> list[list[str]]:
    try:
        rows = [row.split() for row in Path(LOCKS).read_text().splitlines()]
    except OSError:
        return []
    return [row for row in rows if len(row) == 8 and row[3] == "WRITE"]
