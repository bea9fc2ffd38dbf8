"""Which key to press next in a dialog of several parts: questions, and the fields of a form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ....core.request import Answer, Question, Request, squeezed
from ...dialect import Press
from .dialog import Option, options_in

DOWN, RIGHT, ENTER = "Down", "Right", "Enter"

ELSEWHERE: Final = "; go there to answer"
NOT_SHOWN: Final = "its terminal does not show the question" + ELSEWHERE
IN_PART: Final = "its terminal does not show the whole request" + ELSEWHERE
DIFFERENT: Final = "its terminal shows a different request" + ELSEWHERE
NOT_OFFERED: Final = "its dialog does not offer that" + ELSEWHERE
BEGUN: Final = "its dialog already contains other input" + ELSEWHERE
NOT_TYPED: Final = "this text cannot be typed into its dialog" + ELSEWHERE
ALL: Final = "answer every question: its terminal accepts nothing less"

OTHER: Final = re.compile(r"Type something\.?")
REVIEW: Final = squeezed("Review your answers")
READY: Final = squeezed("Ready to submit your answers?")
SUBMIT: Final = "Submit answers"
EMPTY: Final = frozenset({"Type something…", "not set"})

_RULE: Final = re.compile(r"\s*─{20,}")
_TABS: Final = re.compile(r"\s*(?:[←→]\s+)?[☐☒✔]\s.*")
_SERVER: Final = re.compile(r"\s*MCP server .(.*). requests your input")
_FIELD: Final = re.compile(
    r"\s*(?:(?P<arrow>❯)\s*)?(?:[*✔]\s*)?(?P<name>[^\s:*✔❯][^:]*): (?P<value>.+)"
)
_BUTTONS: Final = re.compile(r"(?:\s*(?P<accept>❯))?\s+Accept\s+(?:(?P<decline>❯)\s*)?Decline")


def write(shown: str, is_empty: bool, wanted: str, text: str, rows: tuple[str, ...]) -> Press:
    """Type a text into the chosen row, then send it, once the row shows exactly that."""
    if is_empty:
        return Press(text=text, rows=rows)
    if squeezed(shown) == squeezed(wanted):
        return Press(ENTER, rows=rows, last=True)
    return Press(why=BEGUN)


# ---------------------------------------------------------------- questions


def question(rows: Sequence[str], request: Request, answer: Answer) -> Press:
    """Answer the question on the page that is shown, or send the answers on the last page."""
    tabs = max((n for n, row in enumerate(rows) if _TABS.fullmatch(row)), default=0)
    if not (tabs and _RULE.fullmatch(rows[tabs - 1])):
        return Press(why=NOT_SHOWN)
    end = next((n for n in range(tabs, len(rows)) if _RULE.fullmatch(rows[n])), len(rows))
    body, shown = rows[tabs + 1 : end], tuple(rows[tabs - 1 :])
    options = options_in(body)
    if len(options) < 2:
        return Press(why=NOT_SHOWN)
    asks = squeezed("".join(row.strip().removeprefix("│") for row in body[: options[0].row]))
    if end == len(rows):
        return _review(asks, options, request, answer, shown)
    asked = next((q for q in request.questions if squeezed(q.text) == asks), None)
    if asked is None or not _offers(asked, options):
        return Press(why=DIFFERENT)
    wanted = answer.answers.get(asked.text)
    if not wanted:
        return Press(why=NOT_OFFERED if answer.choice != "choose" else ALL)
    is_last = len(request.questions) == 1 and not asked.many
    if isinstance(wanted, str):
        return _typed(asked, options[-1], wanted, shown, is_last)
    labels = [x.label for x in asked.options]
    if not {*wanted} <= {*labels}:  # an answer to another request
        return Press(why=NOT_OFFERED)
    if asked.many:
        wrong = [
            o.key
            for o, label in zip(options, labels, strict=False)
            if o.checked != (label in wanted)
        ]
        wrong += [options[-1].key] if options[-1].checked else []
        return Press(wrong[0] if wrong else RIGHT, rows=shown)
    return Press(options[labels.index(wanted[0])].key, rows=shown, last=is_last)


def _typed(
    asked: Question, other: Option, text: str, shown: tuple[str, ...], is_last: bool
) -> Press:
    if asked.many:
        return Press(why=NOT_TYPED)
    if not other.chosen:
        return Press(other.key, rows=shown)
    is_empty = OTHER.fullmatch(other.text) is not None
    made = write(other.whole, is_empty, text, text, shown)
    return made._replace(last=made.last and is_last)


def _offers(asked: Question, options: Sequence[Option]) -> bool:
    """Return whether the rows are the options of a question, and one for a text."""
    if len(options) != len(asked.options) + 1:
        return False
    if any(not o.key or (o.checked is not None) != asked.many for o in options):
        return False
    said = [squeezed(x.label + x.description) for x in asked.options]
    return [squeezed(o.whole) for o in options[:-1]] == said


def _review(
    asks: str, options: Sequence[Option], request: Request, answer: Answer, shown: tuple[str, ...]
) -> Press:
    """Send the answers if the last page shows exactly these."""
    submit = next((o.key for o in options if o.whole == SUBMIT), "")
    if not (submit and asks.startswith(REVIEW)):
        return Press(why=NOT_SHOWN)
    rest = asks.removeprefix(REVIEW).removesuffix(READY)
    heads = [squeezed(f"●{q.text}→") for q in request.questions]
    for n, (asked, head) in enumerate(zip(request.questions, heads, strict=True)):
        said, rest = rest.removeprefix(head), ""
        if n + 1 < len(heads):
            said, after, rest = said.partition(heads[n + 1])
            rest = after + rest
        if not _says(said, answer.answers.get(asked.text, [])):
            return Press(why=BEGUN)
    return Press(submit, rows=shown, last=True)


def _says(said: str, wanted: list[str] | str) -> bool:
    """Return whether the last page shows these labels, in whichever order they were chosen.

    It quotes a label with a comma.
    """
    labels = [wanted] if isinstance(wanted, str) else wanted
    for label in sorted(map(squeezed, labels), key=len, reverse=True):
        shown = next((text for text in (f'"{label}"', label) if text in said), None)
        if shown is None:
            return False
        said = said.replace(shown, "", 1)
    return bool(labels) and said == "," * (len(labels) - 1)


# ---------------------------------------------------------------- forms


def form(rows: Sequence[str], request: Request, answer: Answer) -> Press:
    """Fill in the chosen field, or move on to the next one or a button."""
    top = max((n for n, row in enumerate(rows) if _SERVER.fullmatch(row)), default=-1)
    end = next((n for n in range(max(top, 0), len(rows)) if _BUTTONS.fullmatch(rows[n])), -1)
    if min(top, end) < 0:
        return Press(why=NOT_SHOWN)
    server, buttons, shown = _SERVER.fullmatch(rows[top]), _BUTTONS.fullmatch(rows[end]), rows[top:]
    assert server and buttons
    found = [(n, m) for n in range(top, end) if (m := _FIELD.fullmatch(rows[n]))]
    first = found[0][0] if found else end
    said = "".join(part.text for part in request.parts if part.kind == "text")
    if server[1] != request.tool or squeezed("".join(rows[top + 1 : first])) != squeezed(said):
        return Press(why=DIFFERENT)
    if answer.choice == "decline":
        if buttons["decline"]:
            return Press(ENTER, rows=(*shown,), last=True)
        return Press(RIGHT if buttons["accept"] else DOWN, rows=(*shown,))
    if answer.choice != "fill" or any(f.type != "string" or f.options for f in request.fields):
        return Press(why=NOT_TYPED)
    named = [m["name"] for _, m in found]
    known = [(f.name, f.title) for f in request.fields]
    if len(named) != len(known) or any(n not in k for n, k in zip(named, known, strict=True)):
        return Press(why=DIFFERENT)
    wanted = [str(answer.content.get(f.name, "")) for f in request.fields]
    values = ["" if m["value"] in EMPTY else m["value"] for _, m in found]
    here = next((n for n, (_, m) in enumerate(found) if m["arrow"]), -1)
    if here >= 0 and not values[here] and wanted[here]:
        return Press(text=wanted[here], rows=(*shown,))
    if here >= 0 and values[here] == wanted[here]:
        return Press(DOWN, rows=(*shown,))
    is_done = bool(buttons["accept"]) and values == wanted
    return Press(ENTER, rows=(*shown,), last=True) if is_done else Press(why=BEGUN)
