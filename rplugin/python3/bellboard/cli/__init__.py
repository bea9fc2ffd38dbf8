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

from .. import __version__
from . import (
    doctor,
    evidence,
    history,
    hooks,
    hosts,
    sessions,
    ways,
    wires,
)
from .home import Problem

DESCRIPTION = "Which coding-agent session is working, which is done, which is blocked on you."
EPILOG = """\
A session is named by its id, the beginning of it, or its project or name if only one has it.
State lives in $BELLBOARD_HOME, else $XDG_STATE_HOME/bellboard, else ~/.local/state/bellboard.
"""


def main(argv: list[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    top = parser()
    args = top.parse_args(argv)
    if args.command is None:
        top.print_help()
        return 0
    try:
        code = int(args.run(args) or 0)
        sys.stdout.flush()
    except Problem as e:
        try:
            sys.stdout.flush()
        except OSError:
            drop_output()
        return complain(str(e))
    except BrokenPipeError:  # the reader has seen enough
        drop_output()
        return 0
    except OSError as e:
        drop_output()
        return complain(str(e))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return code


def complain(text: str) -> int:
    print(f"bellboard: {text}", file=sys.stderr)
    return 1


def drop_output() -> None:
    """Else Python tries once more to write it, when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="bellboard",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"bellboard {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for part in (sessions, ways, history, evidence, hosts, hooks, wires, doctor):
        part.add_to(commands)
    return top
