"""Write the lines of a feed, each short enough for its reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from .feed import LONGEST, MOST, Cursor, Moved
from .lenient import storable
from .replies import refusal
from .row import Row
from .visible import as_json

ROOM: Final = 1 << 18  # bytes of rows and transitions after which another line begins


def encoded(said: object) -> bytes:
    """Return the line of a message."""
    return as_json(_encode(said)).encode() + b"\n"


def state(
    now: float, rows: Sequence[Row], moved: Sequence[Moved], at: Cursor, whole: bool
) -> Iterator[bytes]:
    """Return the lines of a state; rows that do not fit into the first follow as changes.

    `at` is the cursor after the transitions.
    """
    rows = sorted(rows, key=lambda r: (r.urgency, r.since, r.session_id))[:MOST]
    first = {"all": [r.session_id for r in rows], "whole": whole}
    begin = moved[0].id - 1 if moved else at.last
    return _lines(now, rows, moved, Cursor(at.database, begin), at, ("state", first))


def changes(
    now: float,
    rows: Sequence[Row],
    removed: Sequence[str],
    moved: Sequence[Moved],
    before: Cursor,
    at: Cursor,
) -> Iterator[bytes]:
    """Return the lines of what changed; `before` is the cursor that the reader has."""
    return _lines(now, rows, moved, before, at, ("change", {"removed": list(removed)}))


def replied(id: int, reply: Mapping[str, Any]) -> bytes:
    """Return the line of a reply, or of an error if it is too long."""
    made = encoded({"type": "reply", "id": id, **reply})
    if len(made) <= LONGEST:
        return made
    why = f"the reply is too long for a feed: {len(made) >> 10} kB"
    return encoded({"type": "reply", "id": id, **refusal(why)})


def asking(id: int, do: str, fields: Mapping[str, Any]) -> bytes:
    """Return the line of a request."""
    return encoded({"id": id, "do": do, **fields})


def _lines(
    now: float,
    rows: Sequence[Row],
    moved: Sequence[Moved],
    before: Cursor,
    at: Cursor,
    first: tuple[str, dict[str, Any]],
) -> Iterator[bytes]:
    parts = list(_parts(rows, moved))
    kind, more = first
    for n, (sessions, transitions, last) in enumerate(parts):
        is_last = n == len(parts) - 1
        before = at if is_last else before._replace(last=last or before.last)
        yield encoded(
            {"type": kind, "now": now, "cursor": str(before)}
            | {"sessions": sessions, "transitions": transitions}
            | more
        )
        kind, more = "change", {"removed": []}


def _parts(
    rows: Sequence[Row], moved: Sequence[Moved]
) -> Iterator[tuple[list[Raw], list[Raw], int]]:
    """Return rows, then transitions, as much as fits into a line each, and its last transition."""
    sessions: list[Raw] = []
    transitions: list[Raw] = []
    room, last = ROOM, 0
    for item in (*rows, *moved):
        made = _encode(item)
        if len(made) > room and (sessions or transitions):
            yield sessions, transitions, last
            sessions, transitions, room = [], [], ROOM
        room -= len(made)
        if isinstance(item, Moved):
            transitions.append(Raw(made))
            last = item.id
        else:
            sessions.append(Raw(made))
    yield sessions, transitions, last


def _encode(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):  # a lone surrogate, or a number unknown to JSON
        return msgspec.json.encode(storable(msgspec.to_builtins(value)))
