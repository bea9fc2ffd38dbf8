"""What the screen of an agent's terminal says: at work, at rest, or asking, and what.

The last resort, for a session whose status neither its hooks nor its own file tell.  A screen ends
in an input box or in a dialog.  A dialog counts as the agent's question only if it has one of the
SHAPES; a menu that the user opened, or a dialog of a version to come, says nothing, and what was
known stands.  What the agent has printed comes before both, and is never read: it may say anything.

Rules of this file: it does no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ....core.detail import line

DEPTH: Final = 48  # rows from the last one up: the largest dialog that is read
HINTS: Final = 8  # rows that may follow an input box
SPINNER: Final = 8  # rows before the box in which the spinner turns, above its tip or its tasks


class Seen(NamedTuple):
    """What a screen says, in the words of the CLI's own file."""

    says: str  # idle, busy or waiting
    asks: str = ""
    tool: str = ""
    detail: str = ""


class Shape(NamedTuple):
    """A dialog of the agent: the row by which it is known, what it asks, and where it says it."""

    asks: str
    mark: re.Pattern[str]
    text: str = ""  # the text follows the mark (after), is the mark itself (mark), or before it
    tool: str = ""
    intro: str = ""  # words before the text
    rules: int = 0  # so many rules may stand between the mark and the chosen answer


#: Each as seen on 2.1.76, 2.1.119, 2.1.328 and 2.1.330 (tests/captures); the first that fits.
SHAPES: Final = (
    Shape("choice", re.compile(r"Accessing workspace:"), "after", intro="trust this folder? "),
    Shape("choice", re.compile(r"Auto mode can.t check actions.*"), "mark"),
    Shape("plan", re.compile(r"(?:Exit plan mode|Ready to code)\?"), tool="ExitPlanMode"),
    Shape("form", re.compile(r"MCP server .+ requests your input"), "after"),
    Shape("question", re.compile(r"(?:[←→]\s+)?[☐☒✔]\s.*"), "after", "AskUserQuestion", rules=1),
    Shape("permission", re.compile(r"Do you want to .*"), "before"),
)
#: The title of a permission dialog → the tool that asks; what it does is the next row.
TOOLS: Final = {
    "Bash command": "Bash",
    "Edit file": "Edit",
    "Create file": "Write",
    "Overwrite file": "Write",
    "Write file": "Write",
    "Read file": "Read",
    "Fetch": "WebFetch",
    "Web search": "WebSearch",
}

_RULE: Final = re.compile(r"[─▔━╭╮╰╯]{20,}")
_DOTS: Final = re.compile(r"[╌┄]{20,}")
_CHOSEN: Final = re.compile(r"❯ \S.*")
_INPUT: Final = re.compile(r"[❯>](?: .*)?")
_SPINS: Final = re.compile(r"[·✢✳✶✻✽*] \S[^…]*…(?: .*)?")
_WORKS: Final = re.compile(r"\besc to inter")  # a notice beside it may cut it
_ASIDE: Final = re.compile(r"Tip: .*|This command requires approval")


def read(screen: Sequence[str]) -> Seen | None:
    """What a screen says; None if it shows nothing that is known to say it."""
    rows = [row.replace("\xa0", " ").strip(" │|\t") for row in screen]
    while rows and not rows[-1]:
        rows.pop()
    rows = rows[-DEPTH:]
    rules = [n for n, row in enumerate(rows) if _RULE.fullmatch(row)]
    return _at_input(rows, rules) or _dialog(rows, rules)


def _at_input(rows: list[str], rules: list[int]) -> Seen | None:
    """An input box stands at the end, between two rules."""
    if len(rules) < 2:
        return None
    top, bottom = rules[-2:]
    hints = rows[bottom + 1 :]
    if sum(map(bool, hints)) > HINTS or not _INPUT.fullmatch((rows[top + 1 : bottom] or [""])[0]):
        return None
    spins = any(_SPINS.fullmatch(row) for row in rows[max(0, top - SPINNER) : top])
    return Seen("busy" if spins or any(map(_WORKS.search, hints)) else "idle")


def _dialog(rows: list[str], rules: list[int]) -> Seen | None:
    chosen = max((n for n, row in enumerate(rows) if _CHOSEN.fullmatch(row)), default=-1)
    for shape in SHAPES:
        marks = [n for n in range(chosen) if shape.mark.fullmatch(rows[n])]
        if marks and sum(marks[-1] < rule < chosen for rule in rules) <= shape.rules:
            start = max((rule for rule in rules if rule < marks[-1]), default=-1) + 1
            return _asked(shape, rows[start : marks[-1]], rows[marks[-1] :])
    return None


def _asked(shape: Shape, before: list[str], after: list[str]) -> Seen:
    tool, text = shape.tool, ""
    if shape.text == "mark":
        text = after[0]
    elif shape.text == "after":
        text = " ".join(_paragraph(after[1:]))
    elif shape.text == "before":
        tool, text = _permission([row for row in before if row])
    return Seen("waiting", shape.asks, tool, line(shape.intro + text if text else ""))


def _permission(rows: list[str]) -> tuple[str, str]:
    """The tool, and what it is to do: between dotted rules if there are any, else the first row."""
    tool = TOOLS.get(rows[0], "") if rows else ""
    dots = [n for n, row in enumerate(rows) if _DOTS.fullmatch(row)]
    if tool == "Bash" and len(dots) > 1:
        return tool, " ".join(rows[dots[-2] + 1 : dots[-1]])
    said = [row for row in rows[1:] if not (_DOTS.fullmatch(row) or _ASIDE.fullmatch(row))]
    return tool, said[0] if said else ""


def _paragraph(rows: list[str]) -> list[str]:
    """The rows up to the first blank one or the first answer, without the blank ones before."""
    said: list[str] = []
    for row in rows:
        if _CHOSEN.fullmatch(row) or (said and not row):
            break
        said += [row] if row else []
    return said
