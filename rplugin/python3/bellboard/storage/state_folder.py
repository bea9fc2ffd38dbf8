"""The state folder: its files, and the checks that nobody else can replace them."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from ..core.text import plain
from ..system.gate import TooManyLinks, parts_of
from ..system.mounts import MOST_LINKS, MOUNTS

# What bellboard makes in the state folder, by name.
#
# BELLBOARD_HOME may name any folder, also one that holds other things. Such a folder is refused
# (`stranger`). In one of ours, only what has one of these names is removed; the four folders of
# the spool are ours as a whole.


#: A folder with one of these is ours, whatever else is in it, or was removed from it.
SIGNS: Final = ("spool/slot", "board.db", "board.lock", "drain.lock", "hooks.lock")
LOCKS: Final = ("board.lock", "drain.lock", "look.lock", "send.lock", "hooks.lock", "restore.lock")
#: What `uninstall --purge` looks for, besides the folders of plugins: all that is below, and no
#: other folder whose name could be that of a plugin.
STATE: Final = (
    *("spool", "hosts", "answers", "links", "board.db", "board.db-*", "board.db.damaged-*"),
    *(*LOCKS, "emit", "hooks.json"),
    ".bellboard-new.*",
)

_PID = r"[1-9][0-9]{0,9}"
_SERIAL = r"[0-9]{1,20}\.[0-9]{1,10}\.[0-9]{1,10}"  # time, process, number
_WORD = r"[A-Za-z0-9_]+"
_HOOK = rf"[0-9]{{8}}\.[0-9a-f.-]+\.{_WORD}(\.[0-9])?(\.0)*"  # as hooks/emit makes it
_EVENT = rf"({_HOOK}|([0-9]+\.{_WORD}|slot)\.{_SERIAL}|line\.([0-9a-f]{{32}}|{_SERIAL}))"
_DAMAGED = r"board\.db\.damaged-[0-9]{8}-[0-9]{6}-[0-9]{3}((-wal|-shm|-journal)[/|=@]?)?"
_REFUSED = r"[0-9]{20}-[A-Za-z0-9_.-]{0,150}(\.why)?"
_PIPE = rf"{_PID}\.[0-9]{{1,20}}"
_LETTER = rf"({_SERIAL}|\.{_SERIAL}\.{_PID})"  # complete, or being written
_MACHINE = rf"([A-Za-z0-9]|\.fleet)[A-Za-z0-9._-]*/(lock|fleet|(ask|reply)/({_LETTER})?)?"
_SSH = r"[0-9a-f]{40}(\.[A-Za-z0-9]+)?="
_FILES = "|".join((r"board\.db(-wal|-shm|-journal)?", *map(re.escape, LOCKS), r"hooks\.json|emit"))
#: Paths as `ls -F` marks them: a folder ends with /, a pipe with |, a socket with =, a link with @.
_OURS: Final = re.compile(
    rf"{_FILES}|{_DAMAGED}|\.bellboard-new\.{_PID}"
    r"|spool/((new|slot|tmp|bad)/)?"
    rf"|hosts/(\.?{_PID}\.unsaved|{_PID})?"
    rf"|answers/({_EVENT}(\.answer)?|{_PIPE}(\||\.taken|\.reply))?"
    rf"|links/(machines\.(json|lock)|\.machines\.json\.{_PID}|{_SSH}|{_MACHINE})?"
    rf"|[a-z]+/({_PID}(=|\.[0-9]{{1,30}}\.reply))?",  # where the plugin of a CLI listens
    re.ASCII,
)
#: What systems put into any folder: it does not make it a stranger's, and is never removed.
_SYSTEM: Final = re.compile(
    r"(.*/)?(lost\+found/|\.nfs[0-9a-f]+|\.fuse_hidden[0-9a-f]+|\.DS_Store|\._.+|\.localized"
    r"|\.directory|Icon\r|\.(fseventsd|Trashes|Trash-[0-9]+|Spotlight-V100|stfolder|snapshots?)/)"
)
_WHOLE: Final = re.compile(r"spool/(new|slot|tmp|bad)/")  # nothing else has a reason to be there
_MARKS: Final = {stat.S_IFDIR: "/", stat.S_IFIFO: "|", stat.S_IFSOCK: "=", stat.S_IFLNK: "@"}

is_event: Final = re.compile(_EVENT, re.ASCII).fullmatch
is_damaged: Final = re.compile(_DAMAGED, re.ASCII).fullmatch
is_refused: Final = re.compile(_REFUSED, re.ASCII).fullmatch
is_letter: Final = re.compile(_LETTER, re.ASCII).fullmatch
is_pipe: Final = re.compile(_PIPE, re.ASCII).fullmatch


def stranger(home: Path) -> str:
    """Return something in a folder that is not ours, or "" if the folder is empty or ours."""
    if any(os.path.lexists(home / sign) for sign in SIGNS):
        return ""
    return next(_strangers(str(home), ""), "")


def is_known(path: Path) -> bool:
    """Return whether something right in the state folder has one of our names."""
    return _OURS.fullmatch(_name(path)) is not None


def clear(path: Path, below: str = "") -> None:
    """Remove entries with our names: files, and folders unless they hold anything else."""
    name = _name(path, below)
    if _OURS.fullmatch(name) is None:
        return
    if not name.endswith("/"):
        path.unlink(missing_ok=True)
    elif _WHOLE.fullmatch(name):
        import shutil  # which few commands need

        shutil.rmtree(path)
    else:
        for each in sorted(path.iterdir()):
            clear(each, name)
        if not any(path.iterdir()):
            path.rmdir()


def _strangers(folder: str, below: str) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:  # gone, or not to be read
        for entry in found:
            name = _name(Path(entry.path), below)
            if not name or _SYSTEM.fullmatch(name) is not None:
                continue
            if _OURS.fullmatch(name) is None:
                yield name
            elif name.endswith("/") and not _WHOLE.fullmatch(name):
                yield from _strangers(entry.path, name)


def _name(path: Path, below: str = "") -> str:
    """Return the name that a path has here, or "" if it is gone."""
    with contextlib.suppress(FileNotFoundError):
        return _marked(f"{below}{path.name}", path.lstat().st_mode)
    return ""


def _marked(name: str, mode: int) -> str:
    return name + _MARKS.get(stat.S_IFMT(mode), "")


# The state folder: check that nobody else can replace it, and create what is missing.
#
# Whoever may write to a folder can replace what is in it. So the state folder, and every folder
# and link on the way to it, must belong to us or to root, and others must not be able to write
# there, unless it is sticky like /tmp. Missing folders are created with mode 0700, whatever the
# umask. No part of it may be a mount that may hang: its files are accessed in the event loop. A
# folder that holds anything but what is ours is refused, and not changed.


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
    *(DATABASE, "board.db-wal", "board.db-shm", "board.db-journal"),
    *(*LOCKS, "hooks.json", "emit"),
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
    name = stranger(home)
    return f"{home} is not bellboard's: it holds {plain(name)}" if name else ""


def unusable(home: Path, below: tuple[str, ...]) -> Iterator[str]:
    """Yield the reasons for which `make` would refuse; change nothing."""
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
    """Return the first fault in the state folder, or ""; cheap enough for each round of the loop.

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
        return home.stat().st_uid == os.geteuid() and not stranger(home)
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
