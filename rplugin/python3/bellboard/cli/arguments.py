"""Add a command to the argument parser: its help, its verbs, and the session that it is about."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

Args = argparse.Namespace
Subcommands = Any  # argparse has no public type for it
CommandRun = Callable[[Args], "int | None"]

FEW: Final = 5  # words to choose from that are all named


class Parser(argparse.ArgumentParser):
    """A parser that says which word a mistyped one may have meant."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from ..core.nearest import meant

            known = [*map(str, action.choices)]
            step = f"choose from {', '.join(known)}"
            if len(known) > FEW:
                step = meant(str(value), known, step)
            raise argparse.ArgumentError(action, f"invalid choice: '{value}'; {step}")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End with a usage error: these arguments are unknown."""
        from ..core.nearest import meant

        step = meant(unknown[0].partition("=")[0], self._option_string_actions, "")
        self.error(f"unrecognized arguments: {' '.join(unknown)}{step and f'; {step}'}")


class Help(argparse.HelpFormatter):
    """Help as wide as the terminal.

    argparse makes one for every argument that is added, and would load archives to learn the width.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


class WholeHelp(Help, argparse.RawDescriptionHelpFormatter):
    """Help whose description is printed as it is."""


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns) or 80
    except (OSError, ValueError):  # standard output is a file, or COLUMNS is no number
        return 80


def add(commands: Subcommands, name: str, run: CommandRun, text: str) -> argparse.ArgumentParser:
    """Add a command with one line of help."""
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        formatter_class=Help,
        allow_abbrev=False,  # a later option would change what a script runs
    )
    made.set_defaults(run=run, parser=made)
    return made


def filled(text: str) -> str:
    """Take a name; refuse an empty text.

    A shell passes an empty text for an unset variable, which must not mean the default.
    """
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def minutes(text: str) -> float:
    """Take a number of minutes; refuse a text that is no duration, such as `nan`."""
    return _duration(text, "minutes")


def seconds(text: str) -> float:
    """Take a number of seconds, likewise."""
    return _duration(text, "seconds")


def _duration(text: str, unit: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (given := float(text)) < math.inf:
            return given
    raise argparse.ArgumentTypeError(f"not a number of {unit}: {text}")


def add_session(made: argparse.ArgumentParser, **how: Any) -> None:
    """Add the argument that names the session of a command."""
    text = "session id, the start of one, or a name, project or worktree that only one session has"
    made.add_argument("session", metavar="SESSION", type=filled, **{"help": text, **how})


def add_verbs(commands: Subcommands, name: str, text: str) -> Subcommands:
    """Add a command that has verbs, and prints its help without one; return its verbs."""
    made = add(commands, name, lambda _: made.print_help(), text)
    return made.add_subparsers(metavar="VERB", title="verbs")
