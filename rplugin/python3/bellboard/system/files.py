"""How to look at, open and read files that others write: never waiting, nor where one may hang.

A thread of the host looks at a path from evidence only through this file: a path may lead into a
mount through a link at its very end, and a thread that waits for a FUSE mount keeps its process
alive.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.detail import LONGEST_PATH, ODD
from ..core.lenient import decode
from .mounts import Mounts

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
    """Return the status of what a path leads to; raise OSError otherwise."""
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
    """Yield name and status of each entry, of links themselves; what vanishes is left out.

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


def put(path: Path, data: bytes) -> None:
    """Create or replace a private file of ours, which appears whole; raise OSError otherwise."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)  # of a process that was killed
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
            file.write(data)
        new.replace(path)
    except OSError:  # a full disk, or what is there cannot be replaced
        new.unlink(missing_ok=True)
        raise


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
