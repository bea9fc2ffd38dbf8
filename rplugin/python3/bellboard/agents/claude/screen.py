"""Read from a terminal's screen whether the agent works, rests or asks, and its question.

This is the last resort, for a session whose status neither hooks nor its session file show.  A
screen ends in an input box or a dialog.  A dialog counts as the agent's question only if it has
one of the SHAPES: a menu that the user opened, or a dialog of a newer version, changes nothing.
The agent's output above them is never read, because it may contain anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ...core.text import line
from ..agent import DEPTH, Prompt, Seen
from ..inputs import HINTS

SPINNER: Final = 8  # rows above the box that may hold the spinner, its tip and its tasks


class DialogShape(NamedTuple):
    """A dialog of the agent: its question, the row that identifies it, the place of its text."""

    asks: str
    mark: re.Pattern[str]
    text: str = ""  # the text: after the mark, before it, the mark itself, or the answers
    tool: str = ""
    intro: str = ""  # words to put before the text
    rules: int = 0  # most rules between the mark and the selected answer


#: As seen in five versions from 2.1.76 to 2.1.332 (tests/data/captures); the first that matches.
SHAPES: Final = (
    DialogShape(
        "choice", re.compile(r"Accessing workspace:"), "after", intro="trust this folder? "
    ),
    DialogShape("choice", re.compile(r"Auto mode can.t check actions.*"), "mark"),
    DialogShape("choice", re.compile(r"Session paused"), "answers", intro="session paused: "),
    DialogShape("plan", re.compile(r"(?:Exit plan mode|Ready to code)\?"), tool="ExitPlanMode"),
    DialogShape("form", re.compile(r"MCP server .+ requests your input"), "after"),
    DialogShape(
        "question", re.compile(r"(?:[←→]\s+)?[☐☒✔]\s.*"), "after", "AskUserQuestion", rules=1
    ),
    DialogShape("permission", re.compile(r"Run a dynamic workflow\?"), "after", tool="Workflow"),
    DialogShape("permission", re.compile(r"Do you want to .*"), "before"),
)
#: Title of a permission dialog → the tool that asks; the next row shows the tool's input.
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

#: A rule, also that above an input box of which the beginning is not shown.
_RULE: Final = re.compile(r"[─▔━╭╮╰╯]{20,}|─+ ↑ \d+ more ─+")
_DOTS: Final = re.compile(r"[╌┄]{20,}")
_CHOSEN: Final = re.compile(r"❯ \S.*")
_ANSWER: Final = re.compile(r"(?:❯ )?\d+\. (.+)")
_INPUT: Final = re.compile(r"[❯>](?: .*)?")
_SPINS: Final = re.compile(r"[·✢✳✶✻✽*] \S[^…]*…(?: .*)?")
#: `✻ API error · retrying in 26s · attempt 7/10`, in older versions below the error.
_RETRIES: Final = re.compile(
    r"(?:[·✢✳✶✻✽*] (.+?) · r|R)etrying in [^·(]+[·(] ?attempt (\d+)/(\d+)\)?"
)
_WORKS: Final = re.compile(r"\besc to inter")  # a notice on its right may cut it
_EMPTY: Final = re.compile(r"\? for shortcuts")  # below the box while nothing is typed
_HINT: Final = re.compile(r'Try ".*"|Press up to edit queued messages')
_ASIDE: Final = re.compile(r"Tip: .*|This command requires approval")


def read_screen(rows: Sequence[str]) -> Seen | None:
    """Return the state on a screen; None if it has no known input box or dialog."""
    rows, rules = _bottom(rows)
    return _at_input(rows, rules) or _dialog(rows, rules)


def _bottom(screen: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the last rows of a screen, without frames, and which of them are rules."""
    rows = [row.replace("\xa0", " ").strip(" │|\t") for row in screen]
    while rows and not rows[-1]:
        rows.pop()
    rows = rows[-DEPTH:]
    return rows, [n for n, row in enumerate(rows) if _RULE.fullmatch(row)]


