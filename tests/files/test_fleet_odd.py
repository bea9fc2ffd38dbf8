"""A NATS server that answers oddly: the fleet says so, and tries again; the host goes on."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellboard.fleet.member import Credentials, Joined
from bellboard.fleet.nats_wire import LARGEST, Down, NatsWire
from bellboard.fleet.program import notes_of
from rig.machines import nats
from rig.machines.fleets import Peer
from rig.machines.odd_nats import INFO, OddServer, replying
from rig.waiting import eventually

pytest.importorskip("nats")

#: The fleet waits ten seconds for another reply than some of these, so all are tried at once.
ODD = (
    b"null",
    b"{}",
    b"[" * 100_000,
    b'{"error":{"code":"x","err_code":[1]}}',
    b'{"error":{"err_code":1e999}}',
    b'{"state":{"last_seq":"x"}}',
    b'{"state":[],"seq":"x"}',
)


def test_an_odd_reply_does_not_end_the_fleet() -> None:
    """The thread once ended with a traceback, and health did not say why."""
    named: set[bytes] = set()  # the replies after which health said why
    with contextlib.ExitStack() as stack:
        servers = {reply: OddServer(replying(reply)) for reply in ODD}
        peers = {reply: Peer(server.url, "one") for reply, server in servers.items()}
        for one in (*peers.values(), *servers.values()):
            stack.callback(one.close)

        def goes_on() -> bool:
            named.update(r for r in ODD if "down since" in peers[r].service.notes.get("fleet", ""))
            assert [] == [r[:40] for r in ODD if r not in named], "health does not say why"
            assert [] == [r[:40] for r in ODD if servers[r].came < 2], "no other try"
            return True

        eventually(goes_on)


def test_without_its_package_health_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fleet goes on trying: after the installation, nothing has to be started again."""
    for name in [x for x in sys.modules if x.split(".")[0] == "nats"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nats", None)
    peer = Peer("nats://127.0.0.1:1", "one")
    try:
        why = eventually(lambda: notes_of(peer.service).get("fleet"))
        assert re.fullmatch(
            r"down since [\d:]{8}: nats-py is missing; install it: .* 'nats-py\[nkeys\]>=2.9'", why
        ), why
    finally:
        peer.close()


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
        eventually(lambda: server.came > 1, "another try")
        assert max(sent) < 16 * LARGEST
    finally:
        peer.close()
        server.close()


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[nats.Server]:
    """A server that has a certificate for localhost, and wants credentials."""
    openssl = shutil.which("openssl")
    if openssl is None or not nats.program():
        pytest.skip("this needs openssl and nats-server")
    key, pem = tmp_path / "server.key", tmp_path / "server.pem"
    made = ["req", "-x509", "-nodes", "-subj", "/CN=x", "-newkey", "ec"]
    made += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", str(key), "-out", str(pem)]
    made += ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([openssl, *made], check=True, capture_output=True)
    tls = f'tls {{ cert_file: "{pem}", key_file: "{key}" }}'
    server = nats.Server(tmp_path / "nats", 'authorization { user: "a", password: "b" }', tls)
    server.start()
    yield server
    server.kill()


@pytest.mark.parametrize(
    ("host", "how", "why"),
    [
        ("localhost", {}, "its certificate is not trusted: self-signed certificate; give it with"),
        ("127.0.0.1", {"ca": "server.pem"}, "not valid for '127.0.0.1'.; use a name or an address"),
        ("localhost", {"ca": "server.pem"}, "credentials"),
        ("no-such-name.invalid", {}, "; check its name"),
    ],
)
def test_what_is_wrong_with_a_server_is_said_in_words(
    encrypted: nats.Server, tmp_path: Path, host: str, how: dict[str, str], why: str
) -> None:
    files = {key: str(tmp_path / name) for key, name in how.items()}
    joined = Joined(f"tls://{host}:{encrypted.port}", "t", "dev", **files)

    async def refused() -> str:
        with pytest.raises(Down) as caught:
            await NatsWire(joined, Credentials("dev"), lambda subject: None).open()
        return str(caught.value)

    said = asyncio.run(refused())
    assert why in said and "Errno" not in said and "_" not in said.replace(str(tmp_path), "")
