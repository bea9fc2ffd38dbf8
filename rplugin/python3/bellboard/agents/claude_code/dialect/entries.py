"""An entry of a session's transcript: whether to decode it, what it tells, which ones to tell.

A transcript holds whole prompts, files and answers.  Nothing of that goes further than a short
line, and the fields that tell the state of the turn.  This file does no I/O and knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....core.bounds import bounded
from ....core.events import Event
from ...evidence import from_line

LATEST: Final = 6  # entries that tell how a turn stands: a tool, its result, an end
HEAD: Final = 200  # bytes in which an entry's type stands, where the CLI writes it first


def is_noise(raw: bytes) -> bool:
    """Whole requests to the API, large and private, and subagents' lines: not even decoded."""
    head = raw[:HEAD]
    return b'"type":"api-request' in head or b'"isSidechain":true' in head


def told_by(session_id: str, entry: Mapping[str, Any], now: float) -> Event | None:
    """The event that an entry tells; None if it tells nothing."""
    event = from_line({"t": now, "transcript": {"session_id": session_id, "entry": entry}}, now)
    if event.kind == "junk" or (event.kind == "note" and not event.title):
        return None
    return bounded(event)


def gist(events: Sequence[Event], since: float) -> Iterator[int]:
    """Which of many entries to tell, where nobody listened: facts, and how the turn stands now.

    What is older than `since` was overtaken by other evidence: only its facts still count.
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
