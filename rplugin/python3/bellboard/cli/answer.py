"""The `answer` command: print what a session asks, in full, or answer it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .counter import Counter, Reply, asking, decoded
from .home import Args, Commands, Problem, add, opened, print_json

if TYPE_CHECKING:
    from ..core.published import Published

WORDS = (
    *("allow", "always", "deny", "stop", "edit", "choose"),
    *("approve", "approve-edits", "keep", "fill", "decline"),
)


def add_to(commands: Commands) -> None:
    made = add(commands, "answer", answer, "print what a session asks, or answer it")
    made.add_argument("session", nargs="?", help="default: the one that has waited longest")
    made.add_argument("choice", nargs="?", choices=WORDS, help="what to say; it lists what can be")
    made.add_argument("--message", default="", metavar="TEXT", help="what the agent is told")
    made.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="QUESTION=TEXT",
        help="an answer: an option, or your own words; again for several",
    )
    made.add_argument(
        "--field", action="append", default=[], metavar="NAME=VALUE", help="a field of a form"
    )
    made.add_argument("--command", dest="input", metavar="TEXT", help="with edit: run this instead")
    made.add_argument("--digest", metavar="DIGEST", help="refuse unless it asks exactly this")
    made.add_argument("--popup", action="store_true", help="ask on the whole terminal")
    made.add_argument(
        "--client", metavar="NAME", default="", help="with --popup: where to go there"
    )
    made.add_argument("--json", action="store_true", help="print JSON")


def answer(args: Args) -> int:
    if args.popup:
        from .popup import run

        return run(args)
    if args.session in WORDS and args.choice is None:
        raise Problem(f"name the session: bellboard answer SESSION {args.session}")
    with opened() as clerk:
        counter = Counter(clerk, f"a shell, process {os.getppid()}")
        session = asking(clerk, args.session)
        shown = counter.do("request", {"session_id": session["session_id"]})
        if not shown["ok"]:
            return tell(args, session, shown)
        request = shown["request"]
        if args.choice is None:
            return show(args, session, request)
        digest = args.digest or request["digest"]
        given = {"choice": args.choice, "message": args.message, **details(args, request)}
        about = {"session_id": session["session_id"], "request": request["id"], "digest": digest}
        return tell(args, session, counter.do("answer", {**about, **given}))


def details(args: Args, request: Mapping[str, Any]) -> Reply:
    """Return the answers and fields that the arguments give; an answer may be an option's start."""
    made: Reply = {"answers": {}, "content": {}}
    questions = {q["text"]: q for q in request.get("questions", ())}
    for given in args.answer:
        name, text = named(given, "--answer", questions)
        options = [o["label"] for o in questions[name].get("options", ())]
        if text not in options:
            made["answers"][name] = text
        elif isinstance(known := made["answers"].setdefault(name, []), list):
            known.append(text)
    fields = {f["name"]: f for f in request.get("fields", ())}
    for given in args.field:
        from ..screen.request import value_of

        name, text = named(given, "--field", fields)
        made["content"][name] = value_of(fields[name].get("type", "string"), text)
    if args.input is not None:
        made["input"] = args.input
    return made


def named(given: str, option: str, known: Mapping[str, object]) -> tuple[str, str]:
    """Split NAME=TEXT; the name may be left out if there is only one."""
    for name in known:
        if given.startswith(f"{name}="):
            return name, given[len(name) + 1 :]
    if len(known) == 1:
        return next(iter(known)), given
    asks = "; ".join(known) or "nothing of the kind"
    raise Problem(f"{option} {given}: it asks {asks}")


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


def tell(args: Args, session: Published, reply: Reply) -> int:
    """Print what came of an answer."""
    from ..core import words

    if args.json:
        print_json({"v": 1, **reply})
    elif not reply["ok"]:
        raise Problem(f"{words.project(session)} was not answered: {reply['why']}")
    elif reply["outcome"] != "taken":
        raise Problem(f"{words.project(session)}: {reply['text']}")
    else:
        print(f"{words.project(session)}: {reply['text']}")
    return 0 if reply["ok"] and reply.get("outcome", "taken") == "taken" else 1
