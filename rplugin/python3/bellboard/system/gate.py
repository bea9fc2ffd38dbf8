"""The gate: every connection to the socket of a tmux or a Neovim passes here, and nowhere else.

A tmux client runs what its server tells it to run, and evidence can name any server.  So a socket
is connected to only if it, and every folder and link on the way to it, belongs to us or to root,
and nobody else may change one of those folders, unless it is sticky, as /tmp is.  Then nobody else
can put another socket in its place between the look and the connection, either.  An address with
a host and a port is never connected to, nor what lies on a file system that a program answers for:
that may lie, and may let us wait for ever.

To look may hang, as any look at a file may: do it outside the event loop.
"""

from __future__ import annotations

import os
import shutil
import socket as sockets
import stat
import struct
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

from .mounts import TABLE, near, read

MOST_LINKS: Final = 16  # on the way to one socket
#: A longer path does not fit into the address of a socket, and some programs cut it.
LONGEST: Final = 107 if sys.platform == "linux" else 103
ROOT: Final = 0
#: Folders of the machine.  A container without its root shows them as those of nobody.
MACHINE: Final = frozenset({"/", "/home", "/run", "/run/user", "/tmp", "/var", "/var/tmp"})
NOBODY: Final = 65534
_LOCAL_PEERCRED: Final = (0, 1)  # of macOS and the BSDs: level and option


class Refused(OSError):
    """Why an address is not connected to, in words."""


def admitted(address: object) -> str:
    """The path to connect to, without links; FileNotFoundError if nothing is there."""
    if not isinstance(address, str) or not address.startswith("/"):
        raise Refused("it is no path of this machine")
    try:
        return _walked(address)
    except (Refused, FileNotFoundError):
        raise
    except OSError as error:
        raise Refused(f"it cannot be looked at: {error.strerror}") from None
    except ValueError:  # a NUL; half a character
        raise Refused("it is no path") from None


def tmux(socket: str, *command: str) -> list[str]:
    """What to run to have that tmux server do something."""
    return [program() or "tmux", "-u", "-S", admitted(socket), *command]


def program() -> str:
    """Where tmux is; empty if it is not installed."""
    return shutil.which("tmux", path=near(os.environ.get("PATH", os.defpath))) or ""


def connected(address: str, patience: float) -> sockets.socket:
    """A connection to the Neovim that listens there."""
    path = admitted(address)
    connection = sockets.socket(sockets.AF_UNIX)
    try:
        connection.settimeout(patience)
        connection.connect(path)
        if _peer(connection) not in (ROOT, os.geteuid()):
            raise Refused("another user listens there")
    except BaseException:
        connection.close()
        raise
    return connection


def _peer(connection: sockets.socket) -> int:
    """The user who listens at the other end."""
    if hasattr(sockets, "SO_PEERCRED"):
        told = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", told)[1])
    told = connection.getsockopt(*_LOCAL_PEERCRED, struct.calcsize("2I"))
    return int(struct.unpack("2I", told)[1])


def _walked(address: str) -> str:
    """Look at each part of a path in turn, and go where its links lead."""
    programs = _programs()
    waiting, here, links = _parts(address), "", 0
    _judge_folder("/", os.lstat("/"))
    while waiting:
        name = waiting.pop()
        if name == "..":
            here = here.rpartition("/")[0]
            continue
        path = f"{here}/{name}"
        if path in programs:  # which may say anything of what lies there, or let us wait for ever
            raise Refused(f"a program answers for all in {path}")
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            _judge_owner(path, status)
            links += 1
            if links > MOST_LINKS:
                raise Refused("it leads through too many links")
            target = str(Path(path).readlink())
            here = "" if target.startswith("/") else here
            waiting += _parts(target)
        elif stat.S_ISDIR(status.st_mode):
            _judge_folder(path, status)
            here = path
        elif stat.S_ISSOCK(status.st_mode) and not waiting:
            _judge_owner(path, status)
            if len(os.fsencode(path)) > LONGEST:
                raise Refused("its path is too long for a socket")
            return path
        else:
            break
    raise Refused("it is no socket")


def _judge_folder(path: str, status: os.stat_result) -> None:
    """Refuse a folder in which somebody else could replace what is ours."""
    if not (path in MACHINE and status.st_uid == NOBODY):
        _judge_owner(path, status)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise Refused(f"others may write to {path}")


def _judge_owner(path: str, status: os.stat_result) -> None:
    if status.st_uid not in (ROOT, os.geteuid()):
        raise Refused(f"{path} belongs to another user")


def _parts(path: str) -> list[str]:
    """The names in a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _programs() -> Collection[str]:
    """Where file systems are mounted for which a program answers."""
    try:
        return {mount.place for mount in read(TABLE) if mount.is_fuse}
    except OSError:  # not Linux
        return ()
