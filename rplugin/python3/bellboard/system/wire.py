"""A connection to a program that may be slow, silent or endless, limited in time and in size.

The limits apply to the whole conversation, not to each read: otherwise a byte per second would
occupy a thread for hours.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import select
import socket as sockets
import struct
import time
from types import TracebackType
from typing import Final

CHUNK: Final = 1 << 16


class Broken(OSError):
    """The other side breaks the protocol; the text says how."""


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
        """Return the bytes before a mark, at most so many; drop the mark."""
        while (at := self._buffer.find(mark)) < 0:
            if len(self._buffer) > most:
                raise Broken("it never stops sending")
            self._more()
        return self._take(at + len(mark))[:at]

    def exactly(self, count: int) -> bytes:
        """Return exactly `count` bytes."""
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


# The client's side of a WebSocket (RFC 6455), for text messages over one local socket.


MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of the protocol
HEAD: Final = 8192  # bytes of the answer to the upgrade
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
CONTINUED: Final = 0x0
FINAL: Final = 0x80
MASKED: Final = 0x80
CONTROL: Final = 0x8  # kinds from this on
MOST: Final = 125  # bytes of a control frame
FRAMES: Final = 2000  # in a minute; thirty busy sessions send a hundred
MINUTE: Final = 60.0


class WebSocket:
    """Messages in both directions; raises `Broken` when the server breaks the protocol."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._frames, self._since = 0, time.monotonic()
        key = base64.b64encode(os.urandom(16))
        wire.send(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
        )
        status, *rows = wire.until(b"\r\n\r\n", HEAD).split(b"\r\n")
        parts = [row.partition(b":") for row in rows]
        fields = {name.strip().lower(): value.strip() for name, _, value in parts}
        proof = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
        if status.split(b" ")[1:2] != [b"101"] or fields.get(b"sec-websocket-accept") != proof:
            raise Broken("it does not speak WebSocket")

    def send(self, message: bytes) -> None:
        """Send a text message."""
        self._frame(TEXT, message)

    def receive(self) -> bytes:
        """Return the next message, and answer pings meanwhile."""
        message = bytearray()
        while True:
            first, second = self._wire.exactly(2)
            self._count()
            size = second & ~MASKED
            if second & MASKED or first & 0x70:
                raise Broken("it sends invalid WebSocket frames")
            if size == 126:
                (size,) = struct.unpack(">H", self._wire.exactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._wire.exactly(8))
            kind = first & 0x0F
            if kind >= CONTROL and size > MOST:  # masking the echo of a large one takes a second
                raise Broken("it sends invalid WebSocket frames")
            data = self._wire.exactly(size)
            if kind == PING:
                self._frame(PONG, data)
            elif kind == CLOSE:
                raise Broken("it closed the connection")
            elif kind in (TEXT, CONTINUED):
                message += data
                if first & FINAL:
                    return bytes(message)
            elif kind != PONG:
                raise Broken("it sends something other than text")

    def _count(self) -> None:
        """Break with a server whose frames, however small, would keep a processor busy."""
        now = time.monotonic()
        if now - self._since > MINUTE:
            self._frames, self._since = 0, now
        self._frames += 1
        if self._frames > FRAMES:
            raise Broken("it never stops sending")

    def _frame(self, kind: int, data: bytes) -> None:
        mask, size = os.urandom(4), len(data)
        if size < 126:
            head = bytes((FINAL | kind, MASKED | size))
        elif size < 1 << 16:
            head = bytes((FINAL | kind, MASKED | 126)) + struct.pack(">H", size)
        else:
            head = bytes((FINAL | kind, MASKED | 127)) + struct.pack(">Q", size)
        self._wire.send(head + mask + bytes(x ^ mask[n % 4] for n, x in enumerate(data)))
