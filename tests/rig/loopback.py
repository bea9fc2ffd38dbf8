"""Proof that processes use loopback only: a proxy that is a trap, and a watch on sockets.

The trap catches what honours proxy settings, also when it is over at once; the watch sees any
socket of the processes and their descendants that lives for a few hundredths of a second.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket

import psutil

from rig import reaper
from rig.beside import Beside

EVERY = 0.03


class Watch(Beside):
    """While open: `outside` lists the addresses beyond loopback, `caught` what the trap held back.

    What is caught has reached nobody, but says that a switch is missing: it fails a test too,
    unless `old` says that the CLI is from before there were switches for everything.
    """

    def __init__(self) -> None:
        super().__init__(self._look, self._catch)
        self.outside: set[str] = set()
        self.caught: set[str] = set()
        self.old = False
        self.sockets = 0  # seen at all: a watch that saw none has proven nothing
        self._pids: set[int] = set()
        self._trap = socket.create_server(("127.0.0.1", 0))
        self._trap.settimeout(EVERY)

    @property
    def env(self) -> dict[str, str]:
        """Proxy settings that lead everything but loopback into the trap."""
        trap = f"http://127.0.0.1:{self._trap.getsockname()[1]}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        return {**dict.fromkeys([*names, *map(str.lower, names)], trap), **local}

    def follow(self, pid: int) -> None:
        """Watch this process and its descendants too."""
        self._pids.add(pid)

    def spoke_out(self) -> set[str]:
        """What a test fails for."""
        return self.outside | (set() if self.old else self.caught)

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            for process in reaper.family(list(self._pids)):
                with contextlib.suppress(psutil.Error):
                    self._judge(process)

    def _judge(self, process: psutil.Process) -> None:
        for connection in process.net_connections("inet"):
            self.sockets += 1
            if not connection.raddr:
                continue
            address = ipaddress.ip_address(connection.raddr.ip.partition("%")[0])
            real = getattr(address, "ipv4_mapped", None) or address
            if not real.is_loopback:
                self.outside.add(f"{process.name()}: {real}:{connection.raddr.port}")

    def _catch(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._trap.accept()
            except TimeoutError:
                continue
            with client:
                client.settimeout(1)
                with contextlib.suppress(OSError):
                    line = client.recv(4096).split(b"\r\n")[0].decode(errors="replace")
                    self.caught.add(line)
                    client.sendall(b"HTTP/1.1 403 loopback only\r\ncontent-length: 0\r\n\r\n")

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._trap.close()
