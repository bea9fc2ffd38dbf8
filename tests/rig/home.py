"""A home for one test: folders, and an environment that inherits nothing."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from rig.fetched import node

MEMORY = "/dev/shm"
ROOM = 2 << 30  # bytes that must be free there
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
BORROWED = ("tmux", "git", "node")  # linked into the home's bin if the system path lacks them


@dataclass(frozen=True)
class Home:
    """Isolated folders under one short path (a socket's path may have 107 bytes, 103 on macOS)."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def bellboard(self) -> Path:
        """BELLBOARD_HOME."""
        return self.root / "board"

    @property
    def claude(self) -> Path:
        """CLAUDE_CONFIG_DIR."""
        return self.root / "claude"

    @property
    def project(self) -> Path:
        """Return a folder to work in."""
        return self.root / "project"

    @property
    def tmp(self) -> Path:
        """TMPDIR."""
        return self.root / "tmp"

    @property
    def bin(self) -> Path:
        """Return the first folder on PATH."""
        return self.root / "bin"

    def shown(self) -> str:
        """The ends of what programs wrote to their standard error, for the report of a failure.

        Also of what hosts published, which tests keep in `*.told`.
        """
        files = sorted([*self.root.glob("*.stderr"), *self.root.glob("*.told")])
        texts = {path.name: path.read_text(errors="replace") for path in files}
        return "\n".join(f"{name}: {text[-4000:]}" for name, text in texts.items() if text)

    def file(self, name: str, text: str) -> Path:
        """Write a file in the project, creating its folders."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@functools.cache
def base() -> str:
    """Return the folder for homes, which has a short path.

    In memory if possible: SQLite waits for the disk whenever a database is created and closed, and
    the tests do that a thousand times.
    """
    if os.access(MEMORY, os.W_OK):
        disk = os.statvfs(MEMORY)
        if disk.f_bavail * disk.f_frsize > ROOM and not disk.f_flag & os.ST_NOEXEC:
            return MEMORY
    return "/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir()


def build() -> Home:
    """Make a home; `remove` it afterwards."""
    home = Home(Path(tempfile.mkdtemp(prefix="bb-", dir=base())).resolve())
    for path in (home.claude, home.project, home.tmp, home.bin):
        path.mkdir()
    named = {"CONFIG_HOME": "config", "DATA_HOME": "data", "STATE_HOME": "state"}
    named |= {"CACHE_HOME": "cache", "RUNTIME_DIR": "run"}
    for folder in named.values():
        (home.root / folder).mkdir(mode=0o700)
    remembered = home.root / "state" / "nvim" / "bellboard"
    remembered.mkdir(parents=True)
    for once in ("hooks-asked", "statusline-told"):
        (remembered / once).touch()  # not a new user's home; tests of the first start remove this
    searched = os.pathsep.join(SYSTEM_PATH)
    for tool in BORROWED:
        own = node.fetched() if tool == "node" else None
        if shutil.which(tool, path=searched) is None and (found := shutil.which(tool) or own):
            (home.bin / tool).symlink_to(found)
    # Not a symlink: a virtual environment's Python finds itself by the path it is called with.
    for name in ("python3", "python"):
        (home.bin / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (home.bin / name).chmod(0o755)
    # Old CLIs look for an update whatever their settings say, and npm would ask its registry.
    (home.bin / "npm").write_text("#!/bin/sh\nexit 1\n")
    (home.bin / "npm").chmod(0o755)
    home.env.update(
        {
            "HOME": str(home.root),
            "PATH": os.pathsep.join((str(home.bin), *SYSTEM_PATH)),
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "TMPDIR": str(home.tmp),
            "TMUX_TMPDIR": str(home.tmp),
            "BELLBOARD_HOME": str(home.bellboard),
            "CLAUDE_CONFIG_DIR": str(home.claude),
            **{f"XDG_{key}": str(home.root / folder) for key, folder in named.items()},
        }
    )
    return home


def remove(home: Home) -> None:
    """Remove the home, even if a dying process still writes there."""
    shutil.rmtree(home.root, ignore_errors=True)
