"""Decode entries of a transcript, and choose which ones to report.

A transcript holds whole prompts, files and answers.  Only a short line of each is kept, and what
shows the state of the turn.  This file does no I/O and knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ....core.bounds import bounded
from ....core.events import Event
from ....core.lenient import WRONG_SHAPE, Facts, time_of
from .said import entry_of

LATEST: Final = 6  # entries that show the state of a turn: a tool, its result, an end
HEAD: Final = 200  # bytes that include an entry's type, which the CLI writes first


def is_noise(raw: bytes) -> bool:
    """Return whether to skip a line undecoded: a request to the API, or a subagent's entry."""
    head = raw[:HEAD]
    return b'"type":"api-request' in head or b'"isSidechain":true' in head


def decoded(session_id: str, entry: Facts, t: float, now: float) -> Event:
    """Decode an entry; `t` is when it was written, if it does not say so itself."""
    kind, facts = entry_of(entry)
    name, at = f"transcript {kind.removeprefix('said ')}", time_of(entry.get("timestamp")) or t
    return Event(kind, name, at, now, session_id=session_id, **facts)


def event_of(session_id: str, entry: Facts, now: float) -> Event | None:
    """Decode an entry; return None if it shows nothing."""
    try:
        event = decoded(session_id, entry, now, now)
    except WRONG_SHAPE:
        return None
    return None if event.kind == "note" and not event.title else bounded(event)


def gist(events: Sequence[Event], since: float) -> Iterator[int]:
    """Yield which of the entries read at once to report: facts, and the state of the turn.

    Of entries older than `since` only the facts count, because newer evidence exists.
    """
    last: dict[str, int] = {}
    for n, event in enumerate(events):
        if event.title:
            last["named" if event.named else "title"] = n
        if event.prompt:
            last["prompt"] = n
        if event.model:
            last["model"] = n
        if event.message:
            last["message"] = n
    deciding = [n for n, e in enumerate(events) if e.kind != "note" and e.t > since][-LATEST:]
    yield from sorted({*last.values(), *deciding})
