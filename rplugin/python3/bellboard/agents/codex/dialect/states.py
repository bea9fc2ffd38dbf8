"""Decode what Codex's server says of the state of a thread.

It reports to every client when a thread begins to work, to wait, or to rest, but not whether a turn
that ended was completed, was interrupted or failed.
"""

from __future__ import annotations

from typing import Final

from ....core.untrusted import Facts, list_of, object_of, text_of
from ...dialect import Heard, Seen
from .names import FLAGS

CHANGED: Final = "thread/status/changed"
#: Types of states at rest; another one, of a thread that is not loaded, says nothing.
RESTS: Final = frozenset({"idle", "systemError"})


def heard(message: Facts) -> Heard | None:
    """Return which thread a message is about, and its state; None if it says nothing."""
    if message.get("method") != CHANGED:
        return None
    given = object_of(message.get("params"))
    thread, seen = text_of(given, "threadId"), state_of(given.get("status"))
    return Heard(thread, seen) if thread and seen is not None else None


def state_of(status: object) -> Seen | None:
    """Return what a state means."""
    given = object_of(status)
    kind = text_of(given, "type")
    if kind in RESTS:
        return Seen("idle")
    if kind != "active":
        return None
    flags = list_of(given.get("activeFlags"))
    asks = next((FLAGS[flag] for flag in flags if type(flag) is str and flag in FLAGS), "")
    return Seen("waiting", asks) if asks else Seen("busy")
