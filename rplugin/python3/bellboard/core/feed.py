"""The messages of a feed: what `bellboard feed` prints for readers on other machines, and reads.

A feed is JSON, one object a line.  It begins with a hello and a state; then come changes, a beat
when nothing changed for a while, and the replies to what was asked.  `cursor` marks
the last transition that was sent.  A state lists the ids of all sessions in `all`; rows that do not
fit into its line follow as changes.

`feedlines.py` writes the lines.  `feedread.py` reads them and trusts nothing: it takes any bytes,
skips what it does not know, and gives the reason if a line cannot be used.  This file does no I/O,
and knows no clock.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from msgspec import Struct

from .row import Row, id_of

PROTOCOL: Final = 1
LONGEST: Final = 1 << 20  # bytes of a line
MOST: Final = 2000  # sessions of a machine, and transitions in a line
BEAT: Final = 10.0  # seconds without a line after which a beat follows
OWN: Final = "that is this same board; a machine cannot follow itself"
LEAST_JUNK: Final = 64  # bytes that a line counts as: even short ones take time to read
TOO_MANY: Final = f"it has {{}} {{}}; at most {MOST} can be followed"
SILENT: Final = 25.0  # seconds without a line after which the other side is gone
QUIET: Final = 21.0  # seconds until its rows are stale: before SILENT even on a busy machine

_CURSOR: Final = re.compile(r"([A-Za-z0-9]{1,64})\.([0-9]{1,15})")


class Cursor(NamedTuple):
    """A position in a feed: the machine's database, and the last transition that was sent."""

    database: str
    last: int

    def __str__(self) -> str:
        return f"{self.database}.{self.last}"


class Moved(
    Struct, frozen=True, gc=False, omit_defaults=True, rename={"before": "from", "after": "to"}
):
    """A transition; None means not listed."""

    id: int
    t: float
    session_id: str
    before: str | None = None
    after: str | None = None
    rule: str = ""
    why: str = ""
    live: bool = False


class Hello(Struct, frozen=True, tag_field="type", tag="hello"):
    """The first line: about the machine."""

    version: str = ""
    machine: str = ""  # the same for a machine, whatever its name
    boot: str = ""
    now: float = 0.0
    hooks: bool = False  # whether hooks report there
    agents: tuple[str, ...] = ()  # whose programs are installed there
    hosts: int = 0  # how many run there besides the feed
    user: str = ""
    feed: int = PROTOCOL


class State(Struct, frozen=True, tag_field="type", tag="state"):
    """All sessions: the reader drops any other.  `whole`: nothing is missing since its cursor."""

    now: float
    cursor: str
    all: tuple[str, ...]
    sessions: tuple[Row, ...] = ()
    transitions: tuple[Moved, ...] = ()
    whole: bool = False
    skipped: int = 0  # rows and transitions that could not be used


class Change(Struct, frozen=True, tag_field="type", tag="change"):
    """The sessions that changed, and those that are gone."""

    now: float
    cursor: str
    sessions: tuple[Row, ...] = ()
    removed: tuple[str, ...] = ()
    transitions: tuple[Moved, ...] = ()
    skipped: int = 0


class Beat(Struct, frozen=True, tag_field="type", tag="beat"):
    """Nothing changed."""

    now: float
    cursor: str


class Reply(Struct, frozen=True, tag_field="type", tag="reply"):
    """The reply to a request; hidden characters in `more` are shown as marks."""

    id: int
    ok: bool
    why: str = ""
    more: dict[str, Any] = {}

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of the reply."""
        return {**self.more, "ok": self.ok, **({"why": self.why} if self.why else {})}


class Problem(Struct, frozen=True, tag_field="type", tag="problem"):
    """Why the feed ends, or cannot be followed."""

    text: str


class Junk(Struct, frozen=True):
    """A line that does not belong to a feed, such as the greeting of a login shell."""

    text: str
    size: int = LEAST_JUNK


class Ask(Struct, frozen=True):
    """A request of a reader."""

    id: int
    do: str
    fields: dict[str, Any] = {}

    @property
    def session_id(self) -> str:
        return id_of(self.fields.get("session_id"))


Line = Hello | State | Change | Beat | Reply | Problem | Junk


def cursor_of(text: object) -> Cursor | None:
    """Return a cursor, or None for anything else."""
    found = _CURSOR.fullmatch(text) if isinstance(text, str) else None
    return Cursor(found[1], int(found[2])) if found else None