def read_prompt(screen: Sequence[str]) -> Prompt | None:
    """Return the input box at the end of a screen; in shell mode, it is no prompt."""
    rows, rules = _bottom(screen)
    if (box := _box(rows, rules)) is None:
        return None
    top, bottom = box
    text = "\n".join(rows[top + 1 : bottom])
    text = (text if "↑" in rows[top] else text[1:]).strip()
    is_hint = _HINT.fullmatch(text) or any(map(_EMPTY.search, rows[bottom + 1 :]))
    last = max(n for n, row in enumerate(screen) if row.strip(" │|\t\xa0"))
    shown = screen[last + 1 - len(rows) :][top : bottom + 1]
    return Prompt("" if is_hint else text, tuple(row.rstrip() for row in shown))


def _box(rows: list[str], rules: list[int]) -> tuple[int, int] | None:
    """Return the rules around the input at the end of a screen."""
    if len(rules) < 2:
        return None
    top, bottom = rules[-2:]
    is_end = sum(map(bool, rows[bottom + 1 :])) <= HINTS
    is_input = "↑" in rows[top] or _INPUT.fullmatch((rows[top + 1 : bottom] or [""])[0])
    return (top, bottom) if is_end and is_input else None


def _at_input(rows: list[str], rules: list[int]) -> Seen | None:
    """Read a screen that ends in an input box, between two rules."""
    if (box := _box(rows, rules)) is None:
        return None
    top, bottom = box
    hints, above = rows[bottom + 1 :], rows[max(0, top - SPINNER) : top]
    retries = [found for row in above if (found := _RETRIES.fullmatch(row))]
    spins = retries or any(map(_SPINS.fullmatch, above))
    if not (spins or any(map(_WORKS.search, hints))):
        return Seen("idle")
    return Seen("busy", detail=_attempt(*retries[-1].groups()) if retries else "")


def _attempt(why: str | None, attempt: str, most: str) -> str:
    """Return the number of the attempt, and the error if the screen names it."""
    return line(
        f"attempt {attempt} of {most}" + (f": {why}" if why not in (None, "API error") else "")
    )


def _dialog(rows: list[str], rules: list[int]) -> Seen | None:
    chosen = max((n for n, row in enumerate(rows) if _CHOSEN.fullmatch(row)), default=-1)
    for shape in SHAPES:
        marks = [n for n in range(chosen) if shape.mark.fullmatch(rows[n])]
        if marks and sum(marks[-1] < rule < chosen for rule in rules) <= shape.rules:
            start = max((rule for rule in rules if rule < marks[-1]), default=-1) + 1
            return _asked(shape, rows[start : marks[-1]], rows[marks[-1] :])
    return None


def _asked(shape: DialogShape, before: list[str], after: list[str]) -> Seen:
    tool, text = shape.tool, ""
    if shape.text == "mark":
        text = after[0]
    elif shape.text == "after":
        text = " ".join(_paragraph(after[1:]))
    elif shape.text == "answers":
        text = " · ".join(found[1] for row in after if (found := _ANSWER.fullmatch(row)))
    elif shape.text == "before":
        tool, text = _permission([row for row in before if row])
    return Seen("waiting", shape.asks, tool, line(shape.intro + text if text else ""))


def _permission(rows: list[str]) -> tuple[str, str]:
    """Return the tool and its input: the text between dotted rules, or the first row."""
    tool = TOOLS.get(rows[0], "") if rows else ""
    dots = [n for n, row in enumerate(rows) if _DOTS.fullmatch(row)]
    if tool == "Bash" and len(dots) > 1:
        return tool, " ".join(rows[dots[-2] + 1 : dots[-1]])
    said = [row for row in rows[1:] if not (_DOTS.fullmatch(row) or _ASIDE.fullmatch(row))]
    return tool, said[0] if said else ""


def _paragraph(rows: list[str]) -> list[str]:
    """Return the first rows with text, up to a blank row or an answer."""
    said: list[str] = []
    for row in rows:
        if _CHOSEN.fullmatch(row) or (said and not row):
            break
        said += [row] if row else []
    return said
