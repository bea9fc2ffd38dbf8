"""inotify in the event loop, straight from the kernel.

From rename to callback 0.03 ms, 0.015 ms more than a thread that does nothing but wait for it;
asyncinotify, which builds objects of each event and wakes a task, takes 0.06 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

STRAYS = 64  # watches whose events are kept until they are added,
MOST = 100  # and how many of each: of more, only that there were
_HEAD = struct.Struct("iIII").unpack_from

#: Directory and name of an entry, and whether it is new; no name: all of that directory.
Entry = tuple[str, str, bool]
#: None: anything, events were lost.
Report = Callable[[Iterable[Entry] | None], None]


class Inotify:
    """Watches directories, in the loop that runs; see `watch.Backend` for the methods."""

    # What a look at the directory can tell apart; for arrivals what is whole, so that neither a
    # half-written file nor the host's own unlinking wakes anybody. From <sys/inotify.h>.
    MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
    CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x100, 0x200, 0x400, 0x800
    UNMOUNT, OVERFLOW, IGNORED, ONLYDIR = 0x2000, 0x4000, 0x8000, 0x1000000
    ONESHOT = 0x80000000
    GONE = DELETE_SELF | MOVE_SELF | UNMOUNT | IGNORED
    ARRIVALS = MOVED_TO | CLOSE_WRITE | DELETE_SELF | MOVE_SELF | ONLYDIR
    ALL = ARRIVALS | MODIFY | ATTRIB | MOVED_FROM | CREATE | DELETE

    def __init__(self, report: Report, heard: Callable[[str], None] | None = None) -> None:
        """`heard`: is told each file of `add_once` that was written to."""
        import ctypes

        libc = _libc()
        self._rm = libc.inotify_rm_watch
        self._fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._report = report
        self._heard = heard
        self._once: dict[int, str] = {}
        # A directory that is reached by two names (a link) is one watch.
        self._directories: dict[int, set[str]] = {}
        self._watches: dict[str, int] = {}
        self._strays: dict[int, list[tuple[int, str]]] = {}  # of watches not added yet
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    @property
    def descriptor(self) -> int:
        """By which the kernel knows it."""
        return self._fd

    @property
    def armer(self) -> Callable[[str, bool], int]:
        return functools.partial(arm, self._fd)

    def add(self, directory: str, token: int, arrivals: bool) -> bool:
        before = self._watches.get(directory)
        if before is not None and before != token:
            self.remove(directory)
        self._directories.setdefault(token, set()).add(directory)
        self._watches[directory] = token
        if strays := self._strays.pop(token, None):  # it was armed in another thread
            self._loop.call_soon(self._take_in, token, strays)
        return before is not None and before != token

    def add_once(self, file: str) -> None:
        """Tell once that it was written to; raises OSError."""
        self._once[_add(self._fd, file, self.MODIFY | self.ONESHOT)] = file

    def drop(self, token: int) -> None:
        if token not in self._directories:
            self._rm(self._fd, token)

    def remove(self, directory: str) -> None:
        watch = self._watches.pop(directory, None)
        if watch is not None:
            names = self._directories[watch]
            names.discard(directory)
            if not names:
                del self._directories[watch]
                self._rm(self._fd, watch)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 1 << 12)
        except BlockingIOError:
            return
        entries: set[Entry] = set()
        at, lost, end = 0, False, len(data)
        while at < end:
            watch, mask, _, length = _HEAD(data, at)
            at += 16 + length
            if mask & self.OVERFLOW:
                lost = True
                continue
            name = os.fsdecode(data[at - length : at].rstrip(b"\0")) if length else ""
            if watch in self._once:
                file = self._once.pop(watch)
                if self._heard is not None:
                    self._loop.call_soon(self._heard, file)
            elif watch in self._directories:
                self._enter(entries, watch, mask, name)
            else:
                strays = self._strays.setdefault(watch, [])
                strays.append((mask, name) if len(strays) < MOST else (self.OVERFLOW, ""))
                del strays[MOST + 1 :]
                if len(self._strays) > STRAYS:
                    del self._strays[next(iter(self._strays))]
        self._report(None if lost else entries)

    def _enter(self, entries: set[Entry], watch: int, mask: int, name: str) -> None:
        if mask & self.GONE:
            for directory in list(self._directories.get(watch, ())):
                self.remove(directory)
                entries.add((directory, "", False))
        elif name:
            is_new = bool(mask & (self.CREATE | self.MOVED_TO))
            for directory in self._directories.get(watch, ()):
                entries.add((directory, name, is_new))

    def _take_in(self, watch: int, strays: list[tuple[int, str]]) -> None:
        """What a watch has told before it was added."""
        entries: set[Entry] = set()
        for mask, name in strays:
            self._enter(entries, watch, mask, name)
        if self._fd >= 0:
            self._report(None if len(strays) > MOST else entries)


def arm(descriptor: int, directory: str, arrivals: bool) -> int:
    """Watch a directory; armed again it only gets a new mask.  It may hang, in any thread."""
    return _add(descriptor, directory, Inotify.ARRIVALS if arrivals else Inotify.ALL)


def _add(descriptor: int, path: str, mask: int) -> int:
    import ctypes

    watch: int = _libc().inotify_add_watch(descriptor, os.fsencode(path), mask)
    if watch < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    return watch


@functools.cache
def _libc() -> Any:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    libc.inotify_rm_watch.argtypes = (ctypes.c_int, ctypes.c_int)
    return libc


class Usage(NamedTuple):
    """What this user's processes take of what the system gives."""

    watches: int
    most_watches: int
    instances: int
    most_instances: int


def usage() -> Usage | None:
    """Counted from /proc, 10 ms for 100 processes; None where there is no inotify."""
    limits = Path("/proc/sys/fs/inotify")
    try:
        most = [int((limits / f"max_user_{what}").read_text()) for what in ("watches", "instances")]
    except (OSError, ValueError):
        return None
    held = [count for process in Path("/proc").glob("[0-9]*/fdinfo") for count in _held(process)]
    return Usage(sum(held), most[0], len(held), most[1])


def _held(process: Path) -> Iterator[int]:
    """The watches of each inotify that a process has; those of others cannot be seen."""
    with contextlib.suppress(OSError):
        for info in process.iterdir():
            with contextlib.suppress(OSError):
                if str((process.parent / "fd" / info.name).readlink()) == "anon_inode:inotify":
                    yield info.read_text().count("inotify wd:")
