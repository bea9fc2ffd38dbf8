"""Detect when the files of an open database have been removed or replaced.

Commits to such a file are lost: other hosts, and this one after a restart, open the new file.
"""

from __future__ import annotations

import contextlib
import os

File = tuple[int, int]  # device, inode


class Identity:
    """The files of an open database; those of SQLite's log are noted once they exist."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._logs = (f"{path}-wal", f"{path}-shm")
        self._known = {path: _file(path)}
        self._is_written = False  # whether the log was seen with contents

    @property
    def inode(self) -> int:
        """Return the inode of the database file."""
        file = self._known[self._path]
        return file[1] if file else 0

    def note_logs(self) -> bool:
        """Note the log files; return whether SQLite has opened these, and not earlier ones."""
        found = {path: _file(path) for path in self._logs}
        self._known |= found
        opened = _opened()
        return opened is None or opened >= {*found.values()}

    def is_lost(self) -> bool:
        """Return whether any of the files is no longer there; takes a few microseconds.

        A log that was emptied is lost too: only who has the database alone empties it.
        """
        for path, file in self._known.items():
            if file is not None and _file(path) != file:
                return True
        if _size(self._logs[0]) > 0:
            self._is_written = True
            return False
        return self._is_written

    def is_file_lost(self) -> bool:
        """Return whether the database file itself was, so that its log belongs to nothing."""
        return _file(self._path) != self._known[self._path]

    def is_log_readable(self) -> bool:
        """Return whether the log was removed, and nobody has written another since.

        Only this process and others that have it open can read it then.  But with another log in
        its place, which they index in the same shared memory, it would give the wrong pages.
        """
        log = self._logs[0]
        file = self._known.get(log)
        return file is not None and _file(log) != file and _size(log) == 0

    def drop_logs(self) -> None:
        """Remove the log of the lost file: SQLite would apply it to the new one."""
        for path in self._logs:
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
