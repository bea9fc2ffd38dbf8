"""How to open and read files that others write: never waiting, and never where one may hang."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from ..core.detail import ODD
from .mounts import Mounts

LONGEST_PATH: Final = 4096  # characters: PATH_MAX

_near = threading.local()  # of a thread: its table of mounts


def is_path(text: str) -> bool:
    """Whether it can be the path of anything; what evidence tells may be any text."""
    return text.startswith("/") and "\0" not in text and len(text) < LONGEST_PATH


class Elsewhere(BaseException):
    """The path leads to where whoever asks may hang and cannot be killed; see `reach`."""


def stay_near(mounts: Mounts) -> None:
    """From now on nothing in this thread touches a mount that is answered for by a program."""
    _near.mounts = mounts


def touch(path: str | Path) -> None:
    """To be called before a path is asked for anything; `Elsewhere` if this thread may not."""
    mounts: Mounts | None = getattr(_near, "mounts", None)
    if mounts is not None and (mount := mounts.hanging(str(path))) and mount.is_fuse:
        raise Elsewhere(mount.place)


@contextmanager
def opened(path: str | Path, ours: bool = True) -> Iterator[tuple[int, os.stat_result]]:
    """A regular file, and ours, open for reading; OSError for anything else, without waiting."""
    touch(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except ValueError as error:  # a NUL, half a character
        raise OSError(f"no path: {error}") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"not a file: {path}")
        if ours and status.st_uid != os.geteuid():
            raise OSError(f"another user's: {path}")
        yield fd, status
    finally:
        os.close(fd)


def read(path: str | Path, limit: int, ours: bool = True) -> tuple[bytes, os.stat_result]:
    """All of a small file; OSError if it has more than `limit` bytes."""
    with opened(path, ours) as (fd, status):
        data = b""
        while len(data) <= limit and (more := os.read(fd, limit + 1 - len(data))):
            data += more
    if len(data) > limit:
        size = f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit} bytes"
        raise OSError(errno.EFBIG, f"larger than {size}", str(path))
    return data, status


def decoded(raw: bytes) -> dict[str, object] | None:
    """A JSON object; None for anything else, however odd."""
    try:
        told = msgspec.json.decode(raw)
    except ODD:
        try:
            told = json.loads(raw)  # takes half a character too, as a cut of the CLI's leaves it
        except ODD:
            return None
    return told if isinstance(told, dict) else None
