"""The commands with their options and arguments, as the argument parser knows them.

Completion and the manual page are generated from this.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple


class Argument(NamedTuple):
    """An option (with its names) or a positional argument."""

    names: tuple[str, ...]
    takes: str  # the name of its value, or "" if it takes none
    choices: tuple[str, ...]
    text: str


class Command(NamedTuple):
    """A command; the program itself is the one with an empty path."""

    path: tuple[str, ...]
    text: str
    usage: str
    options: tuple[Argument, ...]
    positionals: tuple[Argument, ...]
    parts: tuple[Command, ...]


def command_of(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = (), text: str = ""
) -> Command:
    """Return a parser's command with everything below it."""
    options: list[Argument] = []
    positionals: list[Argument] = []
    parts: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            help_of = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, sub in action.choices.items():
                parts.append(command_of(sub, (*path, name), help_of.get(name, "")))
        elif action.help != argparse.SUPPRESS:
            (options if action.option_strings else positionals).append(_argument(action))
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    return Command(path, text, usage, tuple(options), tuple(positionals), tuple(parts))


def _argument(action: argparse.Action) -> Argument:
    takes = ""
    if action.nargs != 0:
        takes = str(action.metavar or action.dest).upper()
    choices = tuple(map(str, action.choices or ()))
    return Argument(tuple(action.option_strings), takes, choices, action.help or "")


def walked(command: Command) -> Iterator[Command]:
    """Yield a command and all below it."""
    yield command
    for part in command.parts:
        yield from walked(part)
