"""Another user of this machine, and the traps they can set."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket as sockets
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

UID: Final = 54321  # unused; another user needs no account
PROTOCOL: Final = 8  # of tmux, since 1.8
MSG_SHELL: Final = 209  # a client replaces itself by this program


class Stranger:
    """Has a folder in /tmp that others may read."""

    def __init__(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can be another user")
        self.folder = Path(tempfile.mkdtemp(prefix="bb-stranger-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.own(self.folder)
        self.booty = self.folder / "booty"  # what a victim's program writes here
        self.program = self.folder / "program"
        self.program.write_text(f"#!/bin/sh\nid -u >> {self.booty}\n")
        self.program.chmod(0o755)
        self.traps: list[Trap] = []

    def own(self, path: Path) -> None:
        """Give a path to this user."""
        os.chown(path, UID, UID, follow_symlinks=False)

    @contextlib.contextmanager
    def acting(self) -> Iterator[None]:
        """Act as this user within the block."""
        os.setegid(UID)
        os.seteuid(UID)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    def trap(self, path: Path) -> Trap:
        """Listen on a socket there."""
        self.traps.append(Trap(self, path))
        return self.traps[-1]

    @property
    def caught(self) -> str:
        """Return what a client did; empty if there was none."""
        came = sum(trap.came for trap in self.traps)
        ran = f"ran its program as {self.booty.read_text().split()}" if self.booty.exists() else ""
        return f"{came} connections {ran}" if came or ran else ""

    def close(self) -> None:
        for trap in self.traps:
            trap.close()
        shutil.rmtree(self.folder)


class Trap:
    """A socket that acts as a tmux server, and makes each client run a program."""

    def __init__(self, stranger: Stranger, path: Path) -> None:
        self.path, self.came = path, 0
        program = os.fsencode(stranger.program) + b"\0"
        head = struct.pack("=IHHII", MSG_SHELL, 16 + len(program), 0, PROTOCOL, 0)
        self._order = head + program
        self._socket = sockets.socket(sockets.AF_UNIX)
        self._socket.bind(str(path))
        stranger.own(path)
        with stranger.acting():  # the owner that others see is the one that listened
            self._socket.listen()
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                with client:
                    self.came += 1
                    with contextlib.suppress(OSError):
                        client.sendall(self._order)
                        client.recv(1 << 16)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(sockets.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
