"""A file that others keep: read whole, and written so that it is always the old or the new one.

What hangs on it stays: mode, owner, extended attributes, and the link that leads to it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from .files import read

LARGEST: Final = 8 << 20  # bytes; nobody wrote that by hand, and to read it takes seconds
PREFIX: Final = ".bellboard-new."


def content(path: Path) -> bytes | None:
    """What is in it; None if it is not there; OSError if it is no file, or cannot be read."""
    try:
        return read(path, LARGEST, ours=False)[0]
    except FileNotFoundError:
        return None


def target_of(path: Path) -> Path:
    """Where a link leads, there or not; the path itself if it is none."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def obstacle(path: Path) -> str:
    """Why it should not be written, though it perhaps could; empty if nothing is in the way."""
    try:
        status = target_of(path).stat()
    except FileNotFoundError:
        return ""
    if not stat.S_ISREG(status.st_mode):
        return "is not a file"
    if not status.st_mode & stat.S_IWUSR:
        return "is read-only"
    if os.geteuid() not in (0, status.st_uid):
        return "belongs to another user"
    if status.st_nlink > 1:
        return "has a second name (a hard link), which a safe write would part from it"
    return ""


def replace(path: Path, data: bytes | None, expected: bytes | None) -> bool:
    """Write it, or (None) remove it; False, and nothing is done, if it is not what was expected."""
    target = target_of(path)
    if data is None:
        if content(target) != expected:
            return False
        target.unlink(missing_ok=True)
        _settle(target.parent)
        return True
    for left in target.parent.glob(f"{PREFIX}*"):  # of one that was killed
        left.unlink(missing_ok=True)
    made = target.with_name(f"{PREFIX}{os.getpid()}")
    try:
        _write(made, data, target)
        if content(target) != expected:
            return False
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)
    _settle(target.parent)
    return True


def copy(path: Path, to: Path) -> None:
    """A second file of the same bytes, as private as the first; never over one that is there."""
    data = content(path)
    if data is not None:
        _write(to, data, path)


def _write(made: Path, data: bytes, like: Path) -> None:
    """A new file, on the disk when this returns, and its mode and owner as that other's."""
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        with contextlib.suppress(FileNotFoundError):
            _dress(descriptor, like)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _dress(descriptor: int, like: Path) -> None:
    status, own = like.stat(), os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
        with contextlib.suppress(PermissionError):  # a group that the user has left
            os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # not of this file system, or not for this user
            for name in os.listxattr(like):
                os.setxattr(descriptor, name, os.getxattr(like, name))


def _settle(folder: Path) -> None:
    """Have the new name on the disk too, where a folder can be asked for that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
