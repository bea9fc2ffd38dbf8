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

# ruff: noqa: PTH100, PTH112, PTH116, PTH120
# Paths are strings in here: they come from the system and are only compared.

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from .doer import AtOnce, Doer
from .inotify import Entry, Inotify
from .mounts import NETWORK, TABLE, Mounts
from .polling import POLL, Polling
from .reach import Reach
from .stepping import Watchfiles

How = Literal["inotify", "watchfiles", "polling"]


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
        self._polling = Polling(changed)
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
                self._backend = Watchfiles(self._report)
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
