"""Decode the hook events of GitHub Copilot CLI, whose payloads do not name their event.

Its permissionRequest runs for every tool, whether or not somebody is asked; its notifications say
that a dialog opens.  No hook says that one was answered, nor that a turn was interrupted or failed:
its log does (`log.py`).  An event of a subagent names its session as the parent's agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....core.events import Event, Origin
from ....core.untrusted import Facts, object_of, text_of
from ...words import Reader, Words, event_of, from_key, kind_in

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "sessionStart": "start",  # or resume: by its source
    "sessionEnd": "end",
    "userPromptSubmitted": "prompt",  # or report: by its text
    "userPromptTransformed": "note",
    "preToolUse": "activity",
    "permissionRequest": "note",
    "postToolUse": "tool end",
    "postToolUseFailure": "tool end",
    "notification": "note",  # or nudge: by its type
    "agentStop": "stop",
    "subagentStart": "agent start",
    "subagentStop": "agent stop",
    "errorOccurred": "said retry",  # the last of several says no more than the first
    "preCompact": "compacting",
}
#: Type of a notification → what is asked.
ASKS: Final = {"permission_prompt": "permission", "elicitation_dialog": "question"}
QUESTION: Final = "ask_user"
REPORT: Final = "<system_notification>"
SPAWNS: Final = {"task": "Task"}
FIELDS: Final[Mapping[str, str]] = {
    "session_id": "sessionId",
    "parent": "parentAgentId",
    "agent": "agentId",
    "agent_type": "agentType",
    "cwd": "cwd",
    "transcript": "transcriptPath",
    "source": "source",
    "prompt": "prompt",
    "tool": "toolName",
}


def _prompt(top: Facts, facts: Facts) -> str | None:
    return "report" if text_of(top, "prompt").startswith(REPORT) else None


def _notification(top: Facts, facts: Facts) -> str | None:
    facts["source"] = text_of(top, "notification_type")
    asks = ASKS.get(facts["source"])
    if asks is None:
        return None
    facts["detail"] = text_of(top, "message")
    if asks == "question":
        facts["asks"], facts["tool"] = asks, QUESTION
    return "nudge"


def _error(top: Facts, facts: Facts) -> None:
    facts["detail"] = text_of(object_of(top.get("error")), "message")


READ: Final[Mapping[str, Reader]] = {
    "sessionStart": kind_in({"resume": "resume"}, "source"),
    "sessionEnd": from_key("source", "reason"),
    "userPromptSubmitted": _prompt,
    "notification": _notification,
    "errorOccurred": _error,
    "preCompact": from_key("source", "trigger"),
}
WORDS: Final = Words(KINDS, READ, FIELDS, event="", given="toolArgs", tools=SPAWNS)


def hook(
    payload: bytes, t: float, clock: float, origin: Origin, truncated: bool = False, name: str = ""
) -> Event:
    """Decode a hook's payload; return junk, with the reason, if it cannot be decoded."""
    if name[:1].isupper():
        # A hook for another CLI, in a repository's settings, which this one runs as well.
        return Event("note", name[:60], t, clock)
    return event_of(payload, t, clock, origin, truncated, name, WORDS)
