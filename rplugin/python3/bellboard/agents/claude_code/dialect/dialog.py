"""Read a dialog from a terminal screen, before a key is typed into it.

The numbers of the answers vary ("switch to auto mode" once took the third place, where "no" had
been), so they are read from the screen.  The dialog must show everything that is asked: the whole
command or the exact file.  A dialog of another kind, or one whose start is not visible, cannot be
answered remotely.

This file does no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from ....core.asked import digest, squeezed

READY: Final = 0.5  # seconds until the CLI takes keys: it ignores them for the first 0.15
DEPTH: Final = 60  # rows from the bottom in which a dialog must be
BELOW: Final = 3  # rows allowed below the answers: "Esc to cancel · Tab to amend"
WRAPPED: Final = 3  # rows of a question

#: With the CLI's arrow, if it is the selected one.
_OPTION = re.compile(r"[\s│|]*(\u276f|>)?\s*([1-9])\.(?:\s+|(?=[A-Z]))(\S.*?)[\s│|]*")
_TOP = re.compile(r"╭?─{8,}╮?")
_BOX = re.compile(r"│(.*?)│?")
_LINE = re.compile("╌{8,}")  # above and below the request, from 2.1.2xx on
_COMMAND = re.compile(r"(Bash|Run) command\b")
_FILE = re.compile(r"(Create|Edit|Overwrite|Write) (file|notebook)\b")
_FETCH = re.compile(r"Fetch(  |$)")
_NO_DESCRIPTION: Final = "Run shell command"  # shown if there is no description
_AFTER_URL: Final = {True: "prompt:", False: "Claude wants to fetch content from "}


class Dialog(NamedTuple):
    """A question on a terminal: its answers by key, and its rows."""

    answers: dict[str, str]
    rows: tuple[str, ...]
    #: The rows above the question, from the title on; empty if not all are visible.
    asks: tuple[str, ...]
    whole: tuple[str, ...]  # all rows on the screen, from the top of the dialog to its answers

    def key(self, yes: bool) -> str:
        """Return the key for a plain yes or a no, or "" if there is not exactly one."""
        plain = [key for key, text in self.answers.items() if _is_plain(text, yes)]
        return plain[0] if len(plain) == 1 else ""

    def is_about(self, detail: str, asked: str = "", folders: Collection[str] = ()) -> bool:
        """Return whether it asks for exactly that; `asked` is its digest, if known.

        A file may be shown relative to one of the folders.
        """
        if asked:
            return any(digest(text) == asked for text in _readings(self.asks, detail, folders))
        same = squeezed(detail)
        return any(squeezed(text) == same for text in _readings(self.asks, detail, folders))


def dialog_of(screen: Sequence[str]) -> Dialog | None:
    """Return the yes-or-no question at the bottom of a screen, or None."""
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
    """Return whether a text is a yes to this request only, or any form of no."""
    return text == "Yes" if yes else re.match(r"No\b", text) is not None


# ---------------------------------------------------------------- the request


def _asked(rows: Sequence[str]) -> tuple[str, ...]:
    """Return the rows between the top and the question, or () if the question is not found."""
    inside = [box[1] if (box := _BOX.fullmatch(row)) else row for row in rows]
    asks = [n for n, row in enumerate(inside) if row.strip().startswith("Do you want ")]
    if not asks or len([row for row in inside[asks[-1] :] if row.strip()]) > WRAPPED:
        return ()
    above = [row.rstrip() for row in inside[: asks[-1]]]
    while above and not above[-1]:
        above.pop()
    return tuple(above)


def _readings(asks: Sequence[str], detail: str, folders: Collection[str]) -> Iterator[str]:
    """Yield the texts that a dialog may be asking about."""
    title = asks[0].strip() if asks else ""
    lines = [n for n, row in enumerate(asks) if _LINE.fullmatch(row)]
    above = asks[1 : lines[0]] if lines else asks[1:]
    between = asks[lines[0] + 1 : lines[1]] if len(lines) == 2 else ()
    if _COMMAND.match(title) and between:
        # The description ends where the command begins; there may be a hint above it.
        command = "\n".join(_unmarked(between))
        yield from (command + "\n".join(_unmarked(above[n:])) for n in range(len(above) + 1))
    elif _COMMAND.match(title) and not lines:
        # A note by the CLI may follow, indented less.
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
    """Return rows without their leading bar, if all have one."""
    marked = [row.strip().startswith("│") for row in rows]
    return [row.strip().removeprefix("│") for row in rows] if all(marked) else [*rows]


def _below(folder: str, path: str) -> str:
    """Join a folder and a relative path, without looking at the file system."""
    names: list[str] = []
    for name in f"{folder}/{path}".split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)
