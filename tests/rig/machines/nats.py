"""Real NATS servers on free ports of loopback; Debian's package has the program."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from rig.waiting import eventually

SEARCHED = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))


def program() -> str:
    """Return the path of nats-server, or "" if it is not installed."""
    return shutil.which("nats-server", path=SEARCHED) or ""


class Server:
    """A server with JetStream in a folder of its own; it keeps its port when it is started again.

    `accounts`: what is configured about users; without it anybody may do anything.
    """

    def __init__(
        self, folder: Path, accounts: str = "", more: str = "", host: str = "127.0.0.1"
    ) -> None:
        self.folder, self.accounts, self.more, self.host = folder, accounts, more, host
        self.port = -1
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob("*.ports"):
            left.unlink()
        self.configure()
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program(), "-c", str(self.folder / "server.conf")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.port = int(eventually(self._said, "nats-server did not start").rpartition(":")[2])

    def configure(self) -> None:
        (self.folder / "server.conf").write_text(
            f"""host: {self.host}
port: {self.port}
ports_file_dir: "{self.folder}"
jetstream {{ store_dir: "{self.folder}/data", max_mem: 64MB, max_file: 1GB }}
{self.more}
{self.accounts}
"""
        )

    def reload(self, accounts: str) -> None:
        """Reload the configuration with other users."""
        self.accounts = accounts
        self.configure()
        self.signal(signal.SIGHUP)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def freeze(self) -> None:
        """Stop it where it is: its connections stay, and nothing answers."""
        self.signal(signal.SIGSTOP)
        eventually(lambda: psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)

    def kill(self) -> None:
        """Kill it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _said(self) -> str:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text(errors="replace")
        try:
            found = json.loads(next(iter(self.folder.glob("*.ports"))).read_text())
        except (StopIteration, ValueError):
            return ""
        return str((found.get("nats") or found.get("tls") or [""])[0])


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Yield a server that lets anybody do anything."""
    made = Server(folder)
    made.start()
    try:
        yield made
    finally:
        made.kill()
