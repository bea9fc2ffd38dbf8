"""A server that speaks just enough NATS for a client to send a request, and answers oddly."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Final

INFO: Final = (
    b'INFO {"server_id":"odd","version":"2.10.0","max_payload":1048576,"headers":true}\r\n'
)
Talk = Callable[[socket.socket], object]


class OddServer:
    """Listens on a free port of loopback; `came` counts the connections."""

    def __init__(self, talk: Talk) -> None:
        self.came = 0
        self._talk = talk
        self._clients: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        for one in (self._socket, *self._clients):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                self.came += 1
                self._clients.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            self._talk(client)


def replying(body: bytes) -> Talk:
    """Return a function that replies to every request with the same bytes."""

    def talk(client: socket.socket) -> None:
        client.sendall(INFO)
        rest, inbox = b"", b"1"
        while data := client.recv(1 << 16):
            *rows, rest = (rest + data).split(b"\r\n")
            for row in rows:
                words = row.split(b" ")
                if words[0] == b"PING":
                    client.sendall(b"PONG\r\n")
                elif words[0] == b"SUB":
                    inbox = words[-1]
                elif words[0] in (b"PUB", b"HPUB") and len(words) > 3:
                    head = b" ".join((b"MSG", words[2], inbox, str(len(body)).encode()))
                    client.sendall(head + b"\r\n" + body + b"\r\n")

    return talk
