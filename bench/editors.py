"""Start real Neovims for benchmarks, each in a terminal whose output is read."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import Any

import pynvim

ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def nvim_path(version: str = "0.12") -> str:
    """Return the Neovim that the tests use."""
    rig = [str(ROOT / "tests" / "rig" / "nvim"), version]
    return subprocess.run(rig, check=True, capture_output=True, text=True).stdout.strip()


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which every folder is below `home`."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_RUNTIME_DIR": str(home),
        "BELLBOARD_HOME": str(home / "bellboard"),
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
    }


class Editor:
    """A Neovim with a screen of 120 × 40, and an RPC client for it."""

    def __init__(self, home: Path, name: str, *args: str, version: str = "0.12") -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.socket = str(home / f"{name}.sock")
        command = [nvim_path(version), "--clean", "-n", "--listen", self.socket, *args]
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(home),
            start_new_session=True,
        )
        os.close(theirs)
        self._screen = ours
        threading.Thread(target=self._drain, daemon=True).start()
        deadline = time.monotonic() + 10
        while True:
            try:
                self.nvim = pynvim.attach("socket", path=self.socket)
                break
            except OSError:  # there is no socket yet, or nobody listens there yet
                if time.monotonic() > deadline or self.process.poll() is not None:
                    sys.exit(f"{command} did not start")
                time.sleep(0.01)
        while not self.nvim.eval("v:vim_did_enter"):  # it listens before it has read --cmd
            time.sleep(0.01)

    def lua(self, code: str, *args: Any) -> Any:
        return self.nvim.exec_lua(code, *args)

    def quit(self) -> float:
        """Quit, and return the seconds until the process has ended."""
        begin = time.perf_counter()
        with contextlib.suppress(Exception):
            self.nvim.command("qa!", async_=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        took = time.perf_counter() - begin
        with contextlib.suppress(Exception):
            self.nvim.close()
        return took

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            while os.read(self._screen, 1 << 16):
                pass
