"""A second user of this machine: sockets, folders, files and links that are traps."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path

from faults.fault import Fault, Kind, no_root
from faults.target import Fallen, Target

NOBODY = 65534
#: What an event may name → its header or field of the payload.
LURES = ("TMUX", "NVIM", "cwd", "transcript_path", "CLAUDE_CONFIG_DIR", "CLAUDE_JOB_DIR", "home")


class Trap:
    """A folder of another user in /tmp, with a socket that records who connects."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="bb-trap-", dir="/tmp"))
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.root / "sock"))
        self.socket.listen(8)
        self.socket.setblocking(False)
        git = self.root / ".git"
        (git / "objects").mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/stolen\n")
        (git / "config").write_text(f"[core]\n\tfsmonitor = touch {self.root}/ran\n")
        (self.root / "sessions").mkdir()
        (self.root / "t.jsonl").write_text('{"type":"custom-title","customTitle":"stolen"}\n')
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        self.root.chmod(0o755)
        (self.root / "sock").chmod(0o777)
        self.before = self._there()

    def sprung(self) -> str:
        """Return what was touched, or ""."""
        with contextlib.suppress(BlockingIOError):
            self.socket.accept()[0].close()
            return "somebody connected to the stranger's socket"
        after = self._there()
        return f"something was written for the stranger: {after}" if after != self.before else ""

    def _there(self) -> list[tuple[str, int]]:
        found = [(path, path.lstat()) for path in self.root.rglob("*")]
        return sorted((str(p), s.st_size) for p, s in found if not stat.S_ISDIR(s.st_mode))

    def close(self) -> None:
        """Remove it."""
        self.socket.close()
        shutil.rmtree(self.root, ignore_errors=True)


def stranger(lure: str, pid: str) -> Fault:
    """An event that names a stranger's files: none of them is run, read or written."""
    traps: list[Trap] = []

    def do(target: Target) -> None:
        trap = Trap()
        traps.append(trap)
        target.undone.callback(trap.close)
        if lure == "home":
            with contextlib.suppress(FileExistsError):
                (target.board / "hosts" / "trap").symlink_to(trap.root)
                (target.board / "spool" / "bad" / "trap").symlink_to(trap.root)
        values = {"TMUX": f"{trap.root}/sock,1,0", "NVIM": f"{trap.root}/sock"}
        values |= dict.fromkeys(("CLAUDE_CONFIG_DIR", "CLAUDE_JOB_DIR"), str(trap.root))
        payload = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": "/srv"}
        if lure in ("cwd", "transcript_path"):
            payload[lure] = str(trap.root) if lure == "cwd" else f"{trap.root}/t.jsonl"
        head = f"agent=claude\0event=UserPromptSubmit\0pid={pid}\0TMUX_PANE=%0\0"
        head += f"{lure}={values[lure]}\0\0" if lure in values else "\0"
        head = head.replace("PID", str(target.sleeper()))
        target.put(f"bellboard 1\0{head}{json.dumps(payload)}".encode())

    def undo(target: Target) -> None:
        for path in (target.board / "hosts/trap", target.board / "spool/bad/trap"):
            path.unlink(missing_ok=True)
        while traps:
            trap = traps.pop()
            sprung = trap.sprung()
            trap.close()
            if sprung:
                raise Fallen(sprung)

    return Fault(f"{lure} with pid {pid}", do, undo)


EACH = itertools.product(LURES, ("0", "1", "PID"))
KINDS = (
    Kind(
        "stranger",
        tuple(itertools.starmap(stranger, EACH)),
        batch=len(LURES),
        lacks=no_root,
        settle=2.5,
    ),
)
