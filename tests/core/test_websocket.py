"""A server that never stops sending, in pieces however small, costs a moment and is left alone."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import socket as sockets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bellboard.system.wire import FRAMES, MAGIC, Broken, WebSocket, Wire

pytestmark = pytest.mark.quick

BEGUN, PART, WHOLE = b"\x01\x01x", b"\x00\x01x", b"\x81\x01x"


def play(server: sockets.socket, first: bytes, others: bytes, count: int | None) -> None:
    """Greet, and send a frame, then others: so many, or without end."""
    key = server.recv(4096).partition(b"Key: ")[2].partition(b"\r\n")[0]
    proof = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
    server.sendall(
        b"HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: " + proof + b"\r\n\r\n" + first
    )
    with contextlib.suppress(OSError):  # the client hangs up
        server.sendall(others * (count or 0))
        while count is None:
            server.sendall(others * 1000)


@contextmanager
def connected(first: bytes, others: bytes, count: int | None = None) -> Iterator[WebSocket]:
    client, server = sockets.socketpair()
    thread = threading.Thread(target=play, args=(server, first, others, count))
    thread.start()
    try:
        with Wire(client, 20.0, 8 << 20) as wire:
            yield WebSocket(wire)
    finally:
        thread.join()
        server.close()


@pytest.mark.parametrize(("first", "others"), [(BEGUN, PART), (WHOLE, WHOLE)])
def test_frames_without_end_are_not_read(first: bytes, others: bytes) -> None:
    """A message of endless parts, and endless messages."""
    with connected(first, others) as socket, pytest.raises(Broken, match="never stops sending"):
        for _ in range(FRAMES + 1):
            socket.receive()


def test_a_message_of_some_parts_is_read() -> None:
    with connected(BEGUN, PART + PART + b"\x80\x01y", 1) as socket:
        assert socket.receive() == b"xxxy"
