"""Changes of files, called back in the event loop.

A directory is watched for its entries, anything else for itself: by way of its directory, so that
it may be replaced, or not be there yet. The promise is only to wake: what happened is found out by
looking. So a host arms first, then scans, then waits. What could be armed only later (its
directory came later or was replaced, a backend started anew, events were lost) is called back at
that moment; and every 30 s the host calls `rearm` and looks at everything, for no system promises
more. Two backends, and a third for what they cannot see; from rename to callback (p50, measured):

    inotify     Linux: 0.03 ms, nothing at rest, paths come and go at will
    watchfiles  elsewhere: one or two steps late; its paths are fixed, so for a new one it is
                started anew
    polling     network file systems, which tell only what this machine does, and whatever the
                system has no watches left for (watchfiles would ask for the same); up to 1 s late
"""

# ruff: noqa: PTH100, PTH112, PTH116, PTH119, PTH120
# Paths are strings in here: they come from the system and are only compared.

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ..storage.mounts import NETWORK, TABLE, Mounts
from .inotify import Entry, Inotify, Report
from .reach import AtOnce, Doer, Reach

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

How = Literal["inotify", "watchfiles", "polling"]
POLL = 1.0
STEP_MS = 20  # of watchfiles, which sleeps and looks: 0.2 % of a core; every 1 ms were 1.9 %


Armer = Callable[[str, bool], object]


class Look(NamedTuple):
    """What a path is, and what came of watching its directory."""

    directory: str
    device: int  # 0: it is not there
    token: object  # what its armer returned
    error: OSError | None


class Backend(Protocol):
    """Watches directories for their entries."""

    @property
    def armer(self) -> Armer:
        """Arms a directory, for arrivals only or for all; it raises OSError, and may hang."""

    def add(self, directory: str, token: Any, arrivals: bool) -> bool:
        """It has been armed; True if it is another one than before under that name."""

    def drop(self, token: Any) -> None:
        """It has been armed in vain."""

    def remove(self, directory: str) -> None: ...

    def close(self) -> None: ...


