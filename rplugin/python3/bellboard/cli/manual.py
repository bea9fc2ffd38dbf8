"""The `man` command: a manual page, generated from the argument parser."""

from __future__ import annotations

from .adding import Args, Commands, add
from .syntax import Argument, Command, command_of, walked


def add_to(commands: Commands) -> None:
    add(commands, "man", print_page, "print the manual page: bellboard man | man -l -")


def print_page(args: Args) -> None:
    from ..core.version import VERSION

    top = args.whole()
    print(page(command_of(top), top.description, top.epilog, VERSION), end="")


def page(top: Command, about: str, after: str, version: str) -> str:
    """Return the page in roff."""
    lines = [
        f'.TH BELLBOARD 1 "" "bellboard {version}" "User Commands"',
        *(".SH NAME", f"bellboard \\- {_text(about[0].lower() + about[1:].rstrip('.'))}"),
        *(".SH SYNOPSIS", ".B bellboard", ".I COMMAND", "[options]"),
        *(".SH DESCRIPTION", *(_text(line) for line in after.splitlines())),
        ".SH COMMANDS",
    ]
    for command in walked(top):
        if command.path and not command.parts:
            lines += [".TP", f".B {_text(command.usage.removeprefix('bellboard '))}"]
            lines.append(_text(command.text[:1].upper() + command.text[1:] + "."))
            told = [each for each in (*command.positionals, *command.options) if each.text]
            for each in told:
                if "--help" not in each.names:
                    lines += [".RS", ".TP", f".B {_named(each)}", _text(each.text), ".RE"]
    lines += [".SH EXIT STATUS", "0: success. 1: failure, or the answer is no. 2: usage error."]
    return "\n".join(lines) + "\n"


def _named(argument: Argument) -> str:
    names = ", ".join(argument.names)
    return _text(f"{names} {argument.takes}".strip())


def _text(text: str) -> str:
    """Escape what roff would interpret."""
    made = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{made}" if made.startswith((".", "'")) else made
