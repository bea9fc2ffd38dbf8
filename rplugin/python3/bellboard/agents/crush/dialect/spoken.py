"""The dialect of Crush, whose newer versions report everything; older ones know PreToolUse only."""

from __future__ import annotations

from typing import Final

from ...words import FIELDS, Worded, Words, failure

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
READ: Final = {"StopFailure": failure("error")}

DIALECT: Final = Worded("crush", Words(KINDS, READ, {**FIELDS, "message": "text"}, event="event"))
