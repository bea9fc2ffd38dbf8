"""Files set aside: those that the spool refused, and damaged databases."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ..system.files import created, read
from ..system.locks import Lock
from .state_folder import briefly, is_damaged, is_refused, listing

# Files that the spool refused: kept for a while with the reason, and counted.


# ruff: noqa: PTH104, PTH106, PTH108
# Paths are strings here, as in spool.py.


FILES, BYTES = 400, 20 << 20  # 200 files with their reasons; up to SLACK more between two trims
SLACK = 20
AT_ONCE = 200  # files to keep of those refused at once, each in 0.1 ms: a flood has thousands
REASON_LIMIT = 64 << 10  # bytes: a long traceback
TRACEBACK: Final = b"Traceback (most recent call last)"  # how one begins


class Aside:
    """The directory of refused files; one host writes to it at a time, and calls `finish` then."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._counts = f"{directory}/refused.json"
        self._due = 0
        self._taken: Counter[str] = Counter()  # reasons, not written yet

    def take(self, path: str, name: str, reason: str, detail: str = "") -> bool:
        """Move a file here without opening it; return False if it could not be removed."""
        if self._taken.total() >= AT_ONCE:
            with contextlib.suppress(OSError):  # a folder
                os.unlink(path)
                self._taken[reason] += 1
                return True
        proper = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:150]
        aside = f"{self._directory}/{time.time_ns():020d}-{proper}"
        try:
            os.rename(path, aside)
        except FileNotFoundError:  # it is gone, or our folder is
            return not os.path.lexists(path)
        except OSError:
            if not remove(path):
                return False
        self._taken[reason] += 1
        with contextlib.suppress(OSError):  # disk full; what matters is that the file is gone
            why = f"{reason}\n{detail}".encode("utf-8", "backslashreplace")
            with created(f"{aside}.why", why[:REASON_LIMIT]):
                pass
        self._due -= 1 + _size(aside) // (BYTES // SLACK)
        return True

    def finish(self) -> None:
        """Count the files taken, and remove the oldest."""
        if not self._taken:
            return
        with contextlib.suppress(OSError):  # disk full
            tmp = f"{self._counts}.tmp"
            Path(tmp).unlink(missing_ok=True)  # of a process that was killed
            with created(tmp, msgspec.json.encode(self.refused())):
                os.rename(tmp, self._counts)
        self._taken.clear()
        if self._due < 0:  # checking all files every time took 1 ms
            self._trim()
            self._due = SLACK

    def refused(self) -> dict[str, int]:
        """Return how many files were ever refused, by reason."""
        known: dict[str, int] = {}
        with contextlib.suppress(OSError, ValueError):  # whatever it holds now
            data, _ = read(self._counts, REASON_LIMIT)
            known = msgspec.json.decode(data, type=dict[str, int])
        return dict(Counter(known) + self._taken)

    def kept(self) -> int:
        """Return how many refused files are still kept."""
        names = filter(is_refused, listing(self._directory))
        return sum(not name.endswith(".why") for name in names)

    def failed(self) -> int:
        """Return how many are kept as bellboard itself failed: their reason has a traceback."""
        whys = (
            name for name in filter(is_refused, listing(self._directory)) if name[-4:] == ".why"
        )
        return sum(map(self._has_traceback, whys))

    def _has_traceback(self, name: str) -> bool:
        with contextlib.suppress(OSError):  # gone, or not ours
            why, _ = read(f"{self._directory}/{name}", REASON_LIMIT)
            return why.partition(b"\n")[2].startswith(TRACEBACK)
        return False

    def _trim(self) -> None:
        files = size = 0
        names = sorted(filter(is_refused, listing(self._directory)), reverse=True)
        for name in names:  # they begin with the time: newest first
            path = f"{self._directory}/{name}"
            length = _size(path)
            if files + 1 > FILES or size + length > BYTES:
                remove(path)
            else:
                files, size = files + 1, size + length


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def remove(path: str) -> bool:
    """Remove a path without following it; return whether it is gone.

    Of a large folder, only a part is removed: calling it again goes on.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:  # a directory: EISDIR on Linux, EPERM elsewhere
        with contextlib.suppress(OSError):
            for number, entry in enumerate(briefly(_entries(path))):
                if entry.is_dir(follow_symlinks=False):
                    _flatten(entry.path, f"{path}/{time.time_ns()}.{number}")
                else:
                    os.unlink(entry.path)
            os.rmdir(path)
    return not os.path.lexists(path)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder until it is empty."""
    while True:
        with os.scandir(folder) as found:
            some = list(itertools.islice(found, 100))
        if not some:
            return
        yield from some


def _flatten(folder: str, to: str) -> None:
    """Move the content of a folder up, and remove it: it may be nested too deeply to descend."""
    for number, entry in enumerate(briefly(_entries(folder))):
        os.rename(entry.path, f"{to}.{number}")
    os.rmdir(folder)


# Damaged databases: renamed with a date, and only the newest few are kept.


SUFFIXES: Final = ("", "-wal", "-shm", "-journal")  # of a database's files
MOST_ASIDE: Final = 5  # damaged databases to keep

_BESIDE: Final = re.compile(f"({'|'.join(filter(None, SUFFIXES))})$")


def set_database_aside(home: Path, inode: int) -> Path | None:
    """Rename a damaged database with a date; return None if another host has it open.

    `inode` identifies the damaged file: another host may have replaced it already.
    """
    path = home / "board.db"
    lock = Lock(home / "board.lock")
    try:
        if not lock.take():
            return None
        if path.stat().st_ino != inode:
            return path
        there = _name(path)
        for suffix in reversed(SUFFIXES):  # the database last: until then this can be repeated
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{there}{suffix}")
        _keep_newest(home)
    except FileNotFoundError:
        return path
    finally:
        lock.close()
    return Path(there)


def move_away(odd: Path, path: Path) -> None:
    """Rename anything that is in the place of a file that SQLite keeps beside a database."""
    with contextlib.suppress(FileNotFoundError):
        odd.rename(f"{_name(path)}{odd.name.removeprefix(path.name)}")
        _keep_newest(path.parent)


def _name(path: Path) -> str:
    return f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{random.randrange(1000):03}"


def kept_databases(home: Path) -> list[Path]:
    """Return the databases set aside, oldest first; each may have files of SQLite beside it."""
    found = (path for path in home.glob("board.db.damaged-*") if is_damaged(path.name))
    return sorted({path.with_name(_BESIDE.sub("", path.name)) for path in found})


def _keep_newest(home: Path) -> None:
    for old in kept_databases(home)[:-MOST_ASIDE]:
        for suffix in SUFFIXES:
            with contextlib.suppress(OSError):
                Path(f"{old}{suffix}").unlink()
