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

    @property
    def inode(self) -> int:
        """Return the inode of the database file."""
        file = self._known[self._path]
        return file[1] if file else 0

    def note_logs(self) -> None:
        """Note the log files; call this once SQLite has opened them."""
        self._known |= {path: _file(path) for path in self._logs}

    def is_lost(self) -> bool:
        """Return whether any of the files was removed or replaced; takes a few microseconds."""
        return any(file is not None and _file(path) != file for path, file in self._known.items())

    def is_file_lost(self) -> bool:
        """Return whether the database file itself was, so that its log belongs to nothing."""
        return _file(self._path) != self._known[self._path]

    def drop_logs(self) -> None:
        """Remove the log of the lost file: SQLite would apply it to the new one."""
        for path in self._logs:
            file = self._known.get(path)
            if file is not None and _file(path) == file:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108


def _file(path: str) -> File | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # missing or unreachable
        return None
    return status.st_dev, status.st_ino
