"""Orders: commands that a running host carries out for a shell.

The host has loaded all that a command needs, so the command does not have to before it counts.
What a host does not take, or declines, the command does itself, in the same way.

    orders/NAME         a pipe: the command waits there for the reply
    orders/NAME.order   the command; whichever host renames it to NAME.PID has taken it

The host writes TAKEN to the pipe, then the reply, which ends with a line feed.  If the pipe ends
before, the order was declined, or the host has died.  Of a command that has ended nothing is
carried out, because nobody reads its pipe.

This module loads little, which is its purpose: no `typing`, no `contextlib`, no `pathlib`.
"""

# ruff: noqa: PTH208

from __future__ import annotations

import os
import select
import stat
import time

from ..core.version import VERSION
from .place import place_of

TYPE_CHECKING = False  # see place.py
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "orders"
ORDER = ".order"
TAKEN = b"+"
END = b"\n"
MAGIC = f"bellboard order {VERSION}"  # a host of another version leaves it alone
LARGEST = 1 << 17  # bytes of an order: a command line has few more
SOON = 0.25  # seconds for a host to take an order, which takes it a millisecond
PATIENCE = 12.0  # seconds for the reply: an answer takes up to 11
GLANCE = 0.005

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def is_order(words: Sequence[str]) -> bool:
    """Return whether a command may be worth an order: `answer SESSION CHOICE`."""
    return len(words) > 2 and words[0] == "answer" and not words[1].startswith("-")


def hand(words: Sequence[str], by: str, environ: Mapping[str, str]) -> bytes:
    """Let a running host carry out a command; return its reply, or b"" if none has."""
    home = place_of(environ)
    try:
        if not (home.startswith("/") and _is_hosted(home)):
            return b""
        folder = os.open(f"{home}/{FOLDER}", _FOLDER)
    except (OSError, ValueError):
        return b""
    try:
        status = os.fstat(folder)  # if it is ours alone, nobody else put anything into it
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            return b""
        return _handed(folder, encoded(words, by))
    except (OSError, ValueError):
        return b""
    finally:
        os.close(folder)


def encoded(words: Sequence[str], by: str) -> bytes:
    return "\0".join((MAGIC, by, *words)).encode("utf-8", "surrogateescape")


def decoded(data: bytes) -> tuple[list[str], str] | None:
    """Return the words of an order and who gives it, or None if it is not one of this version."""
    magic, *rest = data.decode("utf-8", "surrogateescape").split("\0")
    return (rest[1:], rest[0]) if magic == MAGIC and len(rest) > 1 else None


def _is_hosted(home: str) -> bool:
    for name in os.listdir(f"{home}/hosts"):
        if name.isascii() and name.isdigit():
            try:
                os.kill(int(name), 0)
            except (OSError, OverflowError):
                continue
            return True
    return False


def _handed(folder: int, data: bytes) -> bytes:
    name = f"{os.getpid()}.{time.time_ns()}"
    draft = f"{name}.draft"
    os.mkfifo(name, 0o600, dir_fd=folder)
    try:
        pipe = os.open(name, _READ, dir_fd=folder)
        try:
            fd = os.open(draft, _CREATE, 0o600, dir_fd=folder)
            try:
                is_whole = os.write(fd, data) == len(data)
            finally:
                os.close(fd)
            if not is_whole or len(data) > LARGEST:
                return b""
            os.rename(draft, name + ORDER, src_dir_fd=folder, dst_dir_fd=folder)
            return _reply(folder, pipe, name + ORDER)
        finally:
            os.close(pipe)
    finally:
        for each in (draft, name + ORDER, name):
            _removed(folder, each)


def _reply(folder: int, pipe: int, order: str) -> bytes:
    """Wait for the reply; withdraw an order that no host takes."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    begun, data = time.monotonic(), b""
    while (waited := time.monotonic() - begun) < PATIENCE:
        if not data and waited > SOON and _removed(folder, order):
            return b""
        if not poll.poll(SOON * 1000):
            continue
        more = os.read(pipe, 1 << 16)
        if not more and data:
            break
        data += more
        if not more:  # no host has opened it yet
            time.sleep(GLANCE)
    return data[len(TAKEN) :] if data.endswith(END) else b""


def _removed(folder: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    return True
