"""Take the orders of shells (`storage/orders.py`), and carry them out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ..core.deadlines import NEVER
from ..storage.answers import is_ours, is_pipe
from ..storage.aside import remove
from ..storage.ground import briefly, inside, listing
from ..storage.orders import END, FOLDER, LARGEST, ORDER, TAKEN, decoded
from ..storage.spool import Spool
from ..system.files import read
from ..system.watch import Watch
from .attempts import Attempts

OLD: Final = 60.0  # seconds; nobody waits for the reply any longer
MOST: Final = 32  # orders at a time

_WRITE: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC

#: Carries out the words of a command for whoever gave it; returns the reply, or b"" to decline.
Carry = Callable[[Sequence[str], str], Awaitable[bytes]]


class Orders:
    """Takes orders from `open` on, which needs a running event loop."""

    def __init__(self, spool: Spool, carry_out: Carry | None, attempt: Attempts) -> None:
        self._folder = f"{spool.home}/{FOLDER}"
        self._carry_out, self._attempt = carry_out, attempt
        self._watch: Watch | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, watch: Watch) -> None:
        """Start taking orders."""
        self._watch = watch
        self.expect()

    def is_about(self, path: str) -> bool:
        """Return whether a changed path belongs to the orders."""
        return path.startswith(f"{self._folder}/")

    def expect(self) -> None:
        """Watch the folder, and remove what nobody waits for."""
        if self._watch is not None and self._carry_out is not None:
            self._watch.add(self._folder, arrivals=True)
        for name in briefly(listing(self._folder)):
            with contextlib.suppress(OSError):
                path = f"{self._folder}/{name}"
                if abs(time.time() - os.lstat(path).st_mtime) > OLD:
                    remove(path)

    def run(self) -> float:
        """Take the orders that wait."""
        if self._watch is None or self._carry_out is None:
            return NEVER
        for file in briefly(listing(self._folder)):
            name = file.removesuffix(ORDER)
            if name == file or not is_pipe(name) or len(self._tasks) >= MOST:
                continue
            with contextlib.suppress(OSError):  # another host was first, or it was withdrawn
                if (order := self._take(name)) is not None:
                    task = asyncio.ensure_future(self._do(*order, self._carry_out))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
        return NEVER

    def _take(self, name: str) -> tuple[int, list[str], str] | None:
        """Take an order; return its pipe, its words, and who gives it."""
        with inside(self._folder) as folder:
            taken = f"{name}.{os.getpid()}"
            os.rename(name + ORDER, taken, src_dir_fd=folder, dst_dir_fd=folder)
            try:
                data, _ = read(f"{self._folder}/{taken}", LARGEST)
            finally:
                os.unlink(taken, dir_fd=folder)
            try:
                pipe = os.open(name, _WRITE, dir_fd=folder)
            finally:
                os.unlink(name, dir_fd=folder)
        order, status = decoded(data), os.fstat(pipe)
        if stat.S_ISFIFO(status.st_mode) and is_ours(status):
            os.write(pipe, TAKEN)
            if order is not None:
                return pipe, *order
        os.close(pipe)
        return None

    async def _do(self, pipe: int, words: list[str], by: str, carry_out: Carry) -> None:
        try:
            if reply := await carry_out(words, by):
                os.write(pipe, reply + END)
            self._attempt.forget("orders", "")
        except OSError:  # the command has ended meanwhile
            pass
        except Exception as error:
            self._attempt.failed("orders", "", error)
        finally:
            os.close(pipe)
