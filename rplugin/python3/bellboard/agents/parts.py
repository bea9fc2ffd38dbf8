"""Make the parts of a request from a CLI's fields: in full, with hidden characters as marks.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.events import Origin, is_id
from ..core.request import Choice, Option, Part, Question, Request, digest_of
from ..core.text import ODD, marked, warnings
from ..core.untrusted import Facts, members, storable

MOST_LINES: Final = 10_000  # of a JSON value shown with indentation
DEEPEST: Final = 20  # levels of such a value
ALLOW: Final = Choice("allow", "Yes, this once")
STOP: Final = Choice("stop", "No, and stop the turn")
CHOOSE: Final = Choice("choose", "Answer", "answers")
IN_ITS_TERMINAL: Final = "this CLI takes no answers from outside; answer in its terminal"
UNREADABLE: Final = "the request cannot be read in full; answer in its terminal"
CUT: Final = "the request was too large to keep in full; answer in its terminal"
UNTOLD: Final = "the request does not say exactly what it would do; answer in its terminal"
ALIKE: Final = "its questions cannot be told apart; answer in its terminal"
UNDECODED: Final = "the request has text that cannot be decoded; answer in its terminal"

T = TypeVar("T")


class Offered(Struct):
    """An option of a question, as the CLIs name its fields."""

    label: str
    description: str = ""


def question(
    text: str, header: str, options: Sequence[Offered], many: bool = False, typed: bool = True
) -> Question:
    """Return a question as it is shown."""
    shown = tuple(Option(marked(o.label), marked(o.description)) for o in options)
    return Question(marked(text), marked(header), many, shown, typed)


def chosen(said: list[str] | str, options: Sequence[Offered]) -> list[str]:
    """Return an answer in the CLI's own labels, which may differ from the shown ones."""
    labels = {marked(o.label): o.label for o in options}
    return [said] if isinstance(said, str) else [labels[x] for x in said if x in labels]


def unshown(given: Facts, known: type[Struct]) -> tuple[Part, ...]:
    """Return the rest of a tool's input beside the known members, such as previews."""
    fields, of_option = {*known.__struct_fields__}, {*Offered.__struct_fields__}
    is_all = all(
        {*raw} <= fields and all({*option} <= of_option for option in raw.get("options") or ())
        for raw in given["questions"]
    )
    rest = {k: v for k, v in given.items() if not (is_all and k == "questions")}
    return (json_part(rest, "Also"),) if rest else ()


def title_of(questions: Sequence[Question]) -> str:
    return "Answer a question" if len(questions) == 1 else "Answer questions"


def part(kind: str, text: str, label: str = "", **more: str) -> Part:
    """Return a part with hidden characters shown as marks."""
    texts = {"text": text, **more}
    found = dict.fromkeys(w for given in texts.values() for w in warnings(given))
    found |= dict.fromkeys(at_end(more.get("old", ""), more.get("new", "")))
    shown = {name: marked(given) for name, given in texts.items()}
    return Part(kind, label, **shown, warnings=tuple(found))


def at_end(old: str, new: str) -> tuple[str, ...]:
    """Return in words whether a line break comes or goes at the end, which a diff does not show."""
    if not (old and new) or old.endswith("\n") == new.endswith("\n"):
        return ()
    done = "removed" if old.endswith("\n") else "added"
    return (f"a line break {done} at the end",)


class Input:
    """The members of a tool's input, each taken once, so that no member is left out."""

    def __init__(self, given: Facts) -> None:
        self.left: Facts = dict(given)

    def text(self, name: str) -> str:
        """Take a text; leave anything else."""
        return self.left.pop(name) if isinstance(self.left.get(name), str) else ""

    def flag(self, name: str) -> bool:
        """Take a boolean; leave anything else."""
        return isinstance(self.left.get(name), bool) and bool(self.left.pop(name))

    def rest(self, label: str = "Also") -> tuple[Part, ...]:
        return (json_part(self.left, label),) if self.left else ()


def json_part(value: object, label: str = "") -> Part:
    try:
        encoded = msgspec.json.encode(value)
    except (ValueError, RecursionError):  # lone surrogates, in a request that is not complete
        return part("json", repr(value), label)
    is_long = encoded.count(b",") > MOST_LINES or _is_deeper(value, DEEPEST)
    return part("json", msgspec.json.format(encoded, indent=0 if is_long else 2).decode(), label)


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether a value is nested too deeply to show with indentation."""
    if isinstance(value, Mapping):
        value = [*value.values()]
    return isinstance(value, list) and (not levels or any(_is_deeper(x, levels - 1) for x in value))


def readable(payload: bytes, truncated: bool) -> Facts:
    """Return the members of a payload; none if it cannot be decoded."""
    try:
        return members(payload, truncated)
    except ODD:
        return {}


def inexact(request: Request, truncated: bool) -> Request:
    """Return a request whose payload cannot be decoded exactly: only the terminal shows it all."""
    return replace(request, **unclear(CUT if truncated else UNDECODED))


def unclear(why: str) -> Facts:
    """Return the fields of a request that cannot be answered here."""
    return {"choices": (), "complete": False, "why": why}


def unanswerable(
    given: Facts,
    name: str,
    session_id: str,
    t: float,
    origin: Origin,
    kind: str,
    tool: str,
    title: str,
    parts: tuple[Part, ...],
) -> Request | None:
    """Return a request of a CLI that takes answers only in its terminal."""
    if not is_id(session_id):
        return None
    return Request(
        id=name,
        session_id=session_id,
        agent=origin.agent,
        kind=kind,
        digest=digest_of(name, origin.agent, origin.pid, storable(given)),
        pid=origin.pid or 0,
        tool=tool,
        asked_at=t,
        title=title,
        parts=parts,
        complete=False,
        why=IN_ITS_TERMINAL,
    )
