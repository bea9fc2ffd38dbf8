"""A file of the spool, as it is read: a hook event, or a line of evidence.

A hook event begins with a header (`header.py`).  Evidence that hosts and users add is one line of
JSON as in a trace, `{"t": …, "registry": {…}}`.
"""

# Paths are strings here, as in spool.py.

from __future__ import annotations

import errno
import os
import re
import stat
from typing import Final, Literal

import msgspec

from . import header
from .ground import Refused

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}", re.ASCII)
LIMIT: Final = 1 << 20  # bytes to read of a file
#: Not the file's fault: it is read once resources are available again.
OF_THE_SYSTEM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

#: For a file that any program of the user may have put there.
OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFLNK: "a symlink",
    stat.S_IFSOCK: "a socket",
}


class Item(msgspec.Struct, frozen=True):
    """A file in the spool."""

    name: str
    t: float
    kind: Literal["hook", "line"]
    event: str  # the name of the hook; the payload may lack it
    # agent, pid, tmux, pane, nvim, env, as far as known; shared, so do not change it. None: a line
    origin: dict[str, object] | None
    payload: bytes
    truncated: bool
    pipe: str = ""


def read_item(folder: str, name: str) -> Item | None:
    """Read a file; return None if it is gone, raise `Refused` if it is not a valid event.

    Raise OSError if it may be read later.
    """
    path = f"{folder}/{name}"
    try:
        fd = os.open(path, OPEN)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in OF_THE_SYSTEM:
            raise
        if why := _kind(path):
            raise Refused(why) from None
        if error.errno in (errno.EACCES, errno.EPERM):
            raise Refused(f"cannot be opened: {error.strerror}") from None
        raise  # such as EIO: the disk's fault
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(_KINDS.get(stat.S_IFMT(status.st_mode), "a device"))
        if status.st_uid != os.geteuid():
            raise Refused("belongs to another user")
        want = min(status.st_size, LIMIT)
        data = os.read(fd, want)
        while len(data) < want and (more := os.read(fd, want - len(data))):
            data += more
    finally:
        os.close(fd)
    ns, truncated = status.st_mtime_ns, status.st_size > LIMIT
    if data.startswith(header.MAGIC):
        event, origin, pipe, payload = header.parse(data)
        return Item(name, ns / 1e9, "hook", event, origin, payload, truncated, pipe)
    if not data.startswith(b"{"):
        # A crash of the machine leaves files that have a name but no content.
        raise Refused("unknown format" if data.strip(b"\0") else "empty")
    if truncated:
        raise Refused("a line of more than 1 MB")
    return Item(name, ns / 1e9, "line", "", None, data, False)


def _kind(path: str) -> str | None:
    try:
        return _KINDS.get(stat.S_IFMT(os.lstat(path).st_mode))
    except FileNotFoundError:
        return None
