"""Watch paths by polling, where the system does not report changes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from .failures import described
from .files import entries
from .inotify import Entry, Report
from .reach import reach
from .threads import Thread, call_in

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify


# ruff: noqa: PTH116
# Paths are strings here: they are only compared.


POLL: Final = 1.0  # seconds


class Polling:
    """Compares the state of paths every second; takes 1.5 µs per file."""

    def __init__(self, changed: Callable[[set[str]], None]) -> None:
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def add(self, path: str) -> None:
        if path not in self._tasks:
            self._tasks[path] = self._loop.create_task(self._follow(path))

    def remove(self, path: str) -> None:
        if (task := self._tasks.pop(path, None)) is not None:
            task.cancel()

    def close(self) -> None:
        for path in list(self._tasks):
            self.remove(path)

    async def _follow(self, path: str) -> None:
        before: dict[str, tuple[int, int, int]] | None = None
        while True:
            with contextlib.suppress(Exception):  # it is tried again; what hangs is in health
                now = await reach(partial(state_of, path), path)
                if before is not None and before != now:
                    self._changed(
                        {k for k in before.keys() | now.keys() if before.get(k) != now.get(k)}
                    )
                before = now
            await asyncio.sleep(POLL)


def state_of(path: str) -> dict[str, tuple[int, int, int]]:
    """Return inode, size and time of a file, or of each entry of a directory."""
    seen: dict[str, tuple[int, int, int]] = {}
    with contextlib.suppress(OSError):
        status = os.stat(path)
        seen[path] = status.st_ino, status.st_size, status.st_mtime_ns
        if stat.S_ISDIR(status.st_mode):
            seen[path] = status.st_ino, 0, 0  # its entries show the rest
            for name, status in entries(path):
                seen[f"{path}/{name}"] = status.st_ino, status.st_size, status.st_mtime_ns
    return seen


# Watch with watchfiles, where there is no inotify; it polls in steps, and its paths are fixed.
#
# Measured: a step of 20 ms costs 0.2 % of a core, one of 1 ms costs 1.9 %.


# ruff: noqa: PTH116, PTH119, PTH120
# Paths are strings here: they come from the system and are only compared.


STEP_MS = 20


class _End:
    """A stop event, checked once a step.  When it is set, watchfiles drops changes that it has not
    yet reported, and the next watcher does not know them.  So it is set some steps late."""

    def __init__(self) -> None:
        self._steps: int | None = None

    def come(self, steps: int) -> None:
        self._steps = steps

    def is_set(self) -> bool:
        if self._steps is None:
            return False
        self._steps -= 1
        return self._steps < 0


class Watchfiles:
    ADDED, DELETED = 1, 3

    def __init__(self, report: Report) -> None:
        from watchfiles._rust_notify import RustNotify

        self._rust = RustNotify
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._directories: dict[str, tuple[int, int]] = {}  # → device and inode
        self._arrivals: set[str] = set()
        self._names: dict[str, str] = {}  # reported → given: macOS reports /private/var for /var
        self._fresh: set[str] | None = None  # not None: a start is scheduled
        self._end = _End()
        self._seen: set[tuple[int, str]] = set()
        self._error: OSError | None = None

    @property
    def armer(self) -> Callable[[str, bool], tuple[int, int]]:
        return _identity

    def add(self, directory: str, token: tuple[int, int], arrivals: bool) -> bool:
        if self._error:
            raise self._error
        (self._arrivals.add if arrivals else self._arrivals.discard)(directory)
        if self._directories.get(directory) != token:
            self._directories[directory] = token
            self._restart(directory)
        return False  # watched after this iteration of the loop, and reported then

    def drop(self, token: tuple[int, int]) -> None:
        pass  # nothing is watched yet

    def remove(self, directory: str) -> None:
        if self._directories.pop(directory, None):
            self._restart()

    def close(self) -> None:
        self._directories.clear()
        self._end.come(0)

    def _restart(self, *fresh: str) -> None:
        if self._fresh is None:  # paths added in one iteration of the loop share a start
            self._fresh = set()
            self._loop.call_soon(self._start)
        self._fresh.update(fresh)

    def _start(self) -> None:
        fresh, self._fresh = self._fresh or set(), None
        self._names = {os.path.realpath(path): path for path in self._directories}
        before = self._end
        if self._names:
            try:
                # The new watcher starts before the old one ends, so that nothing is missed.
                notify = self._rust(list(self._names), False, False, 0, False, True)
            except FileNotFoundError:
                fresh = set(self._directories)  # one has just disappeared: add all again
                self._directories.clear()
            except OSError as error:
                self._error = OSError(
                    error.errno or errno.ENOSPC, f"no watchfiles: {described(error)}"
                )
            else:
                self._end = _End()
                # A daemon thread never delays the exit; anyio's worker did, by 2 s.
                Thread(target=self._run, args=(notify, self._end)).start()
        before.come(3)
        if fresh:
            self._report([(path, "", False) for path in fresh])

    def _run(self, notify: RustNotify, end: _End) -> None:
        while (seen := notify.watch(STEP_MS, STEP_MS, 0, end)) != "stop":
            if not isinstance(seen, str):
                call_in(self._loop, self._collect, seen)
        notify.close()

    def _collect(self, seen: set[tuple[int, str]]) -> None:
        if not self._seen:
            self._loop.call_soon(self._deliver)
        self._seen |= seen

    def _deliver(self) -> None:
        seen, self._seen = self._seen, set()
        entries: list[Entry] = []
        for kind, path in seen:
            if path in self._names and kind == self.DELETED:
                self._directories.pop(self._names[path], None)
                entries.append((self._names[path], "", False))
            directory = self._names.get(os.path.dirname(path))
            if directory and kind == self.DELETED and directory in self._arrivals:
                # All that FSEvents says of a file that somebody took within a step.
                entries.append((directory, "", False))
            elif directory:
                entries.append((directory, os.path.basename(path), kind == self.ADDED))
        if entries:
            self._report(entries)


def _identity(directory: str, arrivals: bool) -> tuple[int, int]:
    status = os.stat(directory)
    return status.st_dev, status.st_ino
