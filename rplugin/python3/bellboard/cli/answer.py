"""The `answer` commands: print a request in full or answer it; let hooks wait for answers."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .arguments import Args, Subcommands, add, add_session, filled
from .goto import chosen
from .home import Ambiguous, Problem, opened, print_json, share, verify
from .runner import Runner, asking, asks, decoded

if TYPE_CHECKING:
    from ..core.published import Published
    from ..core.request import Reply


WORDS = (
    *("allow", "always", "folder", "edits", "both", "replace", "deny", "stop", "edit", "choose"),
    *("approve", "approve-edits", "keep", "fill", "decline"),
)
NUMBERED = re.compile(r"(?:always|folder|edits|replace)-[1-9]|offer-[0-9a-f]{8}")


def is_choice(word: str) -> bool:
    return word in WORDS or NUMBERED.fullmatch(word) is not None


def choice(word: str) -> str:
    """Take a choice; refuse another word."""
    if not is_choice(word):
        from ..core.nearest import meant

        step = meant(word, WORDS, "`bellboard answer SESSION` lists those of a session")
        raise argparse.ArgumentTypeError(f"{word!r} is no choice; {step}")
    return word


def add_to(commands: Subcommands) -> None:
    made = add(commands, "answer", answer, "print what a session asks, or answer it")
    add_session(made, nargs="?", help="default: the one that is waiting longest")
    made.add_argument(
        "choice",
        nargs="?",
        type=choice,
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
        "--digest",
        metavar="DIGEST",
        type=filled,
        help="fail unless the request still has this digest",
    )
    made.add_argument(
        "--popup", action="store_true", help="show requests full screen, such as in a tmux popup"
    )
    made.add_argument(
        "--all", action="store_true", help="with --popup: then show the replies of what is done"
    )
    made.add_argument(
        "--client", metavar="NAME", default="", help="with --popup: the tmux client to jump in"
    )
    made.add_argument("--json", action="store_true", help="print JSON")
    text = "turn waiting hooks on or off: with them, you can answer from anywhere"
    waits = add(commands, "answers", answers, text)
    text = "default: print the current setting"
    waits.add_argument("state", nargs="?", choices=("on", "off"), help=text)


def answer(args: Args) -> int:
    if args.popup:
        from .popup import answer_full_screen

        return answer_full_screen(args.session or "", args.client, args.all)
    if args.all:
        raise Problem("--all needs --popup; `bellboard show SESSION` prints one reply")
    try:
        return give(args)
    except Problem as e:
        if not args.json:
            raise
        print_json({"ok": False, "why": str(e)})
        return 1


def give(args: Args) -> int:
    if args.session and is_choice(args.session) and args.choice is None:
        raise Problem(f"name the session: bellboard answer SESSION {args.session}")
    with opened() as shared:
        if args.choice is None:  # an answer is checked again in any case
            verify(shared)
        runner = Runner(shared, f"a shell, process {os.getppid()}")
        is_read = bool(args.choice and args.digest)
        try:
            session = asking(shared, args.session, is_read)
        except Ambiguous:
            if args.choice is not None or args.json:
                raise
            session = chosen(shared, args.session, asks)
        about = {"session_id": session["session_id"]}
        wanted = {"digest": args.digest, "ways": args.choice is None}
        shown = runner.do("request", {**about, **wanted})
        if not shown["ok"]:
            if is_read:  # the request has ended: log the answer, and say who was first
                given = {"choice": args.choice, "message": args.message, "digest": args.digest}
                shown = runner.do("answer", {**about, **given})
            return report(args, session, shown)
        request = shown["request"]
        if args.choice is None:
            return show_request(args, session, request)
        digest = args.digest or request["digest"]
        given = {"choice": args.choice, "message": args.message, **details(args, request)}
        if lacks := lacking(given, request):
            from ..core import words

            raise Problem(f"{words.project(session)} was not answered: {lacks}")
        about |= {"request": request["id"], "digest": digest}
        return report(args, session, runner.do("answer", {**about, **given}))


def lacking(given: Mapping[str, Any], request: Reply) -> str:
    """Return the advice which option a choice still needs, or ""."""
    chosen = [c for c in request.get("choices", ()) if c["id"] == given["choice"]]
    needs = chosen[0].get("needs", "") if chosen else ""
    if needs not in ("message", "answers", "input") or given.get(needs):
        return ""
    from ..screen.request import NEEDED  # after a mistake only: it loads much

    asked = "; ".join(q["text"] for q in request.get("questions", ())) if needs == "answers" else ""
    return f"give {NEEDED[needs].strip()}{f', for: {asked}' if asked else ''}"


def details(args: Args, request: Mapping[str, Any]) -> Reply:
    """Return the answers and fields that the arguments give."""
    made: Reply = {"answers": {}, "content": {}}
    questions = {q["text"]: q for q in request.get("questions", ())}
    for given in args.answer:
        name, text = split_name(given, "--answer", questions)
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

        name, text = split_name(given, "--field", fields)
        made["content"][name] = value_of(fields[name].get("type", "string"), text)
    if args.input is not None:
        made["input"] = args.input
    return made


def split_name(given: str, option: str, known: Mapping[str, object]) -> tuple[str, str]:
    """Split NAME=TEXT at the longest known NAME; if only one is known, NAME is optional."""
    if names := [name for name in known if given.startswith(f"{name}=")]:
        name = max(names, key=len)
        return name, given[len(name) + 1 :]
    if len(known) == 1:
        return next(iter(known)), given
    asks = "; ".join(known) or "for nothing that this option can answer"
    raise Problem(f"{option} {given}: the session asks {asks}")


def show_request(args: Args, session: Published, request: Reply) -> int:
    """Print a request, its choices and its digest."""
    if args.json:
        print_json({"request": request})
        return 0
    from ..core import words
    from ..screen import request as requests
    from ..screen import terminal

    out = terminal.console()
    terminal.write(out, requests.page(decoded(request), words.project(session), out.width))
    return 0


def report(args: Args, session: Published, reply: Reply) -> int:
    """Print the outcome of an answer."""
    from ..core import words

    if args.json:
        print_json(reply)
    elif not reply["ok"]:
        raise Problem(f"{words.project(session)} was not answered: {reply['why']}")
    elif reply["outcome"] != "taken":
        raise Problem(f"{words.project(session)}: {reply['text']}")
    else:
        print(f"{words.project(session)}: {reply['text']}")
    return 0 if reply["ok"] and reply.get("outcome", "taken") == "taken" else 1


# ---------------------------------------------------------------- hooks that wait

ON = "answers on: hooks wait for an answer from here"
NO_HOOKS = "answers on: no hooks yet; `bellboard hooks install`"
OFF = "answers off: an answer is typed into the terminal"


def answers(args: Args) -> None:
    from ..hosting.hook_pipes import OPTION
    from .hooks import has_hooks

    with opened() as shared:
        is_on = args.state == "on" if args.state else shared.store.option(OPTION) is True
        if args.state:
            share(shared, OPTION, is_on)
            pipes = shared.spool.pipes
            for name in () if is_on else pipes.found():
                pipes.dismiss(name)
    print((ON if has_hooks() else NO_HOOKS) if is_on else OFF)
