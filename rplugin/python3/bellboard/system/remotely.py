"""The command that runs bellboard on another machine: words, quoted for whatever carries them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

#: For ssh, unless the command says otherwise.  What a user's settings add for their own terminals
#: stays theirs: a command, and ports, which only one connection can have.
PLAIN: Final = {"RemoteCommand": "none", "ClearAllForwardings": "yes"}
#: It never prompts, notices a dead connection within 20 s, lends nobody the keys of an agent, and a
#: second one to the same machine costs no login.
OPTIONS: Final = {
    "BatchMode": "yes",
    "ConnectTimeout": "5",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ForwardAgent": "no",
}
SHARED: Final = {"ControlMaster": "auto", "ControlPersist": "60"}
ROOM: Final = 50  # characters of the folder of a ControlPath: a socket's path has 107 at most
MISSING: Final = 127  # exit code: bellboard was not found there

#: Programs whose `exec` gives a terminal only if it is asked for.
CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl", "kubectl", "oc"})

#: Where a shell that is no login shell may not look, and where plugin managers build it.
FOLDERS: Final = (
    '"$HOME/.local/bin" "$HOME/bin" /usr/local/bin /opt/homebrew/bin'
    ' "$HOME"/.local/share/nvim/lazy/bellboard.nvim/.venv/bin'
    ' "$HOME"/.local/share/nvim/site/pack/*/*/bellboard.nvim/.venv/bin'
)
SCRIPT: Final = (
    f'for d in {FOLDERS}; do PATH="$PATH:$d"; done;'
    " command -v bellboard >/dev/null 2>&1 ||"
    ' { echo "bellboard is not installed there, or not on its PATH" >&2;'
    f" exit {MISSING}; }};"
    " exec %s"
)


def is_ssh(command: Sequence[str]) -> bool:
    """Return whether a command is ssh, which passes one string to a shell."""
    return bool(command) and PurePath(command[0]).name == "ssh"


def _with_terminal(machine: Sequence[str]) -> list[str]:
    """Return the command of a container with the option that gives it a terminal."""
    words = list(machine)
    at = words.index("exec") if "exec" in words else 0
    if CONTAINERS.intersection(PurePath(word).name for word in words[:at]):
        words.insert(at + 1, "-t")
    return words


def command_of(
    machine: Sequence[str], words: Sequence[str], folder: str | None = "", terminal: bool = False
) -> list[str]:
    """Return the command that runs `bellboard WORDS` on a machine.

    `folder`: a private one for the sockets of shared ssh connections; None: share none.
    `terminal`: for a program that draws, so ssh asks for a terminal there and may prompt here.  Its
    connection is its own, so that it can be told from others (`connections.py`) and outlives the
    link.
    """
    script = ["sh", "-c", SCRIPT % shlex.join(["bellboard", *words])]
    if not is_ssh(machine):
        return [*(_with_terminal(machine) if terminal else machine), *script]
    given = " ".join(machine)
    options = PLAIN if terminal else PLAIN | OPTIONS
    if terminal or folder is None:
        options = options | {"ControlPath": "none"}
    elif folder and len(folder) <= ROOM and "%" not in folder:
        options = options | {**SHARED, "ControlPath": f"{folder}/%C"}
    if "Control" in given or "-S" in machine:
        options = {key: x for key, x in options.items() if not key.startswith("Control")}
    added = [f"-o{key}={x}" for key, x in options.items() if key not in given]
    return [machine[0], "-t" if terminal else "-T", *added, *machine[1:], shlex.join(script)]


def sockets(home: str, runtime: str | None) -> str:
    """Return a short private folder for the sockets of ssh, which is created; "" if none is."""
    for folder in (f"{home}/links", f"{runtime}/bellboard" if runtime else ""):
        if folder and len(folder) <= ROOM:
            try:
                os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103
                status = os.stat(folder, follow_symlinks=False)  # noqa: PTH116
            except OSError:
                continue
            if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
                return folder
    return ""
