"""The running hosts, a file for each. While there is one, hooks keep every event."""

# Paths are strings here, as in `spool.py`.

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ..core.untrusted import decimal
from ..system.processes import is_suspended, ran_at, started_of
from .event_file import OF_THE_SYSTEM, OPEN
from .set_aside import remove
from .state_folder import briefly, inside, listing, stranger

LARGEST_NOTES = 1 << 20  # bytes to read
UNSAVED: Final = ".unsaved"  # after the pid
STARTED: Final = "started"  # beside the notes: when the process started, in the system's unit
_ANNOUNCE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Hosts:
    """The files in hosts/, named after the processes."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._record = b""  # what is in our file, unless it was removed

    def announce(self, pid: int, notes: Mapping[str, str] | None = None) -> None:
        """Record that a host is running, so that hooks keep every event; repeat at each rescan.

        With notes, also record what is wrong, for doctor.
        """
        record = self._record
        if notes is not None or not record:
            started = {STARTED: started_of(pid)}
            record = msgspec.json.encode({**(notes or {}), **started})
        fd = self._created(str(pid))
        try:
            os.fchmod(fd, 0o600)  # whatever the umask
            os.utime(fd)
            if record != self._record or not os.fstat(fd).st_size:
                os.ftruncate(fd, 0)
                self._record = record
                try:
                    os.write(fd, record)
                except OSError:  # a full disk: a file without contents says that a host runs
                    if notes is not None:
                        raise
        finally:
            os.close(fd)

    def _created(self, name: str) -> int:
        """Open a record to write."""
        with inside(self._folder) as folder:
            try:
                return os.open(name, _ANNOUNCE, 0o600, dir_fd=folder)
            except OSError as e:  # a link or a pipe: not ours
                if e.errno in OF_THE_SYSTEM or not remove(f"{self._folder}/{name}"):
                    raise
                return os.open(name, _ANNOUNCE, 0o600, dir_fd=folder)

    def notes_of(self, pid: int) -> dict[str, str]:
        """Return the last notes of a host."""
        record = self._record_of(str(pid))
        record.pop(STARTED, None)
        return record

    def list_unsaved(self, pid: int, paths: Sequence[str]) -> None:
        """Record the files with unsaved changes in the editor of a host, for `hooks/emit`.

        A line each, as Claude Code writes a path into its JSON; none: no record.
        """
        name = f"{pid}{UNSAVED}"
        if not paths:
            Path(f"{self._folder}/{name}").unlink(missing_ok=True)
            return
        lines = (json.dumps(path, ensure_ascii=False) for path in paths)
        with os.fdopen(self._created(f".{name}"), "wb") as file:
            file.truncate()
            file.writelines(f"{line}\n".encode("utf-8", "surrogateescape") for line in lines)
        with inside(self._folder) as folder:
            os.replace(f".{name}", name, src_dir_fd=folder, dst_dir_fd=folder)

    def withdraw(self, pid: int) -> None:
        """Record that a host has stopped."""
        for name in (str(pid), f"{pid}{UNSAVED}"):
            Path(f"{self._folder}/{name}").unlink(missing_ok=True)

    def alive(self) -> list[int]:
        """Return the running hosts, and remove the records of dead ones, and nothing else."""
        alive: list[str] = []
        dead: list[str] = []
        for name in filter(decimal, listing(self._folder)):
            path = f"{self._folder}/{name}"
            with contextlib.suppress(OSError):
                written = os.lstat(path).st_mtime
                is_alive = _alive(name) and self._is_of(name, written)
                (alive if is_alive else dead).append(name)
        if dead and stranger(Path(self._folder).parent):  # not our records
            dead.clear()
        for name in briefly(dead):
            with contextlib.suppress(OSError):
                self.withdraw(int(name))
        return sorted(map(int, alive))

    def is_watching(self) -> bool:
        """Return whether a host runs, and is not suspended with its editor."""
        return not all(map(is_suspended, self.alive()))

    def _is_of(self, pid: str, written: float) -> bool:
        """Return whether a record is that of the process that has the pid now.

        A clock that is set moves what is known of when it began, but not when it started.
        """
        started = self._record_of(pid).get(STARTED)
        return bool(started and started == started_of(int(pid))) or ran_at(int(pid), written)

    def _record_of(self, pid: str) -> dict[str, str]:
        try:
            with open(f"{self._folder}/{pid}", "rb", opener=_opener) as file:
                return msgspec.json.decode(file.read(LARGEST_NOTES) or b"{}", type=dict[str, str])
        except (OSError, ValueError):  # gone, or just being written
            return {}


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | OPEN)


def _alive(pid: str) -> bool:
    number = decimal(pid)
    if not number or number >= 1 << 31:
        return False
    try:
        os.kill(number, 0)
    except OSError:
        return False
    return True
