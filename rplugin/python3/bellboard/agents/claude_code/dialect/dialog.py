"""Read a dialog from a terminal screen, before a key is typed into it.

The numbers of the answers vary ("switch to auto mode" once took the third place, where "no" had
been), so they are read from the screen.  The dialog must show everything that is asked: the whole
command or the exact file.  A dialog of another kind, or one whose start is not visible, cannot be
answered remotely.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from ....core.request import shown_digest, squeezed

DEPTH: Final = 60  # rows from the bottom in which a dialog must be
BELOW: Final = 3  # rows allowed below the answers: "Esc to cancel · Tab to amend"
WRAPPED: Final = 3  # rows of a question

#: With the CLI's arrow, if it is the selected one; a box, if several can be chosen; a text.
_OPTION = re.compile(
    r"[\s│|]*(?:(?P<arrow>\u276f|>)\s*)?(?P<key>[1-9])\.(?:\s+|(?=[A-Z]))"
    r"(?:\[(?P<box>[ ✔])\]\s+)?(?P<text>\S(?:.*[^\s│|])?)[\s│|]*"
)
_PLAIN = re.compile(r"(?:\s*(?P<arrow>\u276f))?\s+(?P<text>Yes|No)")  # in auto mode
_TOP = re.compile(r"╭?─{8,}╮?")
_BOX = re.compile(r"│(.*?)│?")
_LINE = re.compile("╌{8,}")  # above and below the request, from 2.1.2xx on
_COMMAND = re.compile(r"(Bash|Run) command\b")
_FILE = re.compile(r"(Create|Edit|Overwrite|Write) (file|notebook)\b")
_FETCH = re.compile(r"Fetch(  |$)")
_NO_DESCRIPTION: Final = "Run shell command"  # shown if there is no description
_AFTER_URL: Final = {True: "prompt:", False: "Claude wants to fetch content from "}


class Option(NamedTuple):
    """An answer that a dialog offers."""

    key: str  # its number; empty if it has none, as in auto mode
    text: str  # of its first row
    whole: str  # of all its rows
    chosen: bool  # has the CLI's arrow
    checked: bool | None  # None: it has no box
    row: int


class Dialog(NamedTuple):
    """A question on a terminal: its answers, and its rows."""

    options: tuple[Option, ...]
    #: The rows above the question, from the title on; empty if not all are visible.
    above: tuple[str, ...]
    below: tuple[str, ...]
    whole: tuple[str, ...]  # all rows on the screen, from the top of the dialog to its end

    def is_about(self, detail: str, digest: str = "", folders: Collection[str] = ()) -> bool:
        """Return whether it asks for exactly that; `digest` is its `shown_digest`, if known.

        A file may be shown relative to one of the folders.
        """
        readings = _readings(self.above, detail, folders)
        if digest:
            return any(shown_digest(text) == digest for text in readings)
        wanted = squeezed(detail)
        return any(squeezed(text) == wanted for text in readings)


def dialog_of(screen: Sequence[str]) -> Dialog | None:
    """Return the yes-or-no question at the bottom of a screen, or None."""
    rows = bottom_of(screen)
    options = options_in(rows)
    if len(options) < 2 or sum(option.chosen for option in options) != 1:
        return None
    at, end = options[0].row, options[-1].row + 1
    below = tuple(row for row in rows[end:] if row.strip(" │|╰─╯"))
    if len(below) > BELOW:
        return None
    top = max((n for n, row in enumerate(rows[:at]) if _TOP.fullmatch(row)), default=None)
    above = _above(rows[top + 1 : at]) if top is not None else ()
    return Dialog(options, above, below, tuple(rows[top or 0 :]))


def bottom_of(screen: Sequence[str]) -> list[str]:
    """Return the rows that a dialog can be in, without the blanks around them."""
    rows = [row.rstrip() for row in screen]
    while rows and not rows[-1]:
        rows.pop()
    return rows[-DEPTH:]


def options_in(rows: Sequence[str]) -> tuple[Option, ...]:
    """Return the last list of answers: numbered from 1 without a gap, or a plain Yes and No."""
    found = _matches(_OPTION, rows)
    first = max((place for place, (_, m) in enumerate(found) if m["key"] == "1"), default=0)
    found, plain = found[first:], _matches(_PLAIN, rows)[-2:]
    if len(plain) == 2 and (not found or plain[0][0] > found[-1][0]):
        found = plain
        is_list = plain[1][0] == plain[0][0] + 1 and plain[0][1]["text"] != plain[1][1]["text"]
    else:
        is_list = [m["key"] for _, m in found] == [str(n + 1) for n in range(len(found))]
    if not (found and is_list):
        return ()
    ends = [n for n, _ in found[1:]] + [len(rows)]
    return tuple(_option(n, m, rows[n + 1 : end]) for (n, m), end in zip(found, ends, strict=True))


def _matches(shape: re.Pattern[str], rows: Sequence[str]) -> list[tuple[int, re.Match[str]]]:
    return [(n, match) for n, row in enumerate(rows) if (match := shape.fullmatch(row))]


def _option(row: int, m: re.Match[str], more: Sequence[str]) -> Option:
    """Read an answer; it goes on in the rows below, up to an empty one."""
    end = next((n for n, text in enumerate(more) if not text.strip(" │|")), len(more))
    whole = "\n".join([m["text"], *(text.strip(" │|") for text in more[:end])])
    facts = m.groupdict("")  # a plain answer has neither number nor box
    box, key = facts.get("box", ""), facts.get("key", "")
    return Option(key, m["text"], whole, bool(m["arrow"]), box == "✔" if box else None, row)


# ---------------------------------------------------------------- the request


def _above(rows: Sequence[str]) -> tuple[str, ...]:
    """Return the rows between the top and the question, or () if the question is not found."""
    inside = [box[1] if (box := _BOX.fullmatch(row)) else row for row in rows]
    asks = [n for n, row in enumerate(inside) if row.strip().startswith("Do you want ")]
    if not asks or len([row for row in inside[asks[-1] :] if row.strip()]) > WRAPPED:
        return ()
    above = [row.rstrip() for row in inside[: asks[-1]]]
    while above and not above[-1]:
        above.pop()
    return tuple(above)


def _readings(shown: Sequence[str], detail: str, folders: Collection[str]) -> Iterator[str]:
    """Yield the texts that a dialog may be asking about."""
    title = shown[0].strip() if shown else ""
    lines = [n for n, row in enumerate(shown) if _LINE.fullmatch(row)]
    above = shown[1 : lines[0]] if lines else shown[1:]
    between = shown[lines[0] + 1 : lines[1]] if len(lines) == 2 else ()
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
