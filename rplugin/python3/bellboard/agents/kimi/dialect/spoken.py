"""The dialect of Kimi Code, whose hooks report everything (on 2.1.0; older ones know fewer)."""

from __future__ import annotations

from typing import Final

from ....core.untrusted import Facts
from ...words import FIELDS as MOST
from ...words import Worded, Words, failure, from_key, kind_in

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
MAIN: Final = "main"  # the agent that is not a subagent
QUESTION: Final = "AskUserQuestion"  # the tool that asks one


def _any(top: Facts, facts: Facts) -> None:
    if facts.get("agent") == MAIN:
        del facts["agent"]


def _tool(top: Facts, facts: Facts) -> str | None:
    _any(top, facts)
    if facts.get("tool") != QUESTION:
        return None
    facts["asks"] = "question"
    return "question"


READ: Final = {
    **dict.fromkeys(KINDS, _any),
    "PreToolUse": _tool,
    "SessionStart": kind_in({"resume": "resume"}, "source"),
    "SessionEnd": from_key("source", "reason"),
    "StopFailure": failure("error_type", "error_message"),
    "PreCompact": from_key("source", "trigger"),
    "PostCompact": from_key("source", "trigger"),
}

DIALECT: Final = Worded("kimi", Words(KINDS, READ, FIELDS))
