"""Decode the lines that Gemini CLI appends to the log of a chat: they say how a turn ended.

A line may repeat the whole chat, and entries may be written again; only the kinds that end a turn
are read.
"""

from __future__ import annotations

from typing import Final

from ....core.events import Event
from ....core.text import line
from ....core.untrusted import Facts, text_of, time_of

CANCELLED: Final = "Request cancelled."
#: How the CLI says that a hook of the user refused the prompt, or stopped the turn.
STOPPED: Final = ("Agent execution blocked:", "Agent execution stopped:")
HEAD: Final = 200  # bytes that include the type of an entry
READ: Final = (b'"type":"error"', b'"type":"info"', b'"type":"warning"')


def is_noise(raw: bytes) -> bool:
    """Return whether a line says nothing about the end of a turn."""
    head = raw[:HEAD].replace(b'": "', b'":"')
    return not any(kind in head for kind in READ)


def entry(session_id: str, entry: Facts, t: float, now: float) -> Event:
    """Decode a line; `t` is when it was written, if it does not say so itself."""
    kind, facts = "note", Facts()
    name, said = text_of(entry, "type"), text_of(entry, "content")
    if name == "error":
        kind, facts["error"] = "said failure", line(said) or "unknown"
    elif name == "info" and said == CANCELLED:
        kind = "said cancel"
    elif name in ("info", "warning") and said.startswith(STOPPED):
        kind = "said refusal"
    at = time_of(entry.get("timestamp")) or t
    return Event(kind, f"transcript {name[:60]}", at, now, session_id, **facts)
