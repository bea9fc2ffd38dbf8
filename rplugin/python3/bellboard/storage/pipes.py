"""The pipes on which the hooks of permissions wait for their answers.

A host offers pipes in answers/ (`answers.py`), and a hook takes one: its mark names the event.  The
header of that event names the pipe, its `pipe`.  A host holds the write end of those it offers, and
of those whose question it shows, so that reading ends once the last such host is gone.

A pipe only wakes its hook.  Linux lets any process of ours that sees it write into it, even where
the folder is mounted read-only, as in a sandbox.  So what the hook obeys is a file beside it, which
only a host can make.  It says which event it answers, then in one line what to print, then what
that event asks, byte for byte: the hook prints nothing that was meant for anything else.
A hook whose mark is gone leaves.

Nothing here waits for a hook: no open and no write blocks.
"""

# ruff: noqa: PTH108
# Paths are strings here, as in spool.py.

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
import time
from typing import Final

from .answers import REPLY, TAKEN, is_ours, write
from .contents import is_pipe
from .ground import listing
from .item import OPEN

WAKE: Final = b"\n"
COUNTS: Final = 10.0  # seconds; the host that wrote an older reply has died before it took it back
LARGEST: Final = 256  # bytes of a mark
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

    def owner(self, name: str) -> str:
        """Return the name of the event whose hook has taken a pipe, or ""."""
        mark = self._read(f"{name}{TAKEN}", LARGEST) if is_pipe(name) else b""
        return mark.decode("ascii", "replace").removesuffix("\n")

    def send(self, name: str, event: str, asks: bytes, line: bytes) -> bool:
        """Write the answer to what an event asks, and wake its hook; return whether it waits."""
        data = _reply(event, asks, line)
        if self.owner(name) != event or not self.is_read(name):
            return False
        write(self._folder, f"{name}{REPLY}", data)
        return self._wake(name)

    def take_back(self, name: str, event: str, asks: bytes, line: bytes) -> None:
        """Remove an answer: a hook that has not obeyed it yet never will."""
        data, path = _reply(event, asks, line), f"{name}{REPLY}"
        if self._read(path, len(data) + 1) == data:
            self._unlink(path)

    def dismiss(self, name: str) -> None:
        """Send away the hook that waits, if any, and remove the pipe."""
        fd = self._open(name)
        self.remove(name)
        if fd is not None:
            _write(fd)

    def remove(self, name: str) -> None:
        """Remove a pipe."""
        self.let_go(name)
        if is_pipe(name):
            for mark in (REPLY, TAKEN, ""):
                self._unlink(f"{name}{mark}")

    def let_go(self, name: str) -> None:
        """No longer hold a pipe; others may."""
        if (fd := self._held.pop(name, None)) is not None:
            os.close(fd)

    def found(self) -> dict[str, bool]:
        """Return all pipes, and whether a hook has taken them."""
        names = listing(self._folder)
        taken = {name.removesuffix(TAKEN) for name in names if name.endswith(TAKEN)}
        pipes = {*taken, *(name.removesuffix(REPLY) for name in names)}
        return {name: name in taken for name in pipes if is_pipe(name)}

    def expire(self) -> float:
        """Remove the answers that killed hosts left; return the seconds until the next is old."""
        wait = math.inf
        for name in listing(self._folder):
            if name.endswith(REPLY):
                with contextlib.suppress(OSError):
                    age = time.time() - os.lstat(self._path(name)).st_mtime
                    if 0.0 <= age < COUNTS:
                        wait = min(wait, COUNTS - age)
                    else:
                        os.unlink(self._path(name))
        return wait

    def _wake(self, name: str) -> bool:
        """Wake a hook; return whether it waits."""
        fd = self._open(name)
        return fd is not None and _write(fd)

    def _read(self, name: str, most: int) -> bytes:
        """Read a file of ours; return b"" if it is anything else."""
        try:
            fd = os.open(self._path(name), OPEN)
        except OSError:
            return b""
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or not is_ours(status):
                return b""
            return file.read(most)

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(name))

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


def _write(fd: int) -> bool:
    """Wake whoever reads a pipe, and close it; return whether somebody does."""
    try:
        os.write(fd, WAKE)
    except OSError as error:  # EAGAIN: it is full, so its hook is awake
        return error.errno == errno.EAGAIN
    finally:
        os.close(fd)
    return True


def _reply(event: str, asks: bytes, line: bytes) -> bytes:
    """Return what the hook of an event obeys: no shell keeps a NUL, or newlines at the end."""
    if not line or b"\n" in line or b"\0" in line:
        raise ValueError("an answer is one line of text")
    return b"\n".join((event.encode(), line, asks.replace(b"\0", b"").rstrip(b"\n"), b""))
