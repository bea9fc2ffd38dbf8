"""The state folder: check that nobody else can replace it, and create what is missing.

Whoever may write to a folder can replace what is in it.  So the state folder, and every folder and
link on the way to it, must belong to us or to root, and others must not be able to write there,
unless it is sticky like /tmp.  Missing folders are created with mode 0700, whatever the umask.
No part of it may be a mount that may hang: its files are accessed in the event loop.
A folder that holds anything but what is ours is refused, and not changed (`contents.py`).
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from ..core.visible import plain
from ..system.mounts import MOST_LINKS, MOUNTS
from ..system.walk import TooManyLinks, parts_of
from . import contents

PRIVATE: Final = 0o700
LOOK: Final = 0o500  # what it takes to list a folder
OURS: Final = 0o600
DATABASE: Final = "board.db"  # the user may have made it read-only
ROOT: Final = 0
SLICE: Final = 0.05  # seconds
NOBODY: Final = 65534  # the owner of the machine's folders in a rootless container
#: To the user of a refused one.
ADVICE: Final = "set BELLBOARD_HOME to an empty folder of yours, or one that does not exist yet"
#: Files in the state folder that are opened by name: none may be a link.
FILES: Final = (
    *(DATABASE, "board.db-wal", "board.db-shm", "board.db-journal", "board.lock", "drain.lock"),
    *("hooks.json", "hooks.lock", "emit"),
)

T = TypeVar("T")


class Refused(Exception):
    """A file or folder that must not be used, or a file that is not an event; says why."""


def make(home: Path, below: tuple[str, ...]) -> None:
    """Create the state folder and what belongs in it; raise `Refused` or OSError."""
    judge(home)
    if why := obstacle(home):
        raise Refused(why)
    for path in (*reversed(home.parents), home):
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError):
                path.mkdir(PRIVATE)
                path.chmod(PRIVATE)  # the umask may have removed our own permissions
    _take(home)
    for name in below:
        path = home / name
        with contextlib.suppress(FileExistsError):
            path.mkdir(PRIVATE)
        _make_private(path, path.lstat())
    for name in FILES:
        with contextlib.suppress(FileNotFoundError):
            _make_usable(home / name, (home / name).lstat())


def _take(home: Path) -> None:
    """Make the state folder private; refuse one that holds other things, and leave it as it is."""
    status = home.stat()
    _judge_own(home, status)
    if is_shut := status.st_mode & LOOK != LOOK:
        home.chmod(PRIVATE)  # otherwise we cannot see what is in it
    if why := holds_others(home):
        if is_shut:
            home.chmod(stat.S_IMODE(status.st_mode))
        raise Refused(why)
    _make_private(home, home.stat())


def holds_others(home: Path) -> str:
    """Return why a folder is not ours although the user owns it, or ""."""
    name = contents.stranger(home)
    return f"{home} is not bellboard's: it holds {plain(name)}" if name else ""


def unusable(home: Path, below: tuple[str, ...]) -> Iterator[str]:
    """Yield what `make` would refuse; change nothing."""
    for name in (*below, *FILES):
        path = home / name
        try:
            (_judge_own if name in below else _judge_file)(path, path.lstat())
        except FileNotFoundError:
            continue  # it is created when needed
        except Refused as e:
            yield str(e)
        except OSError as e:
            yield f"cannot be accessed: {path}: {e.strerror}"


@contextlib.contextmanager
def inside(folder: str | Path) -> Iterator[int]:
    """Open one of our folders.  A link is refused: nothing behind it is ours to fold or remove."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def listing(folder: str | Path) -> list[str]:
    """Return the names in one of our folders, each once; none if it is missing, or a link.

    Linux may list a name twice if the folder changes meanwhile, on tmpfs for example.
    """
    try:
        with inside(folder) as fd:
            return list(dict.fromkeys(os.listdir(fd)))  # noqa: PTH208 - a descriptor
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return []
        raise


def briefly(found: Iterable[T]) -> Iterator[T]:
    """Yield for a few milliseconds: there may be any number, and the event loop is blocked."""
    until = time.monotonic() + SLICE
    for each in found:
        yield each
        if time.monotonic() > until:
            return


def judge(home: Path) -> None:
    """Raise `Refused` if somebody else could replace the state folder."""
    try:
        for path, status, is_last in parts_of(str(home), MOST_LINKS):
            if stat.S_ISLNK(status.st_mode):
                if status.st_uid not in (ROOT, os.geteuid()):
                    raise Refused(f"{path} is a link that another user made")
            elif not is_last:
                _judge_folder(path, status)
    except FileNotFoundError:
        return  # we create the rest
    except TooManyLinks:
        raise Refused(f"{home} leads through too many links") from None


def obstacle(home: Path, below: tuple[str, ...] = ()) -> str:
    """Return what is wrong inside the state folder, or ""; cheap enough for each round of the loop.

    A mount may hang, and cleaning up would reach through a link to its target.
    """
    if mount := MOUNTS.inside(str(home)):
        return f"{mount.place} is a mount ({mount.kind}) that may hang: unmount it"
    for name in below:
        path = f"{home}/{name}"
        if os.path.islink(path):  # noqa: PTH114 - a string, as this runs often
            return f"{path} is a link: move it away"
    return ""


def is_ours(home: Path) -> bool:
    """Return whether the state folder exists, is ours alone, and cannot be replaced by others."""
    try:
        judge(home)
        return home.stat().st_uid == os.geteuid() and not contents.stranger(home)
    except (Refused, OSError, ValueError):
        return False


def _judge_folder(path: str, status: os.stat_result) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(20, os.strerror(20), path)
    if status.st_uid not in (ROOT, NOBODY, os.geteuid()):
        raise Refused(f"{path} belongs to another user, who could replace what is in it")
    if status.st_mode & stat.S_ISVTX:
        return
    if status.st_mode & stat.S_IWOTH or (
        status.st_mode & stat.S_IWGRP and not _is_alone(path, status.st_gid)
    ):
        raise Refused(f"others may write to {path} and replace what is in it")


def _is_alone(path: str, group: int) -> bool:
    """Return whether nobody but us is in the group of a folder, as in each user's own group.

    With an access control list, the mode of the group says what any of those listed may do.
    """
    if hasattr(os, "getxattr"):
        with contextlib.suppress(OSError):  # no list, or a file system without them
            os.getxattr(path, "system.posix_acl_access")
            return False
    try:
        known, us = grp.getgrgid(group), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # no names: a container
        return group == os.getegid()
    return known.gr_name in (us, "root") and not {*known.gr_mem} - {us, "root"}


def _judge_own(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise Refused(f"not a directory: {path}")
    if status.st_uid != os.geteuid():
        raise Refused(f"belongs to another user: {path}")


def _make_private(path: Path, status: os.stat_result) -> None:
    """Check a folder of ours, and make it private."""
    _judge_own(path, status)
    if stat.S_IMODE(status.st_mode) != PRIVATE:
        path.chmod(PRIVATE)


def _judge_file(path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Refused(f"a link where a file belongs: {path}")
    if status.st_uid != os.geteuid():
        raise Refused(f"belongs to another user: {path}")


def _make_usable(path: Path, status: os.stat_result) -> None:
    """Check a file of ours, and let us read and write it."""
    _judge_file(path, status)
    if path.name != DATABASE and status.st_mode & OURS != OURS and stat.S_ISREG(status.st_mode):
        path.chmod(stat.S_IMODE(status.st_mode) | OURS)  # SQLite's are made like the database
