"""A NATS server that answers oddly: the fleet says so, and tries again; the host goes on."""

from __future__ import annotations

import socket

import pytest

from bellboard.fleet.wire import LARGEST
from fleets import Peer
from rig.odd_nats import INFO, OddServer, replying
from rig.waiting import eventually

pytest.importorskip("nats")
pytestmark = pytest.mark.files


@pytest.mark.parametrize(
    "reply",
    [
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"error":{"code":"x","err_code":[1]}}',
        b'{"error":{"err_code":1e999}}',
        b'{"state":{"last_seq":"x"}}',
        b'{"state":[],"seq":"x"}',
    ],
)
def test_an_odd_reply_does_not_end_the_fleet(reply: bytes) -> None:
    """Its thread once ended with a traceback, and health did not say why."""
    server = OddServer(replying(reply))
    peer = Peer(server.url, "one")
    try:
        eventually(lambda: "down since" in peer.service.notes.get("fleet", ""), "a reason")
        eventually(lambda: server.came > 1, "another try")
    finally:
        peer.close()
        server.close()


@pytest.mark.parametrize("head", [b"", b"PONG\r\nMSG a 1 9999999999\r\n"])
def test_noise_is_not_kept(head: bytes) -> None:
    """A server without an end of line, or of a message, once filled the memory."""
    sent: list[int] = []

    def talk(client: socket.socket) -> None:
        client.sendall(INFO + head)
        sent.append(0)
        while sent[-1] < 16 * LARGEST:
            client.sendall(b"x" * (1 << 16))
            sent[-1] += 1 << 16

    server = OddServer(talk)
    peer = Peer(server.url, "one")
    try:
        eventually(lambda: server.came > 2, "more tries")
        assert max(sent) < 16 * LARGEST
    finally:
        peer.close()
        server.close()
