"""The pipes on which the hooks of permissions wait for their answers.

A host offers pipes in answers/ (`answers.py`), and a hook takes one.  The header of the hook's
event names it, its `pipe`.  A host holds the write end of those it offers, and of those whose
question it shows, so that reading ends once the last such host is gone.
An answer is one line, then `end`; an empty line sends the hook away.

Nothing here waits for a hook: no open and no write blocks.
"""

# ruff: noqa: PTH108
# Paths are strings here, as in spool.py.

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import time
from typing import Final

from .answers import TAKEN, is_ours
from .contents import is_pipe
from .ground import listing

END: Final = b"\nend\n"
DISMISSAL: Final = b"\n"
PATIENCE: Final = 2.0  # seconds for a hook to read on, if the pipe cannot hold an answer
ROOM: Final = 1 << 16  # bytes that a pipe holds
_SET_ROOM: Final = getattr(fcntl, "F_SETPIPE_SZ", None)
_WRITE: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_BOTH: Final = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class Pipes:
    """The pipes in a folder; `held` are those of which this process holds the write end."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self._held)

    def offer(self) -> None:
        """Make a pipe for a hook to take, and hold it."""
        name = f"{os.getpid()}.{time.time_ns()}"
        path = self._path(name)
        os.mkfifo(path, 0o600)
        try:
            both = os.open(path, _BOTH)  # without a reader, it cannot be opened for writing only
            try:
                self._held[name] = os.open(path, _WRITE)
            finally:
                os.close(both)
        except OSError:
            self.remove(name)
            raise

    def hold(self, name: str) -> bool:
        """Keep a hook waiting even if the host that offered its pipe ends; return if one waits."""
        if name not in self._held:
            if (fd := self._open(name)) is None:
                return False
            self._held[name] = fd
        return True

    def is_read(self, name: str) -> bool:
        """Return whether a hook waits on a pipe."""
        fd = self._open(name)
        if fd is not None:
            os.close(fd)
        return fd is not None

    def send(self, name: str, line: bytes) -> bool:
        """Send an answer; return whether a hook was there and all of it was sent.

        If the system refuses a larger pipe for more than 64 kB, this takes as long as the hook
        needs to read: not in an event loop.
        """
        if not line or b"\n" in line or b"\0" in line:
            raise ValueError("an answer is one line of text")
        fd = self._open(name)
        if fd is None:
            return False
        try:
            return _write(fd, line + END)
        finally:
            os.close(fd)

    def dismiss(self, name: str) -> None:
        """Send away the hook that waits, if any, and remove the pipe."""
        fd = self._open(name)
        if fd is not None:
            with contextlib.suppress(OSError):  # it has just left, or has an answer to read
                os.write(fd, DISMISSAL)
            os.close(fd)
        self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a pipe."""
        self.let_go(name)
        for path in (self._path(name), self._path(name) + TAKEN):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def let_go(self, name: str) -> None:
        """No longer hold a pipe; others may."""
        if (fd := self._held.pop(name, None)) is not None:
            os.close(fd)

    def found(self) -> dict[str, bool]:
        """Return all pipes, and whether a hook has taken them."""
        names = listing(self._folder)
        taken = {name[: -len(TAKEN)] for name in names if name.endswith(TAKEN)}
        return {name: name in taken for name in {*names, *taken} if is_pipe(name)}

    def _open(self, name: str) -> int | None:
        """Open a pipe to write; return None if nobody reads it, or it is not ours."""
        if not is_pipe(name):
            return None
        try:
            fd = os.open(self._path(name), _WRITE)
        except OSError:
            return None
        status = os.fstat(fd)
        if stat.S_ISFIFO(status.st_mode) and is_ours(status):
            return fd
        os.close(fd)
        return None

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _write(fd: int, data: bytes) -> bool:
    """Write to a pipe; return whether all of it was written."""
    if len(data) > ROOM and _SET_ROOM is not None:
        with contextlib.suppress(OSError):  # above the limits of the system
            fcntl.fcntl(fd, _SET_ROOM, len(data))
    until = time.monotonic() + PATIENCE
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                return False
        except OSError:  # the hook has left
            return False
    return True
