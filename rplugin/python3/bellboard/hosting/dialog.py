"""What a terminal must show before a key is put into it: the CLI's own question, yes to no.

The numbers of the answers differ from one question to the next ("switch to auto mode" was once
the third, where "no" had been), so they are read off the screen, and nothing is sent without it.

Rules of this file: it does no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

READY: Final = 0.5  # seconds that the CLI takes to listen: it ignores keys for the first 0.15
DEPTH: Final = 40  # rows from the last one up in which a dialog must stand
BELOW: Final = 3  # rows that may stand below the answers: "Esc to cancel · Tab to amend"
ENOUGH: Final = 20  # letters of what is asked that must be on the screen

_OPTION = re.compile(r"[\s│|]*(\u276f|>)?\s*([1-9])\.\s+(\S.*?)[\s│|]*")  # with the CLI's arrow
_MARKS = re.compile(r"[\W_]+")


class Dialog(NamedTuple):
    """A question as a terminal shows it: its answers by their keys, and the rows they stand in."""

    answers: dict[str, str]
    rows: tuple[str, ...]
    screen: str

    def key(self, yes: bool) -> str:
        """What to press for a plain yes, or for a no."""
        plain = [key for key, text in self.answers.items() if _is_plain(text, yes)]
        return plain[0] if len(plain) == 1 else ""

    def is_about(self, detail: str) -> bool:
        """Whether what is asked stands there too: the command, or the name of the file."""
        wanted = detail.split("***")[0].rstrip("…")  # what was a secret, and what was cut
        if "/" in wanted and " " not in wanted and "://" not in wanted:
            wanted = wanted.rpartition("/")[2]
        return _MARKS.sub("", wanted)[:ENOUGH] in _MARKS.sub("", self.screen)


def dialog_of(screen: Sequence[str]) -> Dialog | None:
    """The question at the end of a screen; None if there is none that asks for a yes or a no."""
    rows = [row.rstrip() for row in screen]
    while rows and not rows[-1]:
        rows.pop()
    rows = rows[-DEPTH:]
    found = [(n, match) for n, row in enumerate(rows) if (match := _OPTION.fullmatch(row))]
    first = max((place for place, (_, m) in enumerate(found) if m[2] == "1"), default=None)
    if first is None:
        return None
    found = found[first:]
    answers = {m[2]: m[3] for _, m in found}
    in_order = [m[2] for _, m in found] == [str(n) for n in range(1, len(found) + 1)]
    chosen = sum(1 for _, m in found if m[1])
    below = [row for row in rows[found[-1][0] + 1 :] if row.strip(" │|╰─╯")]
    if not in_order or chosen != 1 or len(below) > BELOW:
        return None
    dialog = Dialog(answers, tuple(rows[found[0][0] : found[-1][0] + 1]), "\n".join(rows))
    return dialog if dialog.key(True) and dialog.key(False) else None


def _is_plain(text: str, yes: bool) -> bool:
    """A yes to this alone, and not to all that is alike; a no, with or without a word on it."""
    return text == "Yes" if yes else re.match(r"No\b", text) is not None
