"""Follow a path part by part and through its links, so that each part can be judged in turn."""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from . import processes
from .mounts import TABLE, near, read

# ruff: noqa: PTH115
# Paths are strings here: a link may hold anything.


class TooManyLinks(OSError):
    """A path leads through more links than allowed."""


class PathPart(NamedTuple):
    """A folder or link on the way to a path, or the file at its end."""

    path: str  # with no link on the way to it
    status: os.stat_result
    is_last: bool  # nothing follows, unless it is a link


def parts_of(
    path: str, most_links: int, look: Callable[[str], os.stat_result] = os.lstat
) -> Iterator[PathPart]:
    """Yield the parts of a path, from the root on; each is looked at only when it is asked for.

    Raise OSError where there is nothing, or what `look` raises.
    """
    yield PathPart("/", look("/"), False)
    waiting, here, links = _names(path), "", 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            here = here.rpartition("/")[0]
            continue
        at = f"{here}/{name}"
        status = look(at)
        yield PathPart(at, status, not waiting)
        if not stat.S_ISLNK(status.st_mode):
            here = at
            continue
        links += 1
        if links > most_links:
            raise TooManyLinks(errno.ELOOP, "too many links", path)
        target = os.readlink(at)
        here = "" if target.startswith("/") else here
        waiting += _names(target)


def _names(path: str) -> list[str]:
    """Return the names in a path, last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


# The gate: every connection to another program on this machine passes this check.
#
# A tmux client runs what its server tells it to, and evidence can name any server. So we
# connect to a socket only if it, and every folder and link on the way to it, belongs to us or
# to root, and nobody else may write to those folders, unless they are sticky like /tmp. Then
# nobody else can replace the socket between the check and the connection, either. We never
# connect to a socket on a FUSE mount: its program may lie, or let us wait forever. Of ports,
# only those of this machine that a known process listens on itself are admitted.
#
# The check may hang, like any access to a file: run it outside the event loop.


if TYPE_CHECKING:
    import socket as sockets

    Connection = sockets.socket

MOST_LINKS: Final = 16  # on the way to one socket
#: A longer path does not fit into a socket address, and some programs truncate it.
LONGEST_PATH: Final = 107 if sys.platform == "linux" else 103
ROOT: Final = 0
#: Folders of the machine; in a rootless container they belong to nobody.
MACHINE: Final = frozenset({"/", "/home", "/run", "/run/user", "/tmp", "/var", "/var/tmp"})
NOBODY: Final = 65534
#: macOS and the BSDs: level and option; the second one is macOS's alone.
_LOCAL_PEERCRED: Final = (0, 1)
_LOCAL_PEERPID: Final = (0, 2)
HERE: Final = "127.0.0.1"


class Denied(OSError):
    """The gate does not allow a connection; the text says why."""


def admitted(address: object, is_folder: bool = False) -> str:
    """Return the path to connect to, without links; raise `Denied` or FileNotFoundError.

    In a folder, nobody else can replace what we make there.
    """
    if not isinstance(address, str) or not address.startswith("/"):
        raise Denied("not a local path")
    try:
        return _walked(address, is_folder)
    except (Denied, FileNotFoundError):
        raise
    except OSError as error:
        raise Denied(f"cannot be checked: {error.strerror}") from None
    except ValueError:  # a NUL or a lone surrogate
        raise Denied("not a path") from None


def tmux(socket: str, *command: str) -> list[str]:
    """Return the command line that sends a command to a tmux server."""
    return [program() or "tmux", "-u", "-S", admitted(socket), *command]


def new_tmux(socket: str, *command: str) -> list[str]:
    """Return the command line that starts a tmux server with a command, where there is none."""
    try:
        path = admitted(socket)  # left over
    except FileNotFoundError:
        folder, name = os.path.split(socket)
        path = f"{admitted(folder, is_folder=True)}/{name}"
    return [program() or "tmux", "-u", "-S", path, *command]


def program() -> str:
    """Return the path of tmux, or "" if it is not installed."""
    return near("tmux", os.environ.get("PATH", os.defpath)) or ""


def connected(address: str, patience: float, pid: int = 0) -> Connection:
    """Connect to a socket; with a process id, only if that process listens there."""
    import socket as sockets

    path = admitted(address)
    connection = sockets.socket(sockets.AF_UNIX)
    try:
        connection.settimeout(patience)
        connection.connect(path)
        user, listener = _peer(connection)
        if user not in (ROOT, os.geteuid()):
            raise Denied("another user listens there")
        if pid and listener != pid:
            raise Denied("another process listens there")
    except BaseException:
        connection.close()
        raise
    return connection


def looped(port: int, pid: int, patience: float) -> Connection:
    """Connect to a port of this machine that the process itself listens on."""
    import socket as sockets

    if port not in processes.own_ports(pid):
        raise Denied(f"process {pid} does not listen on port {port}")
    connection = sockets.create_connection((HERE, port), patience)
    if port in processes.own_ports(pid):  # still: another process may have taken it
        return connection
    connection.close()
    raise Denied(f"process {pid} no longer listens on port {port}")


def _peer(connection: Connection) -> tuple[int, int]:
    """Return the user and the process at the other end; 0 for a process that is unknown."""
    import socket as sockets

    if hasattr(sockets, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        raw = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, size)
        pid, user, _ = struct.unpack("3i", raw)
        return user, pid
    raw = connection.getsockopt(*_LOCAL_PEERCRED, struct.calcsize("2I"))
    pid = connection.getsockopt(*_LOCAL_PEERPID) if sys.platform == "darwin" else 0
    return int(struct.unpack("2I", raw)[1]), pid


def _walked(address: str, is_folder: bool) -> str:
    """Check each part of a path in turn, following its links."""
    programs = _programs()

    def look(path: str) -> os.stat_result:
        if path in programs:  # it may lie, or let us wait forever
            raise Denied(f"{path} is a FUSE mount")
        return os.lstat(path)

    try:
        for path, status, is_last in parts_of(address, MOST_LINKS, look):
            if stat.S_ISDIR(status.st_mode):
                _judge_folder(path, status)
                if is_last and is_folder:
                    return path
                continue
            if not stat.S_ISLNK(status.st_mode) and not (stat.S_ISSOCK(status.st_mode) and is_last):
                break
            _judge_owner(path, status)
            if stat.S_ISSOCK(status.st_mode):
                if len(os.fsencode(path)) > LONGEST_PATH:
                    raise Denied("path too long for a socket")
                return path
    except TooManyLinks:
        raise Denied("too many links") from None
    raise Denied("not a folder" if is_folder else "not a socket")


def _judge_folder(path: str, status: os.stat_result) -> None:
    """Deny a folder in which somebody else could replace our files."""
    if not (path in MACHINE and status.st_uid == NOBODY):
        _judge_owner(path, status)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise Denied(f"others may write to {path}")


def _judge_owner(path: str, status: os.stat_result) -> None:
    if status.st_uid not in (ROOT, os.geteuid()):
        raise Denied(f"{path} belongs to another user")


def _programs() -> Collection[str]:
    """Return the FUSE mounts, but not the root: nothing works if that lies."""
    try:
        return {mount.place for mount in read(TABLE) if mount.is_fuse} - {"/"}
    except (FileNotFoundError, NotADirectoryError):  # not Linux
        return ()
    except OSError as e:  # such as no file descriptors left
        raise Denied(f"the mounts cannot be read: {e.strerror}") from None
