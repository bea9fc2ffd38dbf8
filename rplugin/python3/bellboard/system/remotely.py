"""Commands that lead to another machine: how one runs bellboard there, and where one leads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

#: For ssh, unless the command says otherwise: drop what a user's settings add for terminals: a
#: command, and forwarded ports, which only one connection can have.
PLAIN: Final = {"RemoteCommand": "none", "ClearAllForwardings": "yes"}
#: ssh never prompts, notices a dead connection within 20 s, and forwards neither an agent nor a
#: display, whose keys whoever has root there could read: a link lasts.  ssh prefers a -A, -X or -Y
#: of the command to these.  (With SHARED, a second connection to the same machine needs no login.)
OPTIONS: Final = {
    "BatchMode": "yes",
    "ConnectTimeout": "5",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ForwardAgent": "no",
    "ForwardX11": "no",
}
#: For a machine that was reached, but logs in slowly, perhaps because it is behind another one.
SLOW: Final = {"ConnectTimeout": "20"}
SHARED: Final = {"ControlMaster": "auto", "ControlPersist": "60"}
ROOM: Final = 50  # characters of the folder of a ControlPath: a socket's path has 107 at most
MISSING: Final = 127  # exit code: bellboard was not found there

#: Programs that run the command after their own words, which may be ssh.
RUNNERS: Final = frozenset(
    {"env", "nice", "ionice", "stdbuf", "setsid", "timeout", "sudo", "doas", "sshpass", "torsocks"}
    | {"proxychains", "proxychains4"}
)
TAILSCALE: Final = "tailscale"  # its ssh takes options of ssh only after the name of the machine
GCLOUD: Final = "gcloud"  # its ssh takes a command as an option, and options of ssh after --

#: Programs whose `exec` passes on standard input, or allocates a terminal, only if asked to.
CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl", "kubectl", "oc"})
PODS: Final = frozenset({"kubectl", "oc"})  # these take options anywhere before --
INTERACTIVE: Final = frozenset({"-i", "-it", "-ti", "--interactive"})

#: Programs that draw a terminal and pass on nothing else.
DRAWING: Final = frozenset({"mosh", "et"})
WSL: Final = frozenset({"wsl", "wsl.exe"})  # through a shell of its own, except with -e

#: Folders that a shell that is not a login shell may not search, or where plugin managers build.
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


def is_slow(why: str) -> bool:
    """Return whether ssh reached a machine, and gave up before it had logged in."""
    return "timed out" in why and "connect to host" not in why


def unfit(command: Sequence[str]) -> str:
    """Return why no feed can come through a command, or ""."""
    name = _name(command[0]) if command else ""
    if name in DRAWING:
        return f"{name} shows a terminal and carries no feed; use ssh, such as: ssh dev"
    if is_ssh(command) and _name(command[-1]) == "ssh":
        return "ssh needs the name of a machine, such as: ssh dev"
    if name in WSL and not {"-e", "--exec"}.intersection(command):
        return f"{name} needs -e as its last word, such as: {name} -d Debian -e"
    return ""


def is_ssh(command: Sequence[str]) -> bool:
    """Return whether a command ends in ssh, which passes one string to a shell."""
    names = [_name(word) for word in command]
    return "ssh" in names and names[0] in {"ssh", TAILSCALE, GCLOUD, *RUNNERS}


def command_of(
    machine: Sequence[str],
    words: Sequence[str],
    folder: str | None = "",
    terminal: bool = False,
    slow: bool = False,
) -> list[str]:
    """Return the command that runs `bellboard WORDS` on a machine.

    `folder`: a private one for the sockets of shared ssh connections; None: share none.
    `slow`: let ssh take longer to log in.
    `terminal`: for a program that draws, so ssh asks for a terminal there and may prompt here.  Its
    connection is its own, so that it can be told from others (`ssh.py`) and outlives the
    link.
    """
    script = ["sh", "-c", SCRIPT % shlex.join(["bellboard", *words])]
    if not is_ssh(machine):
        return [*_in_container(machine, terminal), *script]
    options = _options(machine, folder, terminal, SLOW if slow else {})
    return _through_ssh(machine, options, shlex.join(script))


def _through_ssh(machine: Sequence[str], options: list[str], script: str) -> list[str]:
    """Return the command of an ssh, with options where it takes them."""
    name = _name(machine[0])
    if name == GCLOUD:
        own, _, given = _split(machine, "--")
        return [*own, "--quiet", f"--command={script}", "--", *options, *given]
    at = [_name(word) for word in machine].index("ssh") + (2 if name == TAILSCALE else 1)
    return [*machine[:at], *options, *machine[at:], script]


def _options(
    machine: Sequence[str], folder: str | None, terminal: bool, more: Mapping[str, str]
) -> list[str]:
    """Return the options of ssh that a command does not have already."""
    given = " ".join(machine).lower()  # ssh ignores the case of an option's name
    options = PLAIN if terminal else {**PLAIN, **OPTIONS, **more}
    if terminal or folder is None:
        options = options | {"ControlPath": "none"}
    elif folder and len(folder) <= ROOM and "%" not in folder:
        options = options | {**SHARED, "ControlPath": f"{folder}/%C"}
    if "-S" in machine or any(key.lower() in given for key in (*SHARED, "ControlPath")):
        options = {key: x for key, x in options.items() if not key.startswith("Control")}
    added = [f"-o{key}={x}" for key, x in options.items() if key.lower() not in given]
    return ["-t" if terminal else "-T", *added]


def _in_container(machine: Sequence[str], terminal: bool) -> list[str]:
    """Return the command of a container with the options that it needs; others as they are."""
    before, exec_, after = _split(machine, "exec")
    programs = CONTAINERS.intersection(map(_name, before))
    if not (exec_ and programs):
        return list(machine)
    asked = [] if INTERACTIVE.intersection(after) else ["-i"]
    kept = ["-i" if word in ("-it", "-ti") else word for word in after]
    end = ["--"] if programs & PODS and "--" not in after else []
    return [*before, *exec_, *(["-t"] if terminal else []), *asked, *kept, *end]


def _split(words: Sequence[str], at: str) -> tuple[list[str], list[str], list[str]]:
    """Return the words before the first `at`, that word, and those after it."""
    index = words.index(at) if at in words else len(words)
    return list(words[:index]), list(words[index : index + 1]), list(words[index + 1 :])


def _name(word: str) -> str:
    return PurePath(word).name


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


# Programs that lead from a terminal to another machine or into a container.


#: Program → words before the name of where it leads.
LEADING: Final = {
    "ssh": (),
    "autossh": (),
    "et": (),
    "tailscale": ("ssh",),
    "tsh": ("ssh",),
    "gcloud": ("compute", "ssh"),
    "vagrant": ("ssh",),
    **dict.fromkeys(("docker", "podman", "nerdctl"), ("compose", "container", "exec", "run")),
    **dict.fromkeys(("kubectl", "oc"), ("exec", "attach", "run", "rsh")),
    **dict.fromkeys(("lxc", "incus"), ("exec", "shell")),
    **dict.fromkeys(("limactl", "multipass", "machinectl", "orb"), ("shell", "login")),
    **dict.fromkeys(("distrobox", "toolbox"), ("enter", "run")),
    **dict.fromkeys(("wsl", "wsl.exe"), ()),
    **dict.fromkeys(("bwrap", "systemd-nspawn", "nsenter", "chroot"), ()),
}
NAMELESS: Final = frozenset({"bwrap", "systemd-nspawn", "nsenter", "chroot"})  # a path, or nothing
SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
#: Options that take the next word, of ssh and of the others.
OF_SSH: Final = frozenset(f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw")
OF_OTHERS: Final = frozenset(
    (
        *("-c", "-e", "-f", "-n", "-p", "-u", "-w", "--container", "--context", "--env"),
        *("--env-file", "--name", "--namespace", "--project", "--user", "--workdir", "--zone"),
    )
)
LONGEST: Final = 40  # characters


def way(argv: Sequence[str]) -> str:
    """Return the program of a command that leads elsewhere, and where to; else ""."""
    names = [_name(word) for word in argv]
    at = next((n for n, name in enumerate(names) if name in LEADING), None)
    if at is None or (at and names[0] not in RUNNERS):
        return ""
    program = names[at]
    where = "" if program in NAMELESS else _where(program, argv[at + 1 :])
    return f"{program} {where}".strip()[:LONGEST]


def _where(program: str, words: Sequence[str]) -> str:
    """Return the first word that is no option, no value of one, and no command."""
    commands = LEADING[program]
    valued = OF_OTHERS if commands else OF_SSH
    if program.startswith("wsl"):
        return next((words[n + 1] for n, x in enumerate(words[:-1]) if x in ("-d", "-e")), "")
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in valued
        elif word not in commands:
            return word
    return ""
