"""What a terminal must show before a key is put into it: the CLI's own question, whole, yes to no.

The numbers of the answers differ from one question to the next ("switch to auto mode" was once
the third, where "no" had been), so they are read off the screen, and nothing is sent without it.
And all that is asked must stand there: the whole command, the very file.  A dialog that does not
show its beginning, or that is of another kind than those below, is answered by nobody from afar.

Rules of this file: it does no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from ....core.asked import digest, squeezed

READY: Final = 0.5  # seconds that the CLI takes to listen: it ignores keys for the first 0.15
DEPTH: Final = 60  # rows from the last one up in which a dialog must stand
BELOW: Final = 3  # rows that may stand below the answers: "Esc to cancel · Tab to amend"
WRAPPED: Final = 3  # rows that a question may take

_OPTION = re.compile(
    r"[\s│|]*(\u276f|>)?\s*([1-9])\.(?:\s+|(?=[A-Z]))(\S.*?)[\s│|]*"
)  # with the CLI's arrow
_TOP = re.compile(r"╭?─{8,}╮?")
_BOX = re.compile(r"│(.*?)│?")
_LINE = re.compile("╌{8,}")  # above and below what is to be done, from 2.1.2xx on
_COMMAND = re.compile(r"(Bash|Run) command\b")
_FILE = re.compile(r"(Create|Edit|Overwrite|Write) (file|notebook)\b")
_FETCH = re.compile(r"Fetch(  |$)")
_NO_DESCRIPTION: Final = "Run shell command"  # stands in the place of one
_AFTER_URL: Final = {True: "prompt:", False: "Claude wants to fetch content from "}


class Dialog(NamedTuple):
    """A question as a terminal shows it: its answers by their keys, and the rows they stand in."""

    answers: dict[str, str]
    rows: tuple[str, ...]
    asks: tuple[str, ...]  # the rows above the question, from the title on; empty: not all is there
    whole: tuple[str, ...]  # all rows as they stand on the screen, from its top to its answers

    def key(self, yes: bool) -> str:
        """What to press for a plain yes, or for a no."""
        plain = [key for key, text in self.answers.items() if _is_plain(text, yes)]
        return plain[0] if len(plain) == 1 else ""

    def is_about(self, detail: str, asked: str = "", folders: Collection[str] = ()) -> bool:
        """Whether it asks for that and nothing more; `asked` is its digest, if it is known.

        A file may be shown as seen from one of these folders.
        """
        if asked:
            return any(digest(text) == asked for text in _readings(self.asks, detail, folders))
        same = squeezed(detail)
        return any(squeezed(text) == same for text in _readings(self.asks, detail, folders))


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
    at, end = found[0][0], found[-1][0] + 1
    top = max((n for n, row in enumerate(rows[:at]) if _TOP.fullmatch(row)), default=None)
    asks = _asked(rows[top + 1 : at]) if top is not None else ()
    dialog = Dialog(answers, tuple(rows[at:end]), asks, tuple(rows[top or 0 : end]))
    return dialog if dialog.key(True) and dialog.key(False) else None


def _is_plain(text: str, yes: bool) -> bool:
    """A yes to this alone, and not to all that is alike; a no, with or without a word on it."""
    return text == "Yes" if yes else re.match(r"No\b", text) is not None


# ---------------------------------------------------------------- what it asks


def _asked(rows: Sequence[str]) -> tuple[str, ...]:
    """What a dialog shows between its top and its answers, without the question itself."""
    inside = [box[1] if (box := _BOX.fullmatch(row)) else row for row in rows]
    asks = [n for n, row in enumerate(inside) if row.strip().startswith("Do you want ")]
    if not asks or len([row for row in inside[asks[-1] :] if row.strip()]) > WRAPPED:
        return ()
    above = [row.rstrip() for row in inside[: asks[-1]]]
    while above and not above[-1]:
        above.pop()
    return tuple(above)


def _readings(asks: Sequence[str], detail: str, folders: Collection[str]) -> Iterator[str]:
    """The texts that a dialog may be asking about."""
    title = asks[0].strip() if asks else ""
    lines = [n for n, row in enumerate(asks) if _LINE.fullmatch(row)]
    above = asks[1 : lines[0]] if lines else asks[1:]
    between = asks[lines[0] + 1 : lines[1]] if len(lines) == 2 else ()
    if _COMMAND.match(title) and between:
        # The description ends where the command begins; a hint may stand above it.
        command = "\n".join(_unmarked(between))
        yield from (command + "\n".join(_unmarked(above[n:])) for n in range(len(above) + 1))
    elif _COMMAND.match(title) and not lines:
        # A note of the CLI's own stands below, and further to the left.
        notes = [n for n, row in enumerate(above) if re.match(r" ?\S", row)]
        text = squeezed("".join(above[: notes[0]] if notes else above))
        yield text
        yield text.removesuffix(squeezed(_NO_DESCRIPTION))
    elif _FILE.match(title):
        path = "".join(row.strip() for row in above)
        yield path
        yield from (_below(folder, path) for folder in folders if not path.startswith("/"))
        if not folders and detail.endswith(f"/{path}"):
            yield detail
    elif _FETCH.match(title):
        rows = [row.strip() for row in between or above]
        after = [n for n, row in enumerate(rows) if row.startswith(_AFTER_URL[bool(between)])]
        if after:
            yield "".join(rows[: after[-1]]).removeprefix("url:" if between else "")


def _unmarked(rows: Sequence[str]) -> list[str]:
    """Rows without the bar that stands before each, if there are several."""
    marked = [row.strip().startswith("│") for row in rows]
    return [row.strip().removeprefix("│") for row in rows] if all(marked) else [*rows]


def _below(folder: str, path: str) -> str:
    """Where a path leads from a folder, by its names alone."""
    names: list[str] = []
    for name in f"{folder}/{path}".split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)
