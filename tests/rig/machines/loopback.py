"""Proof that processes use loopback only: a proxy that is a trap, and a watch on sockets.

The trap catches every connection of programs that use proxy settings.  The watch sees any socket of
the processes and their descendants that is open for a few hundredths of a second.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import time
from pathlib import Path

import psutil

from rig import reaper
from rig.beside import Beside

EVERY = 0.03
NEW = 0.5  # seconds in which a socket may not be connected yet
ANYWAY = 1.0  # the longest between two looks at where sockets lead


def sockets_of(process: psutil.Process) -> set[str]:
    """The sockets of a process, by number; `some` where the system does not list them."""
    found, folder = set(), f"/proc/{process.pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208, thirty times a second
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
        return {name for name in found if name.startswith("socket:")}
    return set() if Path("/proc/self/fd").exists() else {"some"}


def local_sockets() -> set[str]:
    """The sockets of this system that lead nowhere else, as far as it lists them."""
    with contextlib.suppress(OSError):
        rows = Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]
        return {f"socket:[{row.split()[6]}]" for row in rows}
    return set()


class Watch(Beside):
    """While open, `outside` lists addresses beyond loopback, and `caught` what the trap caught.

    A caught connection has reached nobody, but shows that a setting is missing, so it fails the
    test, unless the CLI is too `old` to have all settings.
    """

    def __init__(self) -> None:
        super().__init__(self._look, self._catch)
        self.outside: set[str] = set()
        self.caught: set[str] = set()
        self.old = False
        self.sockets = 0  # how many were seen: seeing none proves nothing
        self._pids: set[int] = set()
        self._trap = socket.create_server(("127.0.0.1", 0))
        self._trap.settimeout(EVERY)

    @property
    def env(self) -> dict[str, str]:
        """Return proxy settings that send everything but loopback to the trap."""
        trap = f"http://127.0.0.1:{self._trap.getsockname()[1]}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        return {**dict.fromkeys([*names, *map(str.lower, names)], trap), **local}

    def follow(self, pid: int) -> None:
        """Also watch this process and its descendants."""
        self._pids.add(pid)

    def spoke_out(self) -> set[str]:
        """Return the connections for which a test fails."""
        return self.outside | (set() if self.old else self.caught)

    def _look(self) -> None:
        """Look up where the new sockets of a process lead, and at intervals those of all.

        That takes milliseconds, and a CLI opens pairs of local sockets for every hook.
        """
        seen: dict[str, float] = {}  # since when
        local: set[str] = set()
        asked = 0.0
        while not self._over.wait(EVERY):
            now = time.monotonic()
            there = {process: sockets_of(process) for process in reaper.family(list(self._pids))}
            if any(sockets - seen.keys() for sockets in there.values()):
                local = local_sockets()
            seen = {n: seen.get(n, now) for sockets in there.values() for n in sockets}
            new = {n for n, since in seen.items() if now <= since + NEW} - local
            is_due = now >= asked + ANYWAY
            asked = now if is_due else asked
            for process, sockets in there.items():
                if sockets & new or (sockets and is_due):
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
