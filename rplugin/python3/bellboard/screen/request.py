"""Show a whole request in a terminal, or the last turn of a session."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import accumulate, chain, repeat
from typing import Any, Final

from ..core import words
from ..core.last_turn import UNCLAIMED
from ..core.published import Published
from ..core.request import Choice, Part, Request
from ..core.text import marked, plain, visible, width
from .styled import StyledText

INDENT: Final = "  "
TURN: Final = "turn"  # the kind of a request that asks nothing
NEXT: Final = Choice("send", "Write to it", "message")  # what is said after it
CHANGED: Final = {"+": "green", "-": "red", "@": "cyan"}
#: Field that a choice needs → its option in a shell.
NEEDED: Final = {
    "message": "  --message TEXT",
    "message?": "  [--message TEXT]",
    "answers": "  --answer QUESTION=TEXT…",
    "content": "  --field NAME=VALUE…",
    "input": "  --command TEXT",
}
BOOLEANS: Final = {
    **dict.fromkeys(("y", "yes", "true", "1"), True),
    **dict.fromkeys(("n", "no", "false", "0"), False),
}
WIDE: Final = "\u1100"  # from here on, some terminals draw a character in two cells
MORE: Final = 3  # texts about unavailable choices; another machine may send any number
LONG: Final = 10_000  # lines of a change; to compare more may take minutes


def title_of(request: Request) -> str:
    return request.title or request.tool or request.kind


def asker(p: Published, request: Request) -> str:
    """Return the asker: machine, repository, branch, title and place, as in the editor."""
    w = words.worded(p)["words"]
    kind = plain(request.thread_type)
    subagent = f"subagent {kind}" if kind else "a subagent" if request.thread else ""
    parts = (
        f"on {words.machine(p)}" if words.machine(p) else "",
        w["repository"] or w["project"],
        w["branch"],
        w["title"],
        subagent,
        w["place"],
    )
    return " · ".join(part for part in parts if part)


def lines_of(
    request: Request, columns: int, keys: str = "", titled: bool = True
) -> list[StyledText]:
    """Return the lines of a request, without its choices.

    `keys` are for the options of the first question; `titled` includes the title.
    """
    lines = [*wrapped(title_of(request), columns, style="bold")] if titled else []
    for part in request.parts:
        lines += _part(part, columns)
    for question in request.questions:
        lines += wrapped(question.text, columns, style="bold")
        for option, mark in zip(question.options, chain(keys, repeat("·")), strict=False):
            lines += wrapped(f"{mark} {option.label}", columns, INDENT)
            lines += wrapped(option.description, columns, INDENT * 2, "dim")
        keys = ""
    for field in request.fields:
        needed = " (required)" if field.required else ""
        lines += wrapped(f"{field.title or field.name}: {field.type}{needed}", columns, INDENT)
        lines += wrapped(field.description, columns, INDENT * 2, "dim")
        for option in field.options:
            named = f"{option.label}  {option.description}".rstrip()
            lines += wrapped(f"· {named}", columns, INDENT * 2)
    return lines


def _part(part: Part, columns: int) -> Iterator[StyledText]:
    yield from wrapped(part.label, columns, style="dim")
    yield from wrapped(part.path, columns, INDENT, "bold")
    if part.kind == "diff":
        for row in _changes(part.old.splitlines(), part.new.splitlines()):
            yield from wrapped(row, columns, INDENT, CHANGED.get(row[:1], ""))
    else:
        empty = "(empty)" if part.kind == "command" else ""
        yield from wrapped(part.text or empty, columns, INDENT)
    for warning in part.warnings:
        yield from wrapped(f"! {warning}", columns, INDENT, "bold red")


def _changes(olds: list[str], news: list[str]) -> list[str]:
    """Return the rows of a diff."""
    if len(olds) + len(news) > LONG:
        return [*(f"-{row}" for row in olds), *(f"+{row}" for row in news)]
    return list(difflib.unified_diff(olds, news, lineterm="", n=3))[2:]


def wrapped(text: str, columns: int, indent: str = "", style: str = "") -> Iterator[StyledText]:
    """Yield the rows of a text, broken where a row is full; every blank is kept."""
    yield from broken(marked(text), columns, indent, style)


def broken(text: str, columns: int, indent: str = "", style: str = "") -> Iterator[StyledText]:
    """Yield the rows of a text without marks."""
    room = max(10, columns - len(indent) - 1)
    for line in text.split("\n") if text else ():
        for row in _rows(line.expandtabs(4), room):
            yield StyledText(indent + row, style)


def _rows(line: str, room: int) -> Iterator[str]:
    """Yield the rows of a line, broken after a blank, unless that leaves less than half a row."""
    start = 0
    while len(row := _head(line[start : start + room], room)) < len(line) - start:
        blank = row.rfind(" ") + 1
        if blank > len(row) / 2 and line[start + len(row)] != " ":
            row = row[:blank]
        yield row
        start += len(row)
    yield row


def _head(text: str, room: int) -> str:
    """Return as much of a text as every terminal draws in this many cells."""
    ends = accumulate(1 if c < WIDE else 2 for c in text)
    return text if text.isascii() else text[: sum(end <= room for end in ends)]


def value_of(kind: str, text: str) -> object:
    """Return the value of a field, or the text itself, which `check` then refuses."""
    if kind == "boolean":
        return BOOLEANS.get(text.lower(), text)
    for number in (int, float) if kind in ("number", "integer") else ():
        with suppress(ValueError):
            return number(text)
    return text


def page(request: Request, who: str, columns: int) -> list[StyledText]:
    """Return a request with its choices, to print."""
    lines = [StyledText(f"{who} asks:", "bold red"), *lines_of(request, columns), StyledText("")]
    width = max((len(c.id) for c in request.choices), default=0)
    for choice in request.choices:
        *head, last = wrapped(f"{choice.id.ljust(width)}  {choice.words}", columns, INDENT)
        lines += [*head, last.append(NEEDED.get(choice.needs, ""), "dim")]
        lines += wrapped(choice.note, columns, INDENT + " " * (width + 2), "dim")
    for more in request.more[:MORE]:
        lines += wrapped(more, columns, INDENT, "dim")
    if request.why:
        lines += wrapped(request.why, columns, INDENT, "yellow")
    if request.why and not request.choices:
        return lines
    sid = shlex.quote(marked(request.session_id))
    told = f"bellboard answer {sid} CHOICE --digest {shlex.quote(request.digest)}"
    return [*lines, StyledText(""), StyledText(told, "dim")]


# ---------------------------------------------------------------- the last turn of a session


def turn_request(turn: Mapping[str, Any], p: Published) -> Request:
    """Return a last turn as a request, whose only choice is the next prompt."""
    files = turn.get("files", ())
    parts = [Part("text", plain(turn.get("about")), turn["text"])]
    for unclaimed in (False, True):
        if some := [each for each in files if bool(each.get("unclaimed")) is unclaimed]:
            rows = (f"{plain(x['path'])}  {plain(x.get('words'))}".rstrip() for x in some)
            heading = UNCLAIMED if unclaimed else words.amount(len(some), "file")
            parts.append(Part("text", heading, "\n".join(rows)))
    sid, agent, since = p["session_id"], p.get("agent", ""), turn["since"]
    about = {"asked_at": since, "title": p["status"], "parts": tuple(parts)}
    more = (turn["note"],) if turn.get("note") else ()
    return Request("", sid, agent, TURN, "", **about, choices=(NEXT,), more=more)


def turn_lines(turn: Mapping[str, Any], who: str, now: float, columns: int) -> list[StyledText]:
    """Return a last turn, to print: its prompt, its reply as Markdown, the files that differ."""
    title, prompt = plain(turn["title"]), turn["prompt"]
    about = (title if title != plain(prompt) else "", plain(turn.get("about")))
    ago = "" if (age := words.age(turn["since"], now)) == "now" else f"{age} ago"
    lines = [StyledText(who, "bold")]
    lines += wrapped(" · ".join(filter(None, (*about, ago))), columns, style="dim")
    lines += [StyledText(""), *broken(visible(prompt), columns, "> ", "cyan"), StyledText("")]
    lines += broken(visible(turn["text"]), columns)
    files = turn.get("files", ())
    for unclaimed in (False, True):
        some = [each for each in files if bool(each.get("unclaimed")) is unclaimed]
        wide = min(max((width(each["path"]) for each in some), default=0), columns // 2)
        if some:
            heading = UNCLAIMED if unclaimed else words.amount(len(some), "file")
            lines += [StyledText(""), *wrapped(heading, columns, style="dim")]
        for each in some:
            name = plain(each["path"])
            row = f"{name}{' ' * max(wide - width(name), 0)}  {plain(each.get('words'))}"
            lines += wrapped(row.rstrip(), columns, INDENT)
    return [*lines, *wrapped(turn.get("note", ""), columns, style="yellow")]
