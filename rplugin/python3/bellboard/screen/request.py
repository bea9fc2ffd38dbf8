"""Show a whole request in a terminal."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator
from textwrap import wrap
from typing import Any, Final

from ..core.request import Part, Request
from ..core.visible import marked
from .styled import Text

INDENT: Final = "  "
CHANGED: Final = {"+": "green", "-": "red", "@": "cyan"}
#: What a choice needs → the option for it in a shell.
NEEDED: Final = {
    "message": "  --message TEXT",
    "message?": "  [--message TEXT]",
    "answers": "  --answer QUESTION=TEXT…",
    "content": "  --field NAME=VALUE…",
    "input": "  --command TEXT",
}
TRUE: Final = frozenset({"y", "yes", "true", "1"})


def lines_of(request: Request, columns: int) -> list[Text]:
    """Return all that a request asks, without its choices."""
    lines = [Text(request.title or request.tool or request.kind, "bold")]
    for part in request.parts:
        lines += _part(part, columns)
    for question in request.questions:
        lines += wrapped(question.text, columns, style="bold")
        for option in question.options:
            lines += wrapped(f"· {option.label}", columns, INDENT)
            lines += wrapped(option.description, columns, INDENT * 2, "dim")
    for field in request.fields:
        needed = " (required)" if field.required else ""
        lines += wrapped(f"{field.title or field.name}: {field.type}{needed}", columns, INDENT)
    return lines


def _part(part: Part, columns: int) -> Iterator[Text]:
    if part.label:
        yield Text(part.label, "dim")
    if part.path:
        yield from wrapped(part.path, columns, INDENT, "bold")
    if part.kind == "diff":
        olds, news = part.old.splitlines(), part.new.splitlines()
        for row in list(difflib.unified_diff(olds, news, lineterm="", n=3))[2:]:
            yield from wrapped(row, columns, INDENT, CHANGED.get(row[:1], ""))
    else:
        yield from wrapped(part.text, columns, INDENT)
    for warning in part.warnings:
        yield from wrapped(f"! {warning}", columns, INDENT, "bold red")


def wrapped(text: str, columns: int, indent: str = "", style: str = "") -> Iterator[Text]:
    """Yield the rows of a text, broken where a row is full; every blank is kept."""
    room = max(10, columns - len(indent) - 1)
    how: dict[str, Any] = {"drop_whitespace": False, "replace_whitespace": False}
    for line in marked(text).split("\n") if text else ():
        for row in wrap(line.expandtabs(4), room, break_on_hyphens=False, **how) or [""]:
            yield Text(indent + row, style)


def value_of(kind: str, text: str) -> object:
    """Return the value of a field, or the text itself, which `check` then refuses."""
    if kind == "boolean":
        return text.lower() in TRUE
    if kind in ("number", "integer"):
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text


def page(request: Request, who: str, columns: int) -> list[Text]:
    """Return a request with its choices, to print."""
    lines = [Text(f"{who} asks:", "bold red"), *lines_of(request, columns), Text("")]
    width = max((len(c.id) for c in request.choices), default=0)
    for choice in request.choices:
        needs = NEEDED.get(choice.needs, "")
        lines.append(Text(f"{INDENT}{choice.id.ljust(width)}  {choice.words}").append(needs, "dim"))
    if request.why:
        lines += wrapped(request.why, columns, INDENT, "yellow")
    sid = shlex.quote(marked(request.session_id))
    told = f"bellboard answer {sid} CHOICE --digest {request.digest}"
    return [*lines, Text(""), Text(told, "dim")]
