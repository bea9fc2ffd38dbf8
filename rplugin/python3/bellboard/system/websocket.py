"""The client's side of a WebSocket (RFC 6455), for text messages over one local socket."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import time
from typing import Final

from .wire import Broken, Wire

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
