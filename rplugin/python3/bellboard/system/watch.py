"""Watch files, and report changes in the event loop.

A directory is watched for its entries, a file through its directory, so that it may be replaced or
not exist yet. A report only says that something may have changed. So a host first arms (starts
watching), then scans, then waits. A path that could only be armed later (in a thread, or because
its directory appeared or was replaced, a backend restarted, events were lost) is reported then.
Every 30 s the host calls `rearm` and checks everything, because no system promises more. There are
two backends, and a third for what they cannot watch; from rename to callback (p50, measured):

    inotify     Linux: 0.03 ms; no cost at rest; paths can be added and removed
    watchfiles  elsewhere: one or two steps late; its paths are fixed, so it is restarted for a
                new one; FSEvents reports no write to a file that stays open, such as a log of
                Codex, so files are polled as well
    polling     network file systems, which report only changes by this machine, and paths for
                which the system has no watches left; up to 1 s late
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from .failures import described
from .inotify import Entry, Inotify
from .mounts import MOUNTS, NETWORK, Mounts
from .polling import POLL, Polling, Watchfiles
from .reach import Rounds, reach, reached_from_here

# ruff: noqa: PTH100, PTH112, PTH116, PTH120
# Paths are strings here: they come from the system and are only compared.


How = Literal["inotify", "watchfiles", "polling"]


Armer = Callable[[str, bool], object]


class Armed(NamedTuple):
    """A path, and the result of arming its directory."""

    directory: str
    device: int  # 0 if it does not exist
    token: object  # returned by the armer
    error: OSError | None


class WatchBackend(Protocol):
    """Watches directories for their entries."""

    @property
    def armer(self) -> Armer:
        """Return a function that arms a directory; it may raise OSError, and may hang."""

    def add(self, directory: str, token: Any, arrivals: bool) -> bool:
        """Take an armed directory; return whether it replaces another one with that name."""

    def drop(self, token: Any) -> None:
        """Disarm a directory that is no longer needed."""

    def remove(self, directory: str) -> None: ...

    def close(self) -> None: ...


class Watch:
    """Calls `changed` in the event loop with the paths that may have changed.

    For a watched directory, these are the directory itself or paths of its entries.
    """

    def __init__(
        self,
        changed: Callable[[set[str]], None],
        how: How | None = None,
        mounts: Mounts = MOUNTS,
    ) -> None:
        self.how: How = how or ("inotify" if sys.platform == "linux" else "watchfiles")
        self._native = self.how
        self._changed = changed
        self._arming = Rounds()
        self._mounts = mounts
        self._arrivals: dict[str, bool] = {}  # path → only arrivals
        self._served: dict[str, set[str]] = {}  # watched directory → paths
        self._by: dict[str, str] = {}  # path → the directory that serves it
        self._polled: dict[str, str] = {}  # path → why
        self._missing = ""  # why there is no backend
        self._polling = Polling(changed)
        self._backend: WatchBackend | None = None
        self._start()

    @property
    def note(self) -> str:
        """Return a note for health, or ""."""
        reasons = sorted({self._missing, *self._polled.values()} - {""})
        return f"polling every {POLL:g} s: {'; '.join(reasons)}" if reasons else ""

    def add(self, path: str | Path, *, arrivals: bool = False) -> None:
        """Watch a path, existing or not; `arrivals`: only complete files that enter it."""
        path = os.path.abspath(path)
        if path not in self._arrivals:
            self._arrivals[path] = arrivals
            self._arm(path, report=not arrivals)

    def remove(self, path: str | Path) -> None:
        """Stop watching a path."""
        path = os.path.abspath(path)
        self._polled.pop(path, None)
        self._polling.remove(path)
        if self._arrivals.pop(path, None) is not None:
            self._release(path)

    def rearm(self) -> None:
        """Watch again the paths that could not be watched, and directories that were replaced."""
        if self._backend is None and self._native != "polling":
            self._start()
        for path in list(self._arrivals):
            self._arm(path)

    def close(self) -> None:
        """Stop watching: nothing is called after this, and no thread delays the exit."""
        self._arming.close()
        self._polling.close()
        if self._backend:
            self._backend.close()

    def _start(self) -> None:
        try:
            if self._native == "inotify":
                self._backend = inotify = Inotify(self._report)
                reached_from_here().share(inotify.descriptor)
            elif self._native == "watchfiles":
                self._backend = Watchfiles(self._report)
        except (OSError, ImportError, AttributeError) as error:  # no instances left; not installed
            self.how, self._missing = "polling", f"no {self._native}: {described(error)}"
        else:
            self.how, self._missing = self._native, ""

    def _arm(self, path: str, report: bool = True) -> None:
        """Arm a path as the file or folder that it is now; `report`: report it if it is new."""
        arrivals = self._arrivals[path]
        alone = arrivals and self._only_arrivals(path)
        armer = self._backend.armer if self._backend is not None else None
        work = partial(arm_directory, path, armer, alone)
        if arrivals:  # our own folder
            self._armed(path, report, work())
        else:
            self._arming.run(path, partial(self._arm_far, path, report, work))

    async def _arm_far(self, path: str, report: bool, work: Callable[[], Armed]) -> None:
        self._armed(path, report, await reach(work, path))

    def _armed(self, path: str, report: bool, armed: Armed) -> None:
        directory, backend, error = armed.directory, self._backend, armed.error
        if path not in self._arrivals:
            if backend is not None and error is None and directory not in self._served:
                backend.drop(armed.token)
            return
        if self._by.get(path) != directory:  # it became a directory, or no longer is one
            self._release(path)
        fresh: set[str] = set()
        why = self._remote(armed.device) if backend else self._missing
        if backend and error is None:
            paths = self._served.setdefault(directory, set())
            if path not in paths:
                paths.add(path)
                self._by[path] = directory
                fresh = {path}
            try:
                if backend.add(directory, armed.token, self._only_arrivals(directory)):
                    fresh = set(paths)
            except OSError as e:
                error = e
        if backend and error is not None:
            backend.remove(directory)
            for lost in self._served.pop(directory, ()):
                del self._by[lost]
            fresh = set()  # `rearm` tries again
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                why = f"{error.strerror}: {directory}"
                if error.errno == errno.ENOSPC:
                    why = "no watches left (fs.inotify.max_user_watches)"
        is_silent = self._native == "watchfiles" and directory != path  # while it stays open
        if why or is_silent or self._native == "polling":
            self._polled[path] = why
            self._polling.add(path)
        elif self._polled.pop(path, None) is not None:
            self._polling.remove(path)
        if report and fresh:
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
            self._arm(directory, report=False)  # so that other changes there no longer wake us

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
        """Return why a device must be polled, if it is a network file system."""
        kind = self._mounts.kind(device)
        return f"{kind} reports only changes by this machine" if kind in NETWORK else ""


def arm_directory(path: str, armer: Armer | None, arrivals: bool) -> Armed:
    """Arm the directory of a path; run this where it may hang."""
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    try:
        device = os.stat(directory).st_dev
        return Armed(directory, device, armer and armer(directory, arrivals), None)
    except OSError as error:
        return Armed(directory, 0, None, error)


# Watch each path for as long as somebody needs it.


Needer = tuple[str, Any]  # the reason, and who asked


class Watched:
    """Counts who needs each watched path."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._needed: dict[str, set[Needer]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._needed)

    def who(self, path: str, what: str) -> list[Any]:
        """Return who needs a path for that purpose."""
        return [whom for kind, whom in self._needed.get(path, ()) if kind == what]

    def need(self, path: str, what: str, whom: Any) -> None:
        """Watch a path for somebody."""
        self._needed.setdefault(path, set()).add((what, whom))
        self._watch.add(path)

    def leave(self, path: str, what: str, whom: Any) -> None:
        """Drop a need; stop watching a path that nobody needs."""
        needed = self._needed.get(path)
        if needed is not None:
            needed.discard((what, whom))
            if not needed:
                del self._needed[path]
                self._watch.remove(path)

    def renew(self, path: str) -> None:
        """Watch a path again: its folder has appeared."""
        if path in self._needed:
            self._watch.remove(path)
            self._watch.add(path)