class Watch:
    """Calls `changed`, in the loop that runs, with the paths that may have changed.

    Of a watched directory that is the directory joined with the name of an entry, or itself.
    """

    def __init__(
        self,
        changed: Callable[[set[str]], None],
        how: How | None = None,
        mounts: str = TABLE,
        reach: Reach | None = None,
    ) -> None:
        self.how: How = how or ("inotify" if sys.platform == "linux" else "watchfiles")
        self._native = self.how
        self._changed = changed
        self._reach, self._here = reach, AtOnce()
        self._mounts = Mounts(mounts)
        self._arrivals: dict[str, bool] = {}  # path → only arrivals
        self._served: dict[str, set[str]] = {}  # watched directory → paths
        self._by: dict[str, str] = {}  # path → the directory that serves it
        self._polled: dict[str, str] = {}  # path → why
        self._missing = ""  # why there is no backend
        self._polling = _Polling(changed)
        self._backend: Backend | None = None
        self._start()

    @property
    def note(self) -> str:
        """What health should say of this watch; empty if there is nothing to say."""
        reasons = sorted({self._missing, *self._polled.values()} - {""})
        return f"looks every {POLL:g} s: {'; '.join(reasons)}" if reasons else ""

    def add(self, path: str | Path, *, arrivals: bool = False) -> None:
        """Watch a path, there or not; `arrivals`: only what enters the directory, complete."""
        path = os.path.abspath(path)
        if path not in self._arrivals:
            self._arrivals[path] = arrivals
            self._arm(path, tell=False)

    def remove(self, path: str | Path) -> None:
        """Watch it no more."""
        path = os.path.abspath(path)
        self._polled.pop(path, None)
        self._polling.remove(path)
        if self._arrivals.pop(path, None) is not None:
            self._release(path)

    def rearm(self) -> None:
        """Try what could not be watched so far, and what is another directory by now."""
        if self._backend is None and self._native != "polling":
            self._start()
        for path in list(self._arrivals):
            self._arm(path)

    def close(self) -> None:
        """End it: nothing is called any more, and no thread delays the exit."""
        self._polling.close()
        self._mounts.close()
        if self._backend:
            self._backend.close()

    def _start(self) -> None:
        try:
            if self._native == "inotify":
                self._backend = inotify = Inotify(self._report)
                if self._reach is not None:
                    self._reach.share(inotify.descriptor)
            elif self._native == "watchfiles":
                self._backend = _Watchfiles(self._report)
        except (OSError, ImportError, AttributeError) as error:  # no instances left; not installed
            self.how, self._missing = "polling", f"no {self._native}: {error}"
        else:
            self.how, self._missing = self._native, ""

    def _arm(self, path: str, tell: bool = True) -> None:
        """Watch it as what it is now; `tell` of what was not watched until now."""
        arrivals = self._arrivals[path]
        alone = arrivals and self._only_arrivals(path)
        armer = self._backend.armer if self._backend is not None else None
        then = partial(self._settle, path, tell)
        self._doer(path).do(path, partial(look_at, path, armer, alone), then, key=f"watch {path}")

    def _doer(self, path: str) -> Doer:
        """Our own folder is armed at once, and so are all where nothing can be done beside."""
        return self._here if self._reach is None or self._arrivals[path] else self._reach

    def _settle(self, path: str, tell: bool, look: Look) -> None:
        directory, backend, error = look.directory, self._backend, look.error
        if path not in self._arrivals:
            if backend is not None and error is None and directory not in self._served:
                backend.drop(look.token)
            return
        if self._by.get(path) != directory:  # it has become a directory, or is one no more
            self._release(path)
        fresh: set[str] = set()
        why = self._remote(look.device) if backend else self._missing
        if backend and error is None:
            paths = self._served.setdefault(directory, set())
            if path not in paths:
                paths.add(path)
                self._by[path] = directory
                fresh = {path}
            try:
                if backend.add(directory, look.token, self._only_arrivals(directory)):
                    fresh = set(paths)
            except OSError as e:
                error = e
        if backend and error is not None:
            backend.remove(directory)
            for lost in self._served.pop(directory, ()):
                del self._by[lost]
            fresh = set()  # `rearm` will come again
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                why = f"{error.strerror}: {directory}"
                if error.errno == errno.ENOSPC:
                    why = "no watches left (fs.inotify.max_user_watches)"
        if why or self._native == "polling":
            self._polled[path] = why
            self._polling.add(path, self._doer(path))
        elif self._polled.pop(path, None) is not None:
            self._polling.remove(path)
        if tell and fresh:
            self._changed(fresh)

    def _release(self, path: str) -> None:
        directory = self._by.pop(path, None)
        if self._backend is None or directory is None:
            return
        paths = self._served[directory]
        paths.discard(path)
        if not paths:
            del self._served[directory]
            self._backend.remove(directory)
        elif directory in paths and self._only_arrivals(directory):
            self._arm(directory, tell=False)  # so that nothing else there wakes us any more

    def _only_arrivals(self, directory: str) -> bool:
        paths = self._served.get(directory, ())
        return all(self._arrivals[path] and path == directory for path in paths)

    def _report(self, entries: Iterable[Entry] | None) -> None:
        if entries is None:
            self._changed(set(self._arrivals))
            return
        changed: set[str] = set()
        again: set[str] = set()
        for directory, name, is_new in entries:
            paths = self._served.get(directory, ())
            if not name:
                again.update(paths)
                continue
            entry = f"{directory}/{name}"
            if directory in paths:
                changed.add(entry)
            if entry in paths:
                changed.add(entry)
                if is_new:  # it may be a directory now
                    again.add(entry)
        for path in again:
            self._arm(path)
        if changed or again:
            self._changed(changed | again)

    def _remote(self, device: int) -> str:
        """The network file system that this is, from the kernel's table of mounts."""
        kind = self._mounts.kind(device)
        return f"{kind} tells only what this machine does" if kind in NETWORK else ""


def look_at(path: str, armer: Armer | None, arrivals: bool) -> Look:
    """What a path is, once its directory is armed; wherever that may hang."""
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    try:
        device = os.stat(directory).st_dev
        return Look(directory, device, armer and armer(directory, arrivals), None)
    except OSError as error:
        return Look(directory, 0, None, error)


class _End:
    """Asked once a step. At its end watchfiles drops what it has seen and not told, which the
    next one does not know: so the end comes steps later, when all is told."""

    def __init__(self) -> None:
        self._steps: int | None = None

    def come(self, steps: int) -> None:
        self._steps = steps

    def is_set(self) -> bool:
        if self._steps is None:
            return False
        self._steps -= 1
        return self._steps < 0


