"""The `answer` command: print what a session asks, in full, or answer it.

A running host carries it out if there is one, as the command would need a while to load what a host
has loaded (`storage/orders.py`).  Both do the same: `given`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from .adding import Args, Commands, add, add_session
from .home import Problem, opened, print_json
from .runner import Runner, asking, decoded

if TYPE_CHECKING:
    from ..core.published import Published
    from ..hosting.beside import Reply
    from ..hosting.folding import Clerk
    from ..hosting.host import Host

    Do = Callable[[str, Mapping[str, Any]], Awaitable[Reply]]

WORDS = (
    *("allow", "always", "deny", "stop", "edit", "choose"),
    *("approve", "approve-edits", "keep", "fill", "decline"),
)


class Said(NamedTuple):
    """What a command prints, or why it fails, and its exit code."""

    code: int
    text: str = ""
    why: str = ""


def add_to(commands: Commands) -> None:
    add_options(add(commands, "answer", answer, "print what a session asks, or answer it"))


def add_options(made: argparse.ArgumentParser) -> None:
    add_session(made, nargs="?", help="default: the one that is waiting longest")
    made.add_argument(
        "choice",
        nargs="?",
        choices=WORDS,
        help="one of the choices that `bellboard answer SESSION` lists",
    )
    made.add_argument("--message", default="", metavar="TEXT", help="a message to the agent")
    made.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="QUESTION=TEXT",
        help="answer to a question: an option or your own text; repeatable",
    )
    made.add_argument(
        "--field",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of a form field; repeatable",
    )
    made.add_argument("--command", dest="input", metavar="TEXT", help="with edit: run this instead")
    made.add_argument(
        "--digest", metavar="DIGEST", help="fail unless the request still has this digest"
    )
    made.add_argument(
        "--popup", action="store_true", help="show requests full screen, such as in a tmux popup"
    )
    made.add_argument(
        "--client", metavar="NAME", default="", help="with --popup: the tmux client to jump in"
    )
    made.add_argument("--json", action="store_true", help="print JSON")


def answer(args: Args) -> int:
    if args.popup:
        from .popup import run

        return run(args)
    if args.session in WORDS and args.choice is None:
        raise Problem(f"name the session: bellboard answer SESSION {args.session}")
    if args.reply:
        return printed(args, Said(**json.loads(args.reply)))
    with opened() as clerk:
        from ..hosting.beside import at_once

        runner = Runner(clerk, f"a shell, process {os.getppid()}")

        async def do(what: str, about: Mapping[str, Any]) -> Reply:
            return runner.do(what, about)

        if args.choice is None:
            session = asking(clerk, args.session)
            wanted = {"session_id": session["session_id"], "digest": args.digest}
            shown = runner.do("request", {**wanted, "ways": True})
            if shown["ok"]:
                return show(args, session, shown["request"])
            return printed(args, said(args, session, shown))
        return printed(args, at_once(given(args, clerk, do)))


async def carry_out(host: Host, words: Sequence[str], by: str) -> bytes:
    """Carry out a command for a shell (`storage/orders.py`); decline what is not an answer."""
    made = Quiet(add_help=False)
    add_options(made)
    try:
        args = made.parse_args(words[1:])
    except Unfit:
        return b""
    host.session("")  # folds what is pending
    clerk = host.connection.clerk
    if args.popup or args.choice is None or clerk is None:
        return b""
    from ..hosting.errands import Errands

    try:
        outcome = await given(args, clerk, Errands(host, by).do)
    except Problem as problem:
        outcome = Said(1, why=str(problem))
    return json.dumps(outcome._asdict()).encode()


class Unfit(Exception):
    """The words are not an answer."""


class Quiet(argparse.ArgumentParser):
    """Prints nothing: the command itself reports what is wrong with its words."""

    def error(self, message: str) -> NoReturn:
        raise Unfit(message)


async def given(args: Args, clerk: Clerk, do: Do) -> Said:
    """Give an answer; return what to print."""
    is_read = bool(args.digest)
    session = asking(clerk, args.session, is_read)
    about = {"session_id": session["session_id"]}
    shown = await do("request", {**about, "digest": args.digest, "ways": False})
    if not shown["ok"]:
        if is_read:  # what was read has ended: log that, and say who was first
            what = {"choice": args.choice, "message": args.message, "digest": args.digest}
            shown = await do("answer", {**about, **what})
        return said(args, session, shown)
    request = shown["request"]
    what = {"choice": args.choice, "message": args.message, **details(args, request)}
    about |= {"request": request["id"], "digest": args.digest or request["digest"]}
    return said(args, session, await do("answer", {**about, **what}))


def details(args: Args, request: Mapping[str, Any]) -> Reply:
    """Return the answers and fields that the arguments give."""
    made: Reply = {"answers": {}, "content": {}}
    questions = {q["text"]: q for q in request.get("questions", ())}
    for given in args.answer:
        name, text = named(given, "--answer", questions)
        before = made["answers"].get(name, [])
        is_option = text in [o["label"] for o in questions[name].get("options", ())]
        if is_option and isinstance(before, list):
            made["answers"][name] = [*before, text]
        elif name in made["answers"]:
            raise Problem(
                f"--answer {given}: give options of the question, or one text of your own"
            )
        else:
            made["answers"][name] = text
    fields = {f["name"]: f for f in request.get("fields", ())}
    for given in args.field:
        from ..screen.request import value_of

        name, text = named(given, "--field", fields)
        made["content"][name] = value_of(fields[name].get("type", "string"), text)
    if args.input is not None:
        made["input"] = args.input
    return made


def named(given: str, option: str, known: Mapping[str, object]) -> tuple[str, str]:
    """Split NAME=TEXT; NAME is optional if only one is known."""
    for name in known:
        if given.startswith(f"{name}="):
            return name, given[len(name) + 1 :]
    if len(known) == 1:
        return next(iter(known)), given
    asks = "; ".join(known) or "for nothing that this option can answer"
    raise Problem(f"{option} {given}: the session asks {asks}")


def show(args: Args, session: Published, request: Reply) -> int:
    """Print a request, its choices and its digest."""
    if args.json:
        print_json({"v": 1, "request": request})
        return 0
    from ..core import words
    from ..screen import request as requests
    from ..screen import terminal

    out = terminal.console()
    terminal.write(out, requests.page(decoded(request), words.project(session), out.width))
    return 0


def said(args: Args, session: Published, reply: Reply) -> Said:
    """Return what to print about the outcome of an answer."""
    from ..core import words
    from ..core.lenient import encoded
    from ..core.visible import as_json

    is_taken = reply["ok"] and reply.get("outcome", "taken") == "taken"
    if args.json:
        return Said(int(not is_taken), as_json(encoded({"v": 1, **reply})))
    project = words.project(session)
    if not reply["ok"]:
        return Said(1, why=f"{project} was not answered: {reply['why']}")
    text = f"{project}: {reply['text']}"
    return Said(0, text) if is_taken else Said(1, why=text)


def printed(args: Args, outcome: Said) -> int:
    """Print an outcome; return the exit code."""
    if outcome.why:
        raise Problem(outcome.why)
    if args.json:
        sys.stdout.buffer.write(outcome.text.encode() + b"\n")
    else:
        print(outcome.text)
    return outcome.code
