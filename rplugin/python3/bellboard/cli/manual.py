"""The `man` command: a manual page, generated from the argument parser."""

from __future__ import annotations

from .adding import Args, Commands, add
from .syntax import Argument, Command, command_of, walked


def add_to(commands: Commands) -> None:
    man = add(commands, "man", print_page, "print the manual page: bellboard man | man -l -")
    man.add_argument("--text", action="store_true", help="print it as text, to read without `man`")


def print_page(args: Args) -> None:
    from ..core.version import VERSION

    top = args.whole()
    made = page(command_of(top), top.description, top.epilog, VERSION)
    print(as_text(made) if args.text else made, end="")


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


def as_text(roff: str) -> str:
    """Return a page as text: terms are indented, and their descriptions more deeply."""
    import textwrap

    made: list[str] = []
    words: list[str] = []
    indent = depth = 0
    is_term = False

    def flush() -> None:
        if words:
            margin = " " * indent
            made.append(
                textwrap.fill(
                    " ".join(words),
                    78,
                    initial_indent=margin,
                    subsequent_indent=margin,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
            words.clear()

    for line in roff.splitlines():
        macro, text = line.split(" ", 1) if line.startswith(".") and " " in line else ("", line)
        text = text.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")
        if macro == ".TH":
            made.append(text.split('"')[3])
        elif macro == ".SH":
            flush()
            made += ["", text]
            indent, depth = 4, 0
        elif line in (".RS", ".RE"):
            flush()
            depth += 1 if line == ".RS" else -1
        elif line == ".TP":
            flush()
            is_term = True
            made += [""] * (depth == 0)
            indent = 4 + 4 * depth
        else:
            words.append(text)
            if is_term:
                flush()
                is_term, indent = False, indent + 4
    flush()
    return "\n".join(made) + "\n"


def _named(argument: Argument) -> str:
    names = ", ".join(argument.names)
    return _text(f"{names} {argument.takes}".strip())


def _text(text: str) -> str:
    """Escape what roff would interpret."""
    made = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{made}" if made.startswith((".", "'")) else made
