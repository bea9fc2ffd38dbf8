"""How to look at, open and read files that others write: never waiting, nor where one may hang.

A thread of the host looks at a path from evidence only through this file: a path may lead into a
mount through a link at its very end, and a thread that waits for a FUSE mount keeps its process
alive.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ..core.text import LONGEST_PATH, ODD
from ..core.untrusted import decimal, decode
from .mounts import Mounts
from .processes import is_alive

_near = threading.local()  # of a thread: its table of mounts


def is_path(text: str) -> bool:
    """Return whether a text can be a path; evidence may contain anything."""
    return text.startswith("/") and "\0" not in text and len(text) < LONGEST_PATH


class MayHang(BaseException):
    """The path leads to a mount where this thread could hang and not be killed; see `reach`."""


def stay_near(mounts: Mounts) -> None:
    """Keep this thread away from FUSE mounts: `touch` raises `MayHang` from now on."""
    _near.mounts = mounts


def touch(path: str | Path) -> None:
    """Call this before using a path; raise `MayHang` if this thread must not touch it."""
    mounts: Mounts | None = getattr(_near, "mounts", None)
    if mounts is not None and (mount := mounts.hanging(str(path))) and mount.is_fuse:
        raise MayHang(mount.place)


def status_of(path: str | Path) -> os.stat_result:
    """Return the status of the file at the end of a path; raise OSError otherwise."""
    touch(path)
    try:
        return os.stat(path)  # noqa: PTH116 - a string, or a path
    except ValueError as error:  # a NUL or a lone surrogate
        raise OSError(f"not a path: {error}") from None


def is_file(path: str | Path) -> bool:
    """Return whether a path leads to a regular file; never raises for an odd path."""
    try:
        return stat.S_ISREG(status_of(path).st_mode)
    except OSError:
        return False


def is_folder(path: str | Path) -> bool:
    """Return whether a path leads to a folder; never raises for an odd path."""
    try:
        return stat.S_ISDIR(status_of(path).st_mode)
    except OSError:
        return False


def real(path: str | Path) -> str:
    """Return a path without links; raise OSError if it cannot be one."""
    touch(path)
    try:
        return os.path.realpath(path)
    except ValueError as error:  # a NUL or a lone surrogate
        raise OSError(f"not a path: {error}") from None


def names_in(folder: str | Path) -> list[str]:
    """Return the names in a folder; raise OSError otherwise."""
    touch(folder)
    try:
        return os.listdir(folder)  # noqa: PTH208 - only names are needed
    except ValueError as error:  # a NUL or a lone surrogate
        raise OSError(f"not a path: {error}") from None


@contextmanager
def opened(path: str | Path, ours: bool = True) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file, by default only our own, without blocking; raise OSError otherwise."""
    # opening a pipe or a device has effects: on its writer, or on the hardware
    if not stat.S_ISREG(status_of(path).st_mode):
        raise OSError(f"not a file: {path}")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"not a file: {path}")
        if ours and status.st_uid != os.geteuid():
            raise OSError(f"belongs to another user: {path}")
        yield fd, status
    finally:
        os.close(fd)


def read(path: str | Path, limit: int, ours: bool = True) -> tuple[bytes, os.stat_result]:
    """Read a small file; raise OSError if it has more than `limit` bytes."""
    with opened(path, ours) as (fd, status):
        data = b""
        while len(data) <= limit and (more := os.read(fd, limit + 1 - len(data))):
            data += more
    if len(data) > limit:
        size = f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit} bytes"
        raise OSError(errno.EFBIG, f"larger than {size}", str(path))
    return data, status


def entries(folder: str | Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield name and status of each entry, without following links; vanished entries are left out.

    Each name is yielded once, although the system may list it twice if the folder changes.
    """
    touch(folder)
    seen: set[str] = set()
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name not in seen:
                seen.add(entry.name)
                with suppress(FileNotFoundError):
                    yield entry.name, entry.stat(follow_symlinks=False)


def changed_at(path: str | Path) -> float:
    """Return when a path last changed in any way, not following a link; 0.0 if nothing is there."""
    touch(path)
    try:
        return os.lstat(path).st_ctime
    except (OSError, ValueError):
        return 0.0


def put(path: Path, data: bytes) -> None:
    """Create or replace a private file of ours, which appears whole; raise OSError otherwise."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)  # of a process that was killed
    with created(new, data):
        new.replace(path)


@contextmanager
def created(path: str | Path, data: bytes, folder: int | None = None) -> Iterator[int]:
    """Create a private file with this content, in an open folder if one is given; lend it open.

    It is whole when it is lent, and removed if anything fails until it is given back.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600, dir_fd=folder)
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        yield descriptor
    except BaseException:
        with suppress(OSError):
            os.unlink(path, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)


def decoded(raw: bytes) -> dict[str, object] | None:
    """Decode a JSON object; return None for anything else."""
    try:
        value = decode(raw)
    except ODD:
        try:  # `json` accepts a lone surrogate too, which the CLI leaves when it cuts text
            value = json.loads(raw)
        except ODD:
            return None
    return value if isinstance(value, dict) else None


# Read and atomically replace a file that others own too.
#
# Its mode, owner, extended attributes and any link to it stay the same. Folders that are made
# for a new file can be removed with it.


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
    with created(made, data) as descriptor:
        with contextlib.suppress(FileNotFoundError):
            _dress(descriptor, like)
        os.fsync(descriptor)


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


# Find the files of this installation: in a checkout or in the installed package.


@functools.cache
def shipped(name: str) -> Path:
    """Return the path of a file of `hooks/`, without links."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "hooks" / name
    return (inside if inside.is_file() else package.parents[2] / "hooks" / name).resolve()


def plugin(head: str, name: str) -> str:
    """Return a plugin in JavaScript: its first line, the reporting part, and its own part."""
    parts = (shipped(part).read_text("utf-8") for part in ("report.js", name))
    return "".join((f"{head}\n", *parts))


def program() -> list[str]:
    """Return the command line of `bellboard`, for other programs to run in any folder.

    With -E, no PYTHONPATH makes it import files of that folder, and no PYTHONHOME keeps it from
    starting.
    """
    return [sys.executable, "-E", str(Path(__file__).resolve().parents[1] / "__main__.py")]
