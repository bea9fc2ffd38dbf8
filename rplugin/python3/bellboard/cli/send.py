"""Send a prompt to a session, or interrupt it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from .arguments import Args, Subcommands, add, add_session
from .home import Problem, find_session, opened, print_json, verify
from .runner import Runner, asks

if TYPE_CHECKING:
    from ..core.published import Published

LARGEST = 1 << 20  # characters to read; a host refuses far less


def add_to(commands: Subcommands) -> None:
    sends = add(commands, "send", send, "put a text into the prompt of a session")
    add_session(sends)
    text = "text; - or nothing: read it from standard input"
    sends.add_argument("text", metavar="TEXT", nargs="?", help=text)
    sends.add_argument("--submit", action="store_true", help="submit it, too")
    stops = add(commands, "interrupt", interrupt, "interrupt what a session does, as Esc would")
    add_session(stops)
    for made in (sends, stops):
        made.add_argument("--json", action="store_true", help="print JSON")


def send(args: Args) -> int:
    text = "-" if args.text is None else args.text
    if text == "-":
        if sys.stdin.isatty():
            raise Problem("give a text, or pipe one into this command")
        text = sys.stdin.read(LARGEST)
    return _do(args, "send", _rests, text=text, submit=args.submit)


def interrupt(args: Args) -> int:
    return _do(args, "interrupt", _works)


def _do(args: Args, what: str, makes_sense: Callable[[Published], bool], **given: object) -> int:
    """Have something done to a session; print what followed."""
    with opened() as shared:
        verify(shared)
        sid = find_session(shared, args.session, makes_sense=makes_sense)
        runner = Runner(shared, f"a shell, process {os.getppid()}")
        reply = runner.do(what, {"session_id": sid, **given})
    if args.json:
        print_json(reply)
    elif not reply["ok"]:
        raise Problem(f"{args.session}: {reply['why']}")
    elif reply["outcome"] == "nothing":
        raise Problem(f"{args.session}: {reply['text']}")
    else:
        print(f"{args.session}: {reply['text']}")
    return 0 if reply["ok"] and reply["outcome"] != "nothing" else 1


def _rests(p: Published) -> bool:
    return not asks(p)


def _works(p: Published) -> bool:
    return bool(p["status"] == "working")