class Unwatched(Watched):
    """Watches nothing: whoever asks looks only once."""

    def __init__(self) -> None:
        self._needed = {}

    def need(self, path: str, what: str, whom: Any) -> None:
        """Do nothing."""

    def leave(self, path: str, what: str, whom: Any) -> None:
        """Do nothing."""

    def renew(self, path: str) -> None:
        """Do nothing."""


# Report when a program writes to its terminal, whichever program shows that terminal.
#
# inotify reports writes to a terminal only if the device itself is watched, not its folder.
# Without inotify, a terminal counts as written to after a while.


LATER: Final = 2.0  # seconds
TERMINAL: Final = re.compile(r"/dev/(?:pts/[0-9]+|tty[A-Za-z0-9]+)", re.ASCII)


class Listener(Protocol):
    """A listener for writes to a terminal."""

    def heard(self, tty: str) -> None: ...


class Written:
    """Tells each listener in the event loop, once, that a terminal was written to."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._inotify: Inotify | None = None
        self._is_open = False

    def _open(self) -> None:
        """Begin with the first terminal: most users never need it."""
        self._is_open = True
        if sys.platform == "linux":
            with contextlib.suppress(OSError, AttributeError):  # no instances left
                self._inotify = Inotify(lambda entries: None, self._heard)

    def add(self, tty: str, listener: Listener) -> None:
        """Call the listener at the next write to a terminal."""
        if not TERMINAL.fullmatch(tty):
            return  # any other path may hang, or lead elsewhere
        if not self._is_open:
            self._open()
        self._listeners.setdefault(tty, set()).add(listener)
        if self._inotify is not None:
            try:
                self._inotify.add_once(tty)
            except OSError:  # no watches left
                pass
            else:
                return
        if tty not in self._timers:
            self._timers[tty] = self._loop.call_later(LATER, self._heard, tty)

    def leave(self, listener: Listener) -> None:
        """Stop calling the listener."""
        for tty in [tty for tty, there in self._listeners.items() if listener in there]:
            self._listeners[tty].discard(listener)
            if not self._listeners[tty]:
                del self._listeners[tty]

    def close(self) -> None:
        """Stop watching."""
        for timer in self._timers.values():
            timer.cancel()
        if self._inotify is not None:
            self._inotify.close()

    def _heard(self, tty: str) -> None:
        self._timers.pop(tty, None)
        for listener in self._listeners.pop(tty, ()):
            listener.heard(tty)
