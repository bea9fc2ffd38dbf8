"""Decode entries of a transcript.

A transcript holds whole prompts, files and answers.  Only a short line of each is kept, and what
shows the state of the turn.
"""

from __future__ import annotations

from typing import Final

from ....core.events import Event
from ....core.lenient import Facts, time_of
from .said import entry_of

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
