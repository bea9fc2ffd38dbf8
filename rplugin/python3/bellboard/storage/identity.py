"""Whether the files of a database that is open are still those that its paths lead to.

A host that commits into a file which was removed or replaced commits for nobody: other hosts, and
its own next life, open what is there now.
"""

from __future__ import annotations

import contextlib
import os

File = tuple[int, int]  # device, inode


class Identity:
    """The files of one open database; those of SQLite's log are noted once they are there."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._logs = (f"{path}-wal", f"{path}-shm")
        self._known = {path: _file(path)}

    @property
    def inode(self) -> int:
        """The file's own."""
        file = self._known[self._path]
        return file[1] if file else 0

    def note_logs(self) -> None:
        """The log is open by now, if there is one."""
        self._known |= {path: _file(path) for path in self._logs}

    def is_lost(self) -> bool:
        """Whether a path leads elsewhere: costs a few microseconds."""
        return any(file is not None and _file(path) != file for path, file in self._known.items())

    def is_file_lost(self) -> bool:
        """Whether that is so of the database itself, so that its log belongs to nothing."""
        return _file(self._path) != self._known[self._path]

    def drop_logs(self) -> None:
        """Remove the log of the lost file, which SQLite would apply to the one there now."""
        for path in self._logs:
            file = self._known.get(path)
            if file is not None and _file(path) == file:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108


def _file(path: str) -> File | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # not there, or out of reach
        return None
    return status.st_dev, status.st_ino
