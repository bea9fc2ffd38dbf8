"""The `bellboard` command line.

Exit codes: 0 success; 1 failure, or the answer is no (standard error says why); 2 usage error.
`wait` has two more.

Heavy modules are imported only where they are needed: status bars run this every few seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn, TextIO

from ..core.version import VERSION
from .arguments import Parser, WholeHelp
from .home import Problem, warn

DESCRIPTION = "Show which coding-agent sessions are working, done, or blocked on you."
EPILOG = """\
SESSION is a session id, the start of one, or a name, project or worktree that only one
session has.
Exit codes: 0 success, 1 failure or no, 2 usage error; `wait` has two more: `bellboard wait --help`.
State is kept in $BELLBOARD_HOME, or $XDG_STATE_HOME/bellboard, or ~/.local/state/bellboard.
"""
#: Module → its commands, as help lists them.  Only the module of the command that runs is imported.
PARTS: Final = {
    "sessions": ("list", "status"),
    "goto": ("goto", "stop"),
    "pick": ("pick",),
    "new": ("new",),
    "answer": ("answer", "answers"),
    "send": ("send", "interrupt"),
    "wait": ("wait",),
    "restore": ("restore",),
    "history": ("history", "explain", "rules", "record", "replay"),
    "edits": ("set", "label", "name", "park", "snooze", "forget"),
    "report": ("report",),
    "hosts": ("watch", "serve", "feed"),
    "machine": ("machine",),
    "fleet": ("fleet",),
    "hooks": ("hooks",),
    "tmux": ("tmux",),
    "doctor": ("doctor",),
    "uninstall": ("uninstall",),
    "shell": ("path", "completion"),
}


def program() -> NoReturn:
    """Run the command line of this process, and end it.

    Nothing is left to do then: threads are daemons, and finalising the interpreter takes as
    long as many commands do.
    """
    os._exit(main())


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code; print any failure as one line."""
    try:
        fill_streams()
        try:
            code = run(argv)
        except SystemExit as e:  # from argparse: help, or a usage error
            code = e.code if isinstance(e.code, int) else 2
        sys.stdout.flush()
    except Problem as e:
        code = complain(str(e))
    except BrokenPipeError:  # the reader has stopped reading
        code = 0
        drop(sys.stdout)
    except OSError as e:
        text = fault(e)
        drop(sys.stdout)
        code = complain(text)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except Exception as e:
        from ..system.missing_packages import unbuilt, unfit

        code = complain(unfit(e) or unbuilt(e) or internal_error(e))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            drop(stream)
            code = code or 1
    return code


def run(argv: list[str] | None) -> int:
    given = sys.argv[1:] if argv is None else argv
    top = parser(given[0] if given else "")
    args, unknown = top.parse_known_args(given)
    if unknown and getattr(args, "text", "") is None and not is_option(unknown[0]):
        args.text = unknown.pop(0)  # argparse finds it before all options only
    if unknown and "words" in args and given[0] == args.command:
        args.words[:0], unknown = unknown, []  # they came before the words, and are passed on, too
    if unknown:
        args.parser.refuse(unknown)
    if args.command is None:
        top.print_help()
        return 0
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # see `__main__.py`
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return int(args.run(args) or 0)


def is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


def complain(text: str) -> int:
    warn(text)
    return 1


def fill_streams() -> None:
    """Open closed standard streams, so that no file gets their numbers, and accept any text."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def fault(error: OSError) -> str:
    """Describe an error of the system in words; flush standard output to see if it is at fault."""
    said = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {said}"
    try:
        sys.stdout.flush()
    except OSError:
        return f"cannot write to standard output: {said}"
    return said


def drop(stream: TextIO) -> None:
    """Discard unwritten output; otherwise Python tries to write it again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def internal_error(error: Exception) -> str:
    """Describe an internal error in one line, and save its traceback to a temporary file.

    The same error has the same file: a status bar may run into it every few seconds, for days.
    """
    import hashlib
    import tempfile
    import traceback

    from ..core.secrets import hide
    from ..system.files import put

    text = f"{error!r}"[:200]
    where = "".join(traceback.format_tb(error.__traceback__))
    name = f"bellboard-{os.geteuid()}-{hashlib.blake2b(where.encode(), digest_size=4).hexdigest()}"
    details = "".join(traceback.format_exception(error))
    try:
        path = Path(tempfile.gettempdir(), f"{name}.txt")
        put(path, hide(details).encode("utf-8", "replace"))
        return f"internal error: {hide(text)}; please report it and attach {path}"
    except OSError:  # in /tmp, another user may have taken the name
        return f"internal error: {hide(text)}; please report it"


def parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of a command's module, or of all commands if no command has that name."""
    top = Parser(
        prog="bellboard", description=DESCRIPTION, epilog=EPILOG, formatter_class=WholeHelp
    )
    top.add_argument("--version", action="version", version=f"bellboard {VERSION}")
    commands = top.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", prog="bellboard"
    )
    top.set_defaults(whole=parser, parser=top)
    for part, names in PARTS.items():
        if command in names or not command:
            import_module(f".{part}", __name__).add_to(commands)
    return top if commands.choices else parser()
