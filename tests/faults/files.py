"""Files that may be in and beside the spool instead of ours."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random

from faults.fault import Fault, Kind
from faults.target import MAGIC, Target

EVENT = MAGIC + b'agent=claude\0event=Stop\0pid=0\0\0{"session_id":"f0","hook_event_name":"Stop"}'
FOLDERS = ("new", "slot", "tmp", "bad", "../hosts", "..", "")
NAMES = (
    *("a.event", "-rf", ".hidden", "..x", "a b", "a\nb", "é", "\udcff\udcfe", "x" * 255, "%s", "*"),
    *("1", "0", "99999999999", "refused.json", "board.db-wal", "77.Stop", "²", "a\u202eb"),
)
TIMES = (-(2**40), -1, 0, 1, 2**31, 2**33, 2**40)


def plain(path: Path) -> None:
    path.write_bytes(EVENT)


def listens(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(path.parent)  # its path may be too long for a socket
        try:
            one.bind(path.name[:90])
        finally:
            os.chdir(here)


def huge(path: Path) -> None:
    path.write_bytes(EVENT)
    os.truncate(path, 50 << 30)


def big(path: Path) -> None:
    path.write_bytes(EVENT + b"x" * (20 << 20))


def full_folder(path: Path) -> None:
    (path / "deep" / "er").mkdir(parents=True)
    (path / "deep" / "file").write_bytes(EVENT)


def linked(to: str) -> Callable[[Path], None]:
    def do(path: Path) -> None:
        path.symlink_to(to)

    return do


def itself(path: Path) -> None:
    path.symlink_to(path)


def zeros(path: Path) -> None:
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))


def anothers(path: Path) -> None:
    path.write_bytes(EVENT)
    os.chown(path, 65534, 65534)


THINGS: dict[str, Callable[[Path], object]] = {
    "a plain file": plain,
    "an empty file": Path.touch,
    "a file of 50 GB": huge,
    "a file of 20 MB": big,
    "a folder": Path.mkdir,
    "a full folder": full_folder,
    "a pipe": os.mkfifo,
    "a socket": listens,
    "a link to a file of the machine": linked("/proc/version"),  # which not even root can write
    "a link to /dev/zero": linked("/dev/zero"),
    "a link to /": linked("/"),
    "a link to nothing": linked("nothing"),
    "a link to itself": itself,
}
if os.geteuid() == 0:
    THINGS |= {"a device of zeros": zeros, "another user's file": anothers}


def put(path: Path, what: str, raw: bytes, cut: bool) -> None:
    """Put a thing in the place of a log, or write into it what `raw` says."""
    with contextlib.suppress(OSError):
        if what or path.is_symlink() or not path.is_file():
            remove(path)  # never write through a link
        if what:
            THINGS[what](path)
        else:
            with path.open("wb" if cut else "ab") as file:
                file.write(raw)


def remove(path: Path) -> None:
    """Remove a file, or a folder with its contents."""
    with contextlib.suppress(OSError):
        path.chmod(0o700, follow_symlinks=False) if not path.is_symlink() else None
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def kind(random: Random) -> Fault:
    """Make a file of any kind, name, folder, age and mode."""
    what, folder, name = (random.choice(x) for x in (list(THINGS), FOLDERS, NAMES))
    mode = random.choice([None, None, 0, 0o777, 0o4755])
    age = random.choice([None, None, None, *TIMES])
    made: list[Path] = []

    def do(target: Target) -> None:
        path = target.board / "spool" / folder / name
        if path.exists() or path.is_symlink():
            return
        with contextlib.suppress(OSError):  # names may be too long, and a host may remove it first
            THINGS[what](path)
            made.append(path)
            if mode is not None and not path.is_symlink():
                path.chmod(mode)
            if age is not None:
                os.utime(path, (age, age), follow_symlinks=False)

    def undo(target: Target) -> None:
        for path in made:
            remove(path)

    return Fault(f"{what}, {folder}/{name!a:.40}, mode {mode}, time {age}", do, undo)


KINDS = (Kind("file", make=kind, batch=30),)