class _Watchfiles:
    ADDED, DELETED = 1, 3

    def __init__(self, report: Report) -> None:
        from watchfiles._rust_notify import RustNotify

        self._rust = RustNotify
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._directories: dict[str, tuple[int, int]] = {}  # → device and inode
        self._arrivals: set[str] = set()
        self._names: dict[str, str] = {}  # as reported → as asked: macOS says /private/var for /var
        self._fresh: set[str] | None = None  # not None: a start is due
        self._end = _End()
        self._seen: set[tuple[int, str]] = set()
        self._error: OSError | None = None

    @property
    def armer(self) -> Armer:
        return _identity

    def add(self, directory: str, token: tuple[int, int], arrivals: bool) -> bool:
        if self._error:
            raise self._error
        (self._arrivals.add if arrivals else self._arrivals.discard)(directory)
        if self._directories.get(directory) != token:
            self._directories[directory] = token
            self._restart(directory)
        return False  # armed after this turn of the loop, and then called back

    def drop(self, token: tuple[int, int]) -> None:
        pass  # nothing was armed yet

    def remove(self, directory: str) -> None:
        if self._directories.pop(directory, None):
            self._restart()

    def close(self) -> None:
        self._directories.clear()
        self._end.come(0)

    def _restart(self, *fresh: str) -> None:
        if self._fresh is None:  # any number of paths in one turn of the loop is one start
            self._fresh = set()
            self._loop.call_soon(self._start)
        self._fresh.update(fresh)

    def _start(self) -> None:
        fresh, self._fresh = self._fresh or set(), None
        self._names = {os.path.realpath(path): path for path in self._directories}
        before = self._end
        if self._names:
            try:
                # The new one is armed before the old one ends: nothing falls between them.
                notify = self._rust(list(self._names), False, False, 0, False, True)
            except FileNotFoundError:
                fresh = set(self._directories)  # one has just gone: all are added again
                self._directories.clear()
            except OSError as error:
                self._error = OSError(error.errno or errno.ENOSPC, f"no watchfiles: {error}")
            else:
                self._end = _End()
                # A daemon, so that it never delays the exit: anyio's worker did, by 2 s.
                threading.Thread(target=self._run, args=(notify, self._end), daemon=True).start()
        before.come(3)
        if fresh:
            self._report([(path, "", False) for path in fresh])

    def _run(self, notify: RustNotify, end: _End) -> None:
        while (seen := notify.watch(STEP_MS, STEP_MS, 0, end)) != "stop":
            if not isinstance(seen, str):
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._collect, seen)
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
            if directory and not (kind == self.DELETED and directory in self._arrivals):
                entries.append((directory, os.path.basename(path), kind == self.ADDED))
        if entries:
            self._report(entries)


def _identity(directory: str, arrivals: bool) -> tuple[int, int]:
    status = os.stat(directory)
    return status.st_dev, status.st_ino


class _Polling:
    """Compares what the paths look like, each second; costs 1.5 µs per file and look."""

    def __init__(self, changed: Callable[[set[str]], None]) -> None:
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._looks: dict[str, dict[str, tuple[int, int, int]] | None] = {}  # None: none yet
        self._doers: dict[str, Doer] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, path: str, doer: Doer) -> None:
        if path not in self._doers:
            self._doers[path], self._looks[path] = doer, None
            self._ask(path)
        self._timer = self._timer or self._loop.call_later(POLL, self._poll)

    def remove(self, path: str) -> None:
        self._doers.pop(path, None)
        self._looks.pop(path, None)

    def close(self) -> None:
        self._doers.clear()
        if self._timer:
            self._timer.cancel()

    def _poll(self) -> None:
        for path in list(self._doers):
            self._ask(path)
        self._timer = self._loop.call_later(POLL, self._poll) if self._doers else None

    def _ask(self, path: str) -> None:
        then = partial(self._compare, path)
        self._doers[path].do(path, partial(_look, path), then, key=f"poll {path}")

    def _compare(self, path: str, now: dict[str, tuple[int, int, int]]) -> None:
        if path not in self._doers:
            return
        before, self._looks[path] = self._looks[path], now
        if before is not None and before != now:
            keys = before.keys() | now.keys()
            self._changed({key for key in keys if before.get(key) != now.get(key)})


def _look(path: str) -> dict[str, tuple[int, int, int]]:
    """Inode, size and time of a file, or of each entry of a directory."""
    seen: dict[str, tuple[int, int, int]] = {}
    with contextlib.suppress(OSError):
        status = os.stat(path)
        seen[path] = status.st_ino, status.st_size, status.st_mtime_ns
        if stat.S_ISDIR(status.st_mode):
            seen[path] = status.st_ino, 0, 0  # its entries tell the rest
            with os.scandir(path) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        seen[entry.path] = status.st_ino, status.st_size, status.st_mtime_ns
    return seen
