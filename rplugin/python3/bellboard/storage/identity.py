"""Detect when the files of an open database have been removed, replaced or cut.

Commits to such a file are lost: other hosts, and this one after a restart, open what is there.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

File = tuple[int, int]  # device, inode

#: The first bytes of a log.
MAGIC: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
SALT: Final = 16  # where its salt is
HEADER: Final = 20  # bytes of the log, with its salt
RESTARTS: Final = 1 << 20  # of the log between two checks; each comes after hundreds of commits
PAGE: Final = 512  # bytes; a database has at least one page, which is never smaller


class Identity:
    """The files of an open database; those of SQLite's log are noted once they exist."""

    def __init__(self, path: str, log_limit: int) -> None:
        self._path = path
        self._log, self._index = f"{path}-wal", f"{path}-shm"
        self._known = {path: _file(path)}
        self._limits = {path: PAGE, self._log: log_limit}  # SQLite never cuts a file to less
        self._least = dict.fromkeys(self._limits, 0)  # sizes from now on
        self._salt: int | None = None  # of the log, once it was seen
        self._descriptor: int | None = None  # of the log

    @property
    def inode(self) -> int:
        """Return the inode of the database file."""
        file = self._known[self._path]
        return file[1] if file else 0

    def note_logs(self) -> bool:
        """Remember the log files; return False if SQLite still has earlier ones open."""
        found = {path: _file(path) for path in (self._log, self._index)}
        self._known |= found
        opened = _opened()
        if opened is not None and not opened >= {*found.values()}:
            return False
        with contextlib.suppress(OSError):
            self._descriptor = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        return True

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def is_lost(self) -> bool:
        """Return whether any of the files is no longer what it was; takes a few microseconds.

        One that was cut is lost, too: only a process that is alone in the database empties its log.
        """
        for path, file in self._known.items():
            try:
                status = os.stat(path)  # noqa: PTH116
            except OSError:
                if file is not None:
                    return True
                continue
            if file is not None and (status.st_dev, status.st_ino) != file:
                return True
            if path in self._limits:
                if status.st_size < self._least[path]:
                    return True
                self._note_size(path, status.st_size)
        return self._is_another()

    def note_commit(self) -> None:
        """Note that the log has grown."""
        self._note_size(self._log, _size(self._log))

    def _note_size(self, path: str, size: int) -> None:
        self._least[path] = max(self._least[path], min(size, self._limits[path]))

    def empty_overwritten_log(self) -> None:
        """Empty the log if it is no longer valid: what the index says of it would be copied.

        SQLite reports an error instead, when it finds less than the index says.
        """
        is_same = self._known.get(self._log) == _file(self._log) is not None
        if is_same and self._salt is not None and self._head() and self._salt_now() is None:
            with contextlib.suppress(OSError):
                os.truncate(self._log, 0)

    def _is_another(self) -> bool:
        """Return whether the log was overwritten, or started again by a process that found none.

        Each time SQLite starts it from the beginning, it adds one to the salt.
        """
        known, now = self._salt, self._salt_now()
        if known is None:
            self._salt = now
            return False
        if now is None or (now - known) % (1 << 32) > RESTARTS:
            return True
        self._salt = now
        return False

    def _salt_now(self) -> int | None:
        """Return the salt of the log; None if it is not a valid log."""
        head = self._head()
        return int.from_bytes(head[SALT:], "big") if head.startswith(MAGIC) else None

    def _head(self) -> bytes:
        """Return the header of the log; empty if the log is shorter."""
        head = os.pread(self._descriptor, HEADER, 0) if self._descriptor is not None else b""
        return head if len(head) == HEADER else b""

    def is_file_lost(self) -> bool:
        """Return whether the database file itself was, so that its log belongs to nothing."""
        return _file(self._path) != self._known[self._path]

    def is_log_readable(self) -> bool:
        """Return whether the log was removed, and nobody has written another since.

        Only this process and others that have it open can read it then.  But if another log has
        its place, they index that in the same shared memory, and reading gives the wrong pages.
        """
        file = self._known.get(self._log)
        return file is not None and _file(self._log) != file and _size(self._log) == 0

    def drop_logs(self) -> None:
        """Remove the log of the lost file: SQLite would apply it to the new one."""
        for path in (self._log, self._index):
            file = self._known.get(path)
            if file is not None and _file(path) == file:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0


def _opened() -> set[File | None] | None:
    """Return the files that this process has open; None if that is not known, without /proc."""
    files: set[File | None] = set()
    try:
        descriptors = os.listdir("/dev/fd")  # noqa: PTH208
    except OSError:
        return None
    for fd in descriptors:
        with contextlib.suppress(OSError):  # that of this listing
            status = os.fstat(int(fd))
            files.add((status.st_dev, status.st_ino))
    return files


def _file(path: str) -> File | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # missing or unreachable
        return None
    return status.st_dev, status.st_ino
