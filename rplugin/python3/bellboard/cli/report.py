"""Report the status of a script or a shell, as a program reports its own (OSC 7501)."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Final

from .arguments import Args, Subcommands, add
from .home import Problem, here, reason, refusals

STATES: Final = ("idle", "working", "done", "blocked", "error", "clear")
KINDS: Final = ("permission", "question", "auth")


def add_to(commands: Subcommands) -> None:
    made = add(
        commands, "report", report, "report the status of the script or shell that runs this"
    )
    made.add_argument("state", metavar="STATE", choices=STATES, help=", ".join(STATES))
    made.add_argument(
        "--kind", choices=KINDS, default="", help="what it asks, if blocked: " + ", ".join(KINDS)
    )
    made.add_argument(
        "--id", metavar="PATH", default="", help="report a part of its work, such as build/api"
    )
    made.add_argument("--app", metavar="NAME", default="", help="name of the program")
    made.add_argument(
        "--progress", metavar="PERCENT", type=int, default=-1, help="how far it is, 0 to 100"
    )
    made.add_argument("--title", metavar="TEXT", default="", help="what it is about")
    made.add_argument("--msg", metavar="TEXT", default="", help="what it does, asks or has done")


def report(args: Args) -> None:
    """Write the report to the terminal if that reads it, and to the spool.

    A Neovim passes on what its terminals read.
    """
    from ..core.program_status import Discarded, Report, body_of
    from ..core.text import line

    texts = (line(args.title), line(args.msg))
    said = Report(args.state, args.id, args.kind, args.app, args.progress, *texts)
    try:
        body = body_of(said)
    except Discarded as why:
        raise Problem(f"cannot report that: {why}") from None
    is_read = _is_written(body)
    if is_read and os.environ.get("NVIM"):
        return
    if not _is_submitted(body) and not is_read:
        raise Problem(
            "this terminal reads no reports, and no background process runs that would; "
            "start Neovim or `bellboard serve`"
        )


def _is_written(body: str) -> bool:
    """Write a report to the controlling terminal, if that reads reports."""
    import termios

    from ..core.program_status import sequence
    from ..screen.reports import reads

    with contextlib.suppress(OSError, termios.error):  # there is none, or it is gone
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        if reads(terminal, os.environ):
            os.write(terminal, sequence(body).encode())
            return True
    return False


def _is_submitted(body: str) -> bool:
    """Write a report to the spool, if a host reads that."""
    from ..storage.spool import Spool
    from ..witnesses.own_reports import described, said_by, sender_of

    spool = Spool(here())
    if not spool.hosts.alive():
        return False
    try:
        with refusals():
            spool.prepare()
        sender = described(sender_of(os.getpid()) or os.getpid())
        spool.write(said_by(sender, time.time(), body))
    except OSError as e:
        raise Problem(f"cannot write to {spool.new}: {reason(e, spool.new)}") from None
    return True
