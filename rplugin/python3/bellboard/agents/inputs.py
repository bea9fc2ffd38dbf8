"""Read from the screen of a terminal what stands in the input of a CLI.

CLIs draw it in one of three forms: after a mark at the left edge, between two rules, or beside a
bar.  A dialog or a menu is no input, nor is a line for shell commands.  The agent's output above is
never read for a text, because it may contain anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ..core.text import head
from .agent import DEPTH, Prompt

HINTS: Final = 8  # rows that may follow an input
#: Keys of a dialog or a menu: `Press enter to confirm or esc to cancel`, `enter select · esc back`.
KEYS: Final = re.compile(
    r"(?<!esc )\b(?:enter|esc)(?:/tab)? (?:to )?"
    r"(?:accept|apply|back|cancel|close|confirm|continue|dismiss|go|insert|interrupt|open|return"
    r"|save|select|submit|toggle)\b"
    r"|\breverse-i-search:",
    re.IGNORECASE,
)
_SCROLLED: Final = re.compile(r" +[↑↓]$")  # at the right edge: it has more rows
_RULE: Final = re.compile("─{20,}|──.*─{8,}")  # the second has words in it
_UNSEEN: Final = "\u200b\xa0 \t"  # blanks around a text
_BAR, _BAR_END = "┃", re.compile("( *)╹▀{20,}")
_LIST: Final = re.compile(r"\S {3,}esc(?: *$| {3,}\S)")  # the title of a list over the conversation


def after_mark(
    screen: Sequence[str], mark: re.Pattern[str], hint: str, below: int
) -> Prompt | None:
    """Return the input that begins with the last `mark`; its rows are indented as the first.

    A blank row and so many others may be `below` it.  If it needs the whole screen, it shows its
    last rows, and nothing is.  A dialog looks alike; its last row names keys.
    """
    rows = last_rows(screen)
    starts = [(n, found.end()) for n, row in enumerate(rows) if (found := mark.match(f"{row} "))]
    if not starts or KEYS.search(rows[-1]):
        return None
    start, indent = starts[-1]
    shown = rows[start:]
    if "" in shown:
        end = len(shown) - 1 - shown[::-1].index("")
        if len(shown) - end - 1 > below:
            return None
        shown = shown[:end]
    if any(row[:indent].strip() for row in shown[1:]):
        return None  # an answer follows it
    return _prompt((_SCROLLED.sub("", row)[indent:] for row in shown), hint, shown)


def between_rules(screen: Sequence[str], mark: str, hint: str) -> Prompt | None:
    """Return the input between the last two rules of a screen, which begins with a `mark`."""
    rows = last_rows(screen)
    rules = [n for n, row in enumerate(rows) if _RULE.fullmatch(row)][-2:]
    if len(rules) < 2 or KEYS.search(rows[-1]):
        return None
    top, bottom = rules
    first, *more = rows[top + 1 : bottom] or [""]
    if not f"{first} ".startswith(mark) or sum(map(bool, rows[bottom + 1 :])) > HINTS:
        return None
    if KEYS.search(rows[bottom - 1]):
        return None  # a menu between rules
    more = [row.removeprefix(" " * len(mark)) for row in more]
    return _prompt([first[len(mark) :], *more], hint, rows[top : bottom + 1])


def beside_bar(screen: Sequence[str], agent: re.Pattern[str]) -> Prompt | None:
    """Return the input beside the last bar: a blank row, the text, a blank row, the `agent`.

    The bar ends in a row of blocks, which shows how wide the input is; beside it may be a sidebar.
    A list that takes the keys is drawn over the conversation, with `esc` at the end of its title.
    """
    rows = last_rows(screen)
    end = max((n for n, row in enumerate(rows) if _BAR_END.match(row)), default=0)
    found = _BAR_END.match(rows[end]) if end else None
    if found is None or any(map(_LIST.search, rows[:end])):
        return None
    edge, box = len(found[1]), [head(row, len(found[0])).rstrip() for row in rows[:end]]
    begin = end
    while begin and box[begin - 1][:edge].isspace() and box[begin - 1][edge:].startswith(_BAR):
        if box[begin - 1][edge + 1 :].endswith(_BAR):
            break  # what could complete the text, above it
        begin -= 1
    inside = [row[edge + 1 :].strip() for row in box[begin:]]
    if len(inside) < 4 or inside[0] or inside[-2] or not agent.fullmatch(inside[-1]):
        return None
    return _prompt(inside[1:-2], "", rows[begin:end])


def last_rows(screen: Sequence[str], most: int = DEPTH) -> list[str]:
    """Return the last rows of a screen, up to one that is not blank."""
    rows = [row.rstrip() for row in screen]
    while rows and not rows[-1]:
        rows.pop()
    return rows[-most:]


def _prompt(texts: Iterable[str], hint: str, shown: Sequence[str]) -> Prompt:
    text = "\n".join(text.rstrip(_UNSEEN) for text in texts).strip(_UNSEEN + "\n")
    return Prompt("" if text == hint else text, tuple(shown))
