"""The program in a shell: on its PATH, and completion of its commands."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from pathlib import Path

from ..system import files
from .arguments import Args, Subcommands, add
from .home import OFTEN, Problem, opened, reason, shown

#: Shell → its settings file.
PROFILES = {"bash": "~/.bashrc", "zsh": "~/.zshrc"}


def add_to(commands: Subcommands) -> None:
    path = add(commands, "path", link_program, "link this program into ~/.local/bin")
    path.add_argument("--remove", action="store_true", help="remove the link")
    made = add(commands, "completion", print_completion, "print completion for a shell")
    made.usage = f"{made.prog} [-h] SHELL"  # --sessions is for the scripts
    made.add_argument("shell", metavar="SHELL", nargs="?", choices=SHELLS, help="bash, zsh or fish")
    made.add_argument("--sessions", action="store_true", help=argparse.SUPPRESS)


def link_program(args: Args) -> None:
    place = linked()
    if args.remove:
        remove_link(place)
        return
    program = _program()
    if os.path.lexists(place) and not is_our_link(place):
        raise Problem(f"{place} exists and is not a link to bellboard; remove it first")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(program)
    except OSError as e:
        raise Problem(f"cannot link {place}: {reason(e, place)}") from None
    print(f"linked: {place}")
    if str(place.parent) not in os.environ.get("PATH", "").split(os.pathsep):
        print(f"{place.parent} is not on your PATH; {_advice(place.parent)}")


def _program() -> Path:
    """Return the program of this Python, or of the .venv that `:Bellboard build` makes."""
    built = files.shipped("emit").parents[1] / ".venv/bin/python"
    for python in (Path(sys.executable), built):
        program = python.with_name("bellboard")
        if program.is_file() and python.exists():
            return program
    raise Problem(
        f"{sys.executable} has no bellboard program; run `{shlex.join(files.program())}` "
        "instead, or unset the option python and run `:Bellboard build`"
    )


def linked() -> Path:
    """Return the place of the link."""
    try:
        return Path("~/.local/bin/bellboard").expanduser()
    except RuntimeError:
        raise Problem("the home directory is not known; set HOME") from None


def remove_link(place: Path) -> None:
    if not os.path.lexists(place):
        print(f"there is no {place}")
    elif not is_our_link(place):
        raise Problem(f"{place} is not a link to bellboard; not removed")
    else:
        place.unlink()
        print(f"removed: {place}")


def is_our_link(place: Path) -> bool:
    """Return whether a path links to the bellboard of any environment, even a deleted one."""
    return place.is_symlink() and place.readlink().parts[-2:] == ("bin", "bellboard")


def _advice(folder: Path) -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    if shell == "fish":
        return f"run: fish_add_path {folder}"
    return f'add to {PROFILES.get(shell, "~/.profile")}: export PATH="{folder}:$PATH"'


# ---------------------------------------------------------------- completion

#: Shells with a script from `doc/completion.py`, which gets the sessions from `--sessions`.
SHELLS = ("bash", "zsh", "fish")
SAFE = re.compile(r"[\w.-]+", re.ASCII)  # bash would expand other characters


def print_completion(args: Args) -> None:
    if args.sessions:
        print_sessions()
    elif args.shell is None:
        args.parser.error("give a shell: bash, zsh or fish")
    else:
        print(script(args.shell).read_text(encoding="utf-8"), end="")


def script(shell: str) -> Path:
    """Return the completion script of a shell."""
    return Path(__file__).with_name("shells") / f"bellboard.{shell}"


def print_sessions() -> None:
    """Print the id and a description of each session, except for ids that a shell would expand."""
    from ..core import words
    from ..core.text import plain

    with opened() as shared:
        for p in shown(shared, OFTEN):
            if SAFE.fullmatch(p["session_id"]):
                print(p["session_id"], plain(f"{words.project(p)} {p['status']}"), sep="\t")
