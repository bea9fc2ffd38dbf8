"""The dialect of Kimi Code, whose hooks report everything; older versions know fewer events.

This file does no I/O, knows no clock, and raises on no input.
"""

from __future__ import annotations

from typing import Final

from ....core.lenient import Facts, text_of
from ...payloads import FIELDS as MOST
from ...payloads import Worded, Words, failure

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",  # or resume: by its source
    "SessionEnd": "end",
    "SessionHeartbeat": "note",
    "UserPromptSubmit": "prompt",
    "UserPromptQueued": "note",
    "TurnStarted": "activity",
    "PreToolUse": "tool",
    "PostToolUse": "tool end",
    "PostToolUseFailure": "tool end",
    "PermissionRequest": "request",
    "PermissionResult": "tool end",  # so that its question ends
    "Stop": "stop",
    "StopFailure": "failure",
    "Interrupt": "interrupt",
    "SubagentStart": "note",
    "SubagentStop": "note",
    "TaskStarted": "note",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "Notification": "note",
}
FIELDS: Final = {**MOST, "tool_id": "tool_call_id", "title": "session_title"}
MAIN: Final = "main"  # the agent that is no subagent


def _any(top: Facts, facts: Facts) -> None:
    if facts.get("agent") == MAIN:
        del facts["agent"]


def _start(top: Facts, facts: Facts) -> str | None:
    return "resume" if text_of(top, "source") == "resume" else None


def _end(top: Facts, facts: Facts) -> None:
    facts["source"] = text_of(top, "reason")


def _compaction(top: Facts, facts: Facts) -> None:
    facts["source"] = text_of(top, "trigger")


READ: Final = {
    **dict.fromkeys(KINDS, _any),
    "SessionStart": _start,
    "SessionEnd": _end,
    "StopFailure": failure("error_type", "error_message"),
    "PreCompact": _compaction,
    "PostCompact": _compaction,
}


class KimiDialect(Worded):
    """See `Dialect`."""

    key = "kimi"
    kinds = KINDS
    words = Words(KINDS, READ, FIELDS)


DIALECT: Final = KimiDialect()
