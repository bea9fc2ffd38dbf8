"""bellboard on the command line.

Exit codes: 0 done; 1 it could not be done, or the answer is no (standard error says why); 2 the
command was not understood.

Nothing heavy is imported before it is known to be needed: status bars run this every few seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from typing import TextIO

from ..core.version import VERSION
from . import (
    doctor,
    evidence,
    goto,
    history,
    hooks,
    hosts,
    sessions,
    tmux,
)
from .home import Problem, warn

DESCRIPTION = "Which coding-agent session is working, which is done, which is blocked on you."
EPILOG = """\
A session is named by its id, the beginning of it, or its project or name if only one has it.
State lives in $BELLBOARD_HOME, else $XDG_STATE_HOME/bellboard, else ~/.local/state/bellboard.
"""


def main(argv: list[str] | None = None) -> int:
    """Run a command; whatever happens, it is said in a line, and told by the exit code."""
    try:
        fill_streams()
        try:
            code = run(argv)
        except SystemExit as e:  # argparse: help, or what was not understood
            code = e.code if isinstance(e.code, int) else 2
        sys.stdout.flush()
    except Problem as e:
        code = complain(str(e))
    except BrokenPipeError:  # the reader has seen enough
        code = 0
        drop(sys.stdout)
    except OSError as e:
        drop(sys.stdout)
        code = complain(str(e))
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except Exception as e:
        code = complain(unforeseen(e))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            drop(stream)
            code = code or 1
    return code


def run(argv: list[str] | None) -> int:
    top = parser()
    args = top.parse_args(argv)
    if args.command is None:
        top.print_help()
        return 0
    return int(args.run(args) or 0)


def complain(text: str) -> int:
    warn(text)
    return 1


def fill_streams() -> None:
    """Where a stream is closed nothing else may take its number; no text is too odd to print."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def drop(stream: TextIO) -> None:
    """What could not be written; else Python tries once more, when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def unforeseen(error: Exception) -> str:
    """A fault of ours, in a line; where it happened is put into a file beside the state."""
    import tempfile
    import traceback

    from ..core.secrets import hide

    text = f"{error!r}"[:200]
    details = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="bellboard-", suffix=".txt", delete=False, errors="replace"
        ) as file:
            file.write(hide(details))
        return f"this is a fault of bellboard: {hide(text)}; please report it, with {file.name}"
    except OSError:
        return f"this is a fault of bellboard: {hide(text)}; please report it"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="bellboard",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"bellboard {VERSION}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for part in (sessions, goto, history, evidence, hosts, hooks, tmux, doctor):
        part.add_to(commands)
    return top
