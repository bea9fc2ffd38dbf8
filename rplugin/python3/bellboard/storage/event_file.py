"""A file of the spool: a hook event with its header, or a line of evidence."""

from __future__ import annotations

import errno
import functools
import os
import re
import stat
from typing import Final, Literal

import msgspec

from ..core.events import AGENT
from ..core.untrusted import decimal
from .state_folder import Refused, is_pipe

# The header of a hook event in the spool, as `hooks/emit` writes it.
#
# It consists of records that each end with a NUL byte. An empty record follows, then the CLI's
# payload, byte for byte:
#
#     bellboard 1                     the format
#     agent=claude                    the agent
#     event=Stop                      the name of its hook
#     pid=4711                        the process of the CLI, 0 if it is not known
#     start=122030                    when that started, if there is /proc: see `witnesses/proof.py`
#     pipe=4711.23                    a pipe in answers/ on which the hook waits, if it does
#     TMUX_PANE=%3                    TMUX, TMUX_PANE, NVIM and the names in ENVIRONMENT below, if
#                                     set; never any other, because others include tokens
#
# A value may contain anything but NUL; one of more than 4096 bytes is ignored.


MAGIC = b"bellboard 1\0"
VALUE_LIMIT = 4096  # bytes of a value: PATH_MAX
ENVIRONMENT = frozenset(
    (
        *("CLAUDE_PID", "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_JOB_DIR"),
        *("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED"),
        *("CLAUDE_CODE_PARENT_SESSION_ID", "TERM_PROGRAM", "SSH_CONNECTION"),
        "COPILOT_LOADER_PID",
    )
)


def parse(data: bytes) -> tuple[str, dict[str, object], str, bytes]:
    """Return the event, the origin, the pipe and the payload; raise `Refused` if incomplete."""
    header, end, payload = data.partition(b"\0\0")
    if not end:
        raise Refused("incomplete header")
    if not payload.strip():
        raise Refused("no payload")
    # Nearly all events of a session share a few headers: 0.2 µs instead of 4.
    read = _read if len(header) < VALUE_LIMIT else _read.__wrapped__
    return *read(header), payload


@functools.lru_cache(maxsize=256)
def _read(header: bytes) -> tuple[str, dict[str, object], str]:
    records: dict[str, str] = {}
    for record in header.split(b"\0")[1:]:
        name, _, value = record.partition(b"=")
        if value and len(value) <= VALUE_LIMIT:
            records[name.decode("ascii", "replace")] = value.decode("utf-8", "replace")
    origin: dict[str, object] = {"agent": records.get("agent", AGENT)}
    if (pid := decimal(records.get("pid", ""))) and pid < 1 << 31:
        origin["pid"] = pid
    if decimal(start := records.get("start", "")) is not None:
        origin["started"] = start
    if socket := records.get("TMUX", "").rsplit(",", 2)[0]:  # socket,pid,session
        origin["tmux"] = socket
    if pane := records.get("TMUX_PANE"):
        origin["pane"] = pane
    if server := records.get("NVIM"):
        origin["nvim"] = server
    origin["env"] = {name: value for name, value in records.items() if name in ENVIRONMENT}
    pipe = records.get("pipe", "")
    return records.get("event", ""), origin, pipe if is_pipe(pipe) else ""


# A file of the spool, as it is read: a hook event, or a line of evidence.
#
# A hook event begins with a header (see above). Evidence that hosts and users add is one line
# of JSON as in a trace, `{"t": …, "registry": {…}}`.


# Paths are strings here, as in spool.py.


NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}", re.ASCII)
LIMIT: Final = 1 << 20  # bytes to read of a file
#: Errors of the system: the file is read once resources are available again.
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
    if data.startswith(MAGIC):
        event, origin, pipe, payload = parse(data)
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
