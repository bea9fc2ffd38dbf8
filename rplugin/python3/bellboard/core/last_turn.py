"""The last turn of a session that rests: its prompt, its last message, what it changed.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

LONGEST_REPLY: Final = 200_000  # characters of a prompt or message; a line of a feed has 1 MB
MOST_FILES: Final = 200  # that are named


class Touched(Struct, gc=False):
    """A file that tools of the turn changed, with their patches as far as its log has them."""

    path: str
    created: bool = False
    was: str = ""  # before its tools renamed it
    known: bool = False  # the log has all patches
    hunks: tuple[str, ...] = ()  # lines of a unified diff

    def count(self, sign: str) -> int | None:
        """Return how many lines begin with `+` or `-`; None if that is not known."""
        return sum(row.startswith(sign) for row in self.hunks) if self.known else None


def created_file(path: str, text: str) -> Touched:
    """Return a file that was created with this text."""
    rows = text.splitlines()
    hunk = (f"@@ -0,0 +1,{len(rows)} @@", *(f"+{row}" for row in rows))
    return Touched(path, created=True, known=True, hunks=hunk)


def merged(edits: Sequence[Touched]) -> Touched:
    """Return several edits of a file, oldest first, as one."""
    hunks = tuple(row for each in edits for row in each.hunks)
    is_known = all(each.known for each in edits)
    return replace(edits[0], path=edits[-1].path, known=is_known, hunks=hunks)


class TurnLog(Struct, gc=False):
    """What the log of a session says of its last turn: since a person spoke."""

    prompt: str = ""
    text: str = ""
    began: float = 0.0
    ended: float = 0.0
    took: float = 0.0
    tokens: int = 0
    touched: Sequence[Touched] = ()
    runs: bool = False  # it ran commands or agents, which may have changed other files
    note: str = ""


class ChangedFile(Struct, frozen=True, omit_defaults=True, gc=False):
    """A file that differs since the turn began."""

    path: str  # as it is shown
    whole: str
    how: str  # changed | created | deleted | renamed
    added: int | None = None  # lines, by the edits of its tools
    removed: int | None = None
    was: str = ""  # before it was renamed, as it is shown
    unclaimed: bool = False  # not by its tools: by a command that it ran, or by somebody else
    why: str = ""  # why there is no diff against a commit
    words: str = ""  # what happened to it


class LastTurn(Struct, frozen=True, omit_defaults=True, gc=False):
    """See the file; `since` is when it ended, `took` its seconds of work."""

    session_id: str
    title: str
    branch: str
    cwd: str
    prompt: str
    text: str
    since: float
    took: float = 0.0
    tokens: int | None = None
    files: tuple[ChangedFile, ...] = ()
    note: str = ""
    about: str = ""  # its branch, duration and tokens, in words


#: The heading of files that no tool of the turn names.
UNCLAIMED: Final = "changed since, by its commands or by somebody else"


def file_words(file: ChangedFile) -> str:
    """Return what happened to a file: `+12 -40`, `new +31`, `renamed from OLD`, `deleted`."""
    how = {"changed": "", "created": "new", "renamed": f"renamed from {file.was}"}
    lines = ((sign, count) for sign, count in (("+", file.added), ("-", file.removed)) if count)
    counts = " ".join(f"{sign}{count}" for sign, count in lines)
    return " · ".join(filter(None, (f"{how.get(file.how, file.how)} {counts}".strip(), file.why)))


def about_turn(branch: str, took: float, tokens: int) -> str:
    """Return its branch, duration and tokens: `main · 4m 10s · 38k tokens`."""
    minutes, seconds = divmod(int(took), 60)
    hours, minutes = divmod(minutes, 60)
    long = f"{hours}h {minutes}m" if hours else f"{minutes}m {seconds}s" if minutes else ""
    used = f"{tokens / 1000:.0f}k" if tokens >= 1000 else str(tokens)
    known = (branch, long or f"{seconds}s", f"{used} tokens" if tokens else "")
    return " · ".join(filter(None, known))
