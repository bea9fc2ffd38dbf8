"""The `completion` command: scripts for bash, zsh and fish.

`doc/completion.py` has made them from the argument parser.  They get the sessions from `bellboard
completion --sessions`.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from .adding import Args, Commands, add
from .home import OFTEN, opened, shown

SHELLS = ("bash", "zsh", "fish")
SAFE = re.compile(r"[\w.-]+", re.ASCII)  # bash would expand other characters


def add_to(commands: Commands) -> None:
    made = add(commands, "completion", print_completion, "print completion for a shell")
    made.usage = f"{made.prog} [-h] SHELL"  # the other form is for the scripts
    made.add_argument("shell", metavar="SHELL", nargs="?", choices=SHELLS, help="bash, zsh or fish")
    made.add_argument("--sessions", action="store_true", help=argparse.SUPPRESS)


def print_completion(args: Args) -> None:
    if args.sessions:
        print_sessions()
    elif args.shell is None:
        args.parser.error("give a shell: bash, zsh or fish")
    else:
        print(script(args.shell).read_text(encoding="utf-8"), end="")


def script(shell: str) -> Path:
    """Return the file that a shell reads."""
    return Path(__file__).with_name("shells") / f"bellboard.{shell}"


def print_sessions() -> None:
    """Print the id and a description of each session, except for ids that a shell would expand."""
    from ..core import words
    from ..core.visible import plain

    with opened() as clerk:
        for p in shown(clerk, OFTEN):
            if SAFE.fullmatch(p["session_id"]):
                print(p["session_id"], plain(f"{words.project(p)} {p['status']}"), sep="\t")
