"""Read lines from one descriptor and write to another, in threads: a slow end blocks no event loop.

Descriptors of any kind will do: pipes, sockets, terminals, files.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Final

from .threads import Thread, call_in

CHUNK: Final = 1 << 16


class Outlet:
    """Writes one piece at a time; calls `drained` in the event loop when it can take the next."""

    def __init__(self, descriptor: int, drained: Callable[[], None]) -> None:
        self.error: OSError | None = None  # set once nothing more can be written
        self._descriptor, self._drained = descriptor, drained
        self._loop = asyncio.get_running_loop()
        self._state = threading.Condition()
        self._piece = b""
        Thread(target=self._run, name="bellboard outlet").start()

    @property
    def is_free(self) -> bool:
        """Return whether everything was written."""
        return not self._piece and self.error is None

    def write(self, piece: bytes) -> None:
        """Write a piece, once the outlet is free."""
        with self._state:
            self._piece = piece
            self._state.notify()

    def finish(self, patience: float) -> None:
        """Wait until everything is written."""
        with self._state:
            self._state.wait_for(lambda: not self._piece or self.error is not None, patience)

    def _run(self) -> None:
        while self.error is None:
            with self._state:
                self._state.wait_for(lambda: self._piece)
            try:
                _write(self._descriptor, self._piece)
            except OSError as e:
                self.error = e
            with self._state:
                self._piece = b""
                self._state.notify_all()
            call_in(self._loop, self._drained)


class Inlet:
    """Calls `came` in the event loop with each line; reads no further while `most` are in progress.

    Of a line that is longer than `longest` bytes, only the beginning arrives, with one byte more
    than that.
    """

    def __init__(
        self, descriptor: int, longest: int, most: int, came: Callable[[bytes], None]
    ) -> None:
        self._descriptor, self._longest, self._came = descriptor, longest, came
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(most)
        Thread(target=self._run, name="bellboard inlet").start()

    def done(self) -> None:
        """Note that a line is done."""
        self._room.release()

    def _run(self) -> None:
        rest, skips = b"", False
        while data := _read(self._descriptor):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if not skips and not self._deliver(line):
                    return
                skips = False
            if skips:
                rest = b""
            elif len(rest) > self._longest:
                if not self._deliver(rest):
                    return
                rest, skips = b"", True

    def _deliver(self, line: bytes) -> bool:
        self._room.acquire()
        return call_in(self._loop, self._came, line[: self._longest + 1])


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:
        return b""


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
