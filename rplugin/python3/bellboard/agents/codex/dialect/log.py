"""Decode the lines that Codex appends to the log of a thread.

Only they show that a turn failed, and who decides on approvals.  A line may hold whole prompts and
files; only what shows the state of the turn is kept.
"""

from __future__ import annotations

from typing import Final

from ....core.events import Event
from ....core.text import line
from ....core.untrusted import Facts, text_of, time_of

#: Type of an event → kind.
TURNS: Final = {
    "task_started": "said prompt",
    "task_complete": "said end",  # or said error: by its error
    "turn_aborted": "interrupt",
}
HEAD: Final = 160  # bytes that include a line's type
READ: Final = (b'"event_msg"', b'"turn_context"', b'"session_meta"')
PERSON: Final = "user"
HEADLESS: Final = "exec"


def is_noise(raw: bytes) -> bool:
    """Return whether a line says nothing about the turn: most are what was said and done."""
    head = raw[:HEAD]
    return not any(kind in head for kind in READ)


def entry(session_id: str, entry: Facts, t: float, now: float) -> Event:
    """Decode a line; `t` is when it was written, if it does not say so itself."""
    kind, facts = "note", Facts()
    name, given = text_of(entry, "type"), entry["payload"]
    if name == "event_msg":
        name = text_of(given, "type")
        kind = TURNS.get(name, kind)
        if kind == "said end" and (error := given.get("error")):
            kind = "said error"
            facts["error"] = line(text_of(error, "message")) or "unknown"
    elif name == "turn_context":
        if reviewer := text_of(given, "approvals_reviewer"):
            facts["reviewer"] = "person" if reviewer == PERSON else "program"
        facts["model"] = text_of(given, "model")[:80]
    elif name == "session_meta":
        facts["headless"] = given.get("source") == HEADLESS
    at = time_of(entry.get("timestamp")) or t
    return Event(kind, f"transcript {name[:60]}", at, now, session_id, **facts)
