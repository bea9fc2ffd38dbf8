"""Watch processes, and report when one exits, within milliseconds where the system allows.

pidfd on Linux and kqueue on macOS report it in the event loop and cost nothing meanwhile.
Processes that they cannot watch (no descriptors left, an older kernel) are polled.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import select
import sys
from collections.abc import Callable
from typing import Final, Literal, Protocol

from .processes import runs

POLL: Final = 2.0  # seconds; a check takes 20 µs per process
SPARE: Final = 4  # the last descriptors, one in so many, are left to everything else


class ExitBackend(Protocol):
    """Reports the exit of processes that the system can watch."""

    def add(self, pid: int) -> bool:
        """Watch a process; return False if there is none, raise OSError if it cannot be watched."""

    def remove(self, pid: int) -> None: ...

    def close(self) -> None: ...


class Deaths:
    """Calls `died(pid, started)` in the event loop, once for each watched process."""

    def __init__(
        self,
        died: Callable[[int, str], None],
        how: Literal["pidfd", "kqueue", "polling", ""] = "",
    ) -> None:
        self.how = how or ("pidfd" if _pidfd_open else "kqueue")
        self._died = died
        self._started: dict[int, str] = {}
        self._polled: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._backend: ExitBackend | None = None
        try:
            if self.how == "pidfd":
                self._backend = _Pidfds(self._report)
            elif self.how == "kqueue":
                self._backend = _Kqueue(self._report)
        except (OSError, NotImplementedError):
            self.how = "polling"

    @property
    def watched(self) -> set[int]:
        """Return the watched processes."""
        return set(self._started)

    @property
    def note(self) -> str:
        """Return a note for health, or ""."""
        return f"{len(self._polled)} processes are polled every {POLL:g} s" * bool(self._polled)

    def watch(self, pid: int, started: str = "") -> None:
        """Watch a process; one that is already gone or replaced is reported soon."""
        if self._started.get(pid) == started:
            return
        self.leave(pid)
        self._started[pid] = started
        try:
            there = self._backend is not None and self._backend.add(pid)
        except OverflowError:  # evidence may name any number
            there = False
        except OSError:
            there = False
            self._polled.add(pid)
        if self._backend is None:
            self._polled.add(pid)
        # Check after watching: otherwise an exit in between would be missed.
        if not runs(pid, started) or not (there or pid in self._polled):
            self._loop.call_soon(self._check, pid)
        if self._polled and self._timer is None:
            self._timer = self._loop.call_later(POLL, self._poll)

    def leave(self, pid: int) -> None:
        """Stop watching a process."""
        if self._started.pop(pid, None) is not None:
            self._polled.discard(pid)
            if self._backend:
                self._backend.remove(pid)

    def close(self) -> None:
        """Stop watching: nothing is called after this."""
        self._started.clear()
        self._polled.clear()
        if self._timer:
            self._timer.cancel()
        if self._backend:
            self._backend.close()

    def _report(self, pid: int) -> None:
        started = self._started.get(pid)
        if started is not None:
            self.leave(pid)
            self._died(pid, started)

    def _check(self, pid: int) -> None:
        started = self._started.get(pid)
        if started is not None and not runs(pid, started):
            self._report(pid)

    def _poll(self) -> None:
        self._timer = self._loop.call_later(POLL, self._poll) if self._polled else None
        for pid in list(self._polled):  # each on its own, as one may fail
            self._loop.call_soon(self._check, pid)


_pidfd_open: Callable[[int], int] | None = getattr(os, "pidfd_open", None)


class _Pidfds:
    """Linux: a descriptor for each process, which becomes readable when it exits."""

    def __init__(self, died: Callable[[int], None]) -> None:
        if _pidfd_open is None:
            raise NotImplementedError("this Python has no pidfd_open")
        self._open = _pidfd_open
        os.close(self._open(os.getpid()))  # OSError if the kernel lacks or forbids it
        self._died = died
        self._loop = asyncio.get_running_loop()
        self._fds: dict[int, int] = {}
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._end = most - most // SPARE if most != resource.RLIM_INFINITY else sys.maxsize

    def add(self, pid: int) -> bool:
        try:
            fd = self._open(pid)
        except ProcessLookupError:
            return False
        if fd >= self._end:  # the system gives the lowest one that is free
            os.close(fd)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._fds[pid] = fd
        self._loop.add_reader(fd, self._ended, pid)
        return True

    def remove(self, pid: int) -> None:
        fd = self._fds.pop(pid, None)
        if fd is not None:
            self._loop.remove_reader(fd)
            os.close(fd)

    def close(self) -> None:
        for pid in list(self._fds):
            self.remove(pid)

    def _ended(self, pid: int) -> None:
        self.remove(pid)
        self._died(pid)


class _Kqueue:
    """macOS and the BSDs: one queue for all."""

    if sys.platform != "linux":

        def __init__(self, died: Callable[[int], None]) -> None:
            self._died = died
            self._queue = select.kqueue()
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._queue.fileno(), self._ended)

        def add(self, pid: int) -> bool:
            try:
                self._ask(pid, select.KQ_EV_ADD | select.KQ_EV_ONESHOT)
            except OSError as error:
                if error.errno == errno.ESRCH:
                    return False
                raise
            return True

        def remove(self, pid: int) -> None:
            with contextlib.suppress(OSError):  # already reported, so no longer in the queue
                self._ask(pid, select.KQ_EV_DELETE)

        def close(self) -> None:
            self._loop.remove_reader(self._queue.fileno())
            self._queue.close()

        def _ask(self, pid: int, flags: int) -> None:
            kind, note = select.KQ_FILTER_PROC, select.KQ_NOTE_EXIT
            self._queue.control([select.kevent(pid, kind, flags, note)], 0)

        def _ended(self) -> None:
            for event in self._queue.control(None, 64, 0):
                self._died(event.ident)

    else:

        def __init__(self, died: Callable[[int], None]) -> None:
            raise NotImplementedError("this system has no kqueue")

        def add(self, pid: int) -> bool:
            return False

        def remove(self, pid: int) -> None: ...

        def close(self) -> None: ...
