"""A second user of this machine, and the traps they can set."""

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

UID: Final = 54321  # nobody's: to be another user takes no entry in any list
PROTOCOL: Final = 8  # of tmux, since 1.8
MSG_SHELL: Final = 209  # a client runs this program in its own place


class Stranger:
    """Has a folder in /tmp that others may look into, as a user's own folders there are."""

    def __init__(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can be another user")
        self.folder = Path(tempfile.mkdtemp(prefix="bb-stranger-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.own(self.folder)
        self.booty = self.folder / "booty"  # what a victim's program leaves here
        self.program = self.folder / "program"
        self.program.write_text(f"#!/bin/sh\nid -u >> {self.booty}\n")
        self.program.chmod(0o755)
        self.traps: list[Trap] = []

    def own(self, path: Path) -> None:
        """Have it belong to this user."""
        os.chown(path, UID, UID, follow_symlinks=False)

    @contextlib.contextmanager
    def acting(self) -> Iterator[None]:
        """Whatever is done in here is done by this user."""
        os.setegid(UID)
        os.seteuid(UID)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    def trap(self, path: Path) -> Trap:
        """Listen there."""
        self.traps.append(Trap(self, path))
        return self.traps[-1]

    @property
    def caught(self) -> str:
        """What was done by whoever came here; empty if nobody did."""
        came = sum(trap.came for trap in self.traps)
        ran = f"ran its program as {self.booty.read_text().split()}" if self.booty.exists() else ""
        return f"{came} connections {ran}" if came or ran else ""

    def close(self) -> None:
        for trap in self.traps:
            trap.close()
        shutil.rmtree(self.folder)


class Trap:
    """A socket that speaks as a tmux server does, and has each client run a program."""

    def __init__(self, stranger: Stranger, path: Path) -> None:
        self.path, self.came = path, 0
        program = os.fsencode(stranger.program) + b"\0"
        head = struct.pack("=IHHII", MSG_SHELL, 16 + len(program), 0, PROTOCOL, 0)
        self._order = head + program
        self._socket = sockets.socket(sockets.AF_UNIX)
        self._socket.bind(str(path))
        stranger.own(path)
        with stranger.acting():  # whom others see here is who listened
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
