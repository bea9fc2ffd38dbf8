"""Read and atomically replace a file that others own too.

Its mode, owner, extended attributes and any link to it stay the same.  Folders that are made for a
new file can be removed with it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ..core.lenient import decimal
from .files import read
from .processes import is_alive

LARGEST: Final = 8 << 20  # bytes; larger files were not written by hand, and take seconds to read
PREFIX: Final = ".bellboard-new."


def content(path: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist; raise OSError otherwise."""
    try:
        return read(path, LARGEST, ours=False)[0]
    except FileNotFoundError:
        return None


def target_of(path: Path) -> Path:
    """Return the target of a link, whether it exists or not, or the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def obstacle(path: Path) -> str:
    """Return why a file should not be written even if it could be, or ""."""
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
        return "has a hard link, which an atomic write would break"
    return ""


def replace(path: Path, data: bytes | None, expected: bytes | None) -> bool:
    """Write a file, or (None) remove it; return False and do nothing if it is not as expected."""
    target = target_of(path)
    if data is None:
        if content(target) != expected:
            return False
        target.unlink(missing_ok=True)
        _sync(target.parent)
        return True
    made = target.with_name(f"{PREFIX}{os.getpid()}")
    for left in target.parent.glob(f"{PREFIX}*"):
        if not _is_being_written(left):
            left.unlink(missing_ok=True)
    try:
        _write(made, data, target)
        if content(target) != expected:
            return False
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)
    _sync(target.parent)
    return True


def missing_folders(path: Path) -> list[str]:
    """Return the folders that have to be made for a file, innermost first."""
    return [str(folder) for folder in path.parents if not os.path.lexists(folder)]


def remove_empty(folders: Iterable[str]) -> None:
    """Remove the folders that were made for a file, as far as they are empty."""
    with contextlib.suppress(OSError):
        for folder in folders:
            Path(folder).rmdir()


def _is_being_written(left: Path) -> bool:
    """Return whether another process writes this file, rather than having been killed meanwhile."""
    pid = decimal(left.name.removeprefix(PREFIX))
    return pid is not None and pid not in (0, os.getpid()) and is_alive(pid)


def copy(path: Path, to: Path) -> None:
    """Copy a file with its mode and owner; never overwrite one."""
    data = content(path)
    if data is not None:
        _write(to, data, path)


def _write(made: Path, data: bytes, like: Path) -> None:
    """Create and sync a new file, with the mode and owner of another, or leave none behind."""
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        with contextlib.suppress(FileNotFoundError):
            _dress(descriptor, like)
        os.fsync(descriptor)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _dress(descriptor: int, like: Path) -> None:
    status, own = like.stat(), os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
        with contextlib.suppress(PermissionError):  # a group that the user no longer has
            os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        names: list[str] = []
        with contextlib.suppress(OSError):  # not supported
            names = os.listxattr(like)
        for name in names:
            with contextlib.suppress(OSError):  # this one is not permitted, or gone
                os.setxattr(descriptor, name, os.getxattr(like, name))


def _sync(folder: Path) -> None:
    """Sync the folder, so that the new name is on disk too, where that is possible."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
