"""A connection to a program that may be slow, silent or endless, limited in time and in size.

The limits apply to the whole conversation, not to each read: otherwise a byte per second would
occupy a thread for hours.
"""

from __future__ import annotations

import contextlib
import select
import socket as sockets
import time
from types import TracebackType
from typing import Final

CHUNK: Final = 1 << 16


class Broken(OSError):
    """The other side does not keep to what was agreed; the text says how."""


class Wire:
    """A connection, for `patience` seconds and `limit` bytes; closed at the end of a `with`."""

    def __init__(self, connection: sockets.socket, patience: float, limit: int) -> None:
        self._connection = connection
        self._until = time.monotonic() + patience
        self._left = limit
        self._buffer = bytearray()

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._connection.close()

    def renew(self, patience: float, limit: int) -> None:
        """Allow this many seconds and bytes from now on."""
        self._until, self._left = time.monotonic() + patience, limit

    def hang_up(self) -> None:
        """End it, from any thread; reads that wait for it fail."""
        with contextlib.suppress(OSError):  # it has ended
            self._connection.shutdown(sockets.SHUT_RDWR)

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self._connection.settimeout(self.remaining())
        try:
            self._connection.sendall(data)
        except TimeoutError:
            raise Broken("it has stopped reading") from None
        except OSError as error:
            raise Broken(f"it closed the connection: {error.strerror}") from None

    def until(self, mark: bytes, most: int) -> bytes:
        """Return what comes before a mark, of at most that many bytes; drop the mark."""
        while (at := self._buffer.find(mark)) < 0:
            if len(self._buffer) > most:
                raise Broken("it never stops sending")
            self._more()
        return self._take(at + len(mark))[:at]

    def exactly(self, count: int) -> bytes:
        """Return that many bytes."""
        if count - len(self._buffer) > self._left:
            raise Broken("it announces a message that is too long")
        while len(self._buffer) < count:
            self._more()
        return self._take(count)

    def hears(self, patience: float) -> bool:
        """Return whether something has come, or comes in that many seconds."""
        if self._buffer:
            return True
        patience = max(0.0, min(patience, self.remaining()))
        poll = select.poll()  # unlike `select`, it takes any descriptor
        poll.register(self._connection, select.POLLIN)
        return bool(poll.poll(patience * 1000))

    def remaining(self) -> float:
        """Return the seconds that are left; raise `Broken` if none are."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise Broken("it does not respond in time")
        return left

    def _more(self) -> None:
        self._connection.settimeout(self.remaining())
        try:
            data = self._connection.recv(min(CHUNK, self._left + 1))
        except TimeoutError:
            raise Broken("it does not respond in time") from None
        except OSError as error:
            raise Broken(f"it closed the connection: {error.strerror}") from None
        if not data:
            raise Broken("it closed the connection")
        self._left -= len(data)
        if self._left < 0:
            raise Broken("it sends too much")
        self._buffer += data

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken
