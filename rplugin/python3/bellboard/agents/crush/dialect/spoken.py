"""The dialect of Crush, whose newer versions report everything; older ones know PreToolUse only.

This file does no I/O, knows no clock, and raises on no input.
"""

from __future__ import annotations

from typing import Final

from ....core.lenient import Facts, text_of
from ...payloads import FIELDS, Worded, Words

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",
    "SessionEnd": "end",
    "TurnStart": "prompt",
    "PreToolUse": "tool",
    "PostToolUse": "tool end",
    "PostToolUseFailure": "tool end",
    "PermissionRequest": "request",
    "PermissionResult": "tool end",  # so that its question ends
    "TurnEnd": "stop",
    "StopFailure": "failure",
    "Interrupt": "interrupt",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
}


def _failure(top: Facts, facts: Facts) -> None:
    facts["error"] = text_of(top, "error") or "unknown"


class CrushDialect(Worded):
    """See `Dialect`."""

    key = "crush"
    kinds = KINDS
    words = Words(KINDS, {"StopFailure": _failure}, {**FIELDS, "message": "text"}, event="event")
