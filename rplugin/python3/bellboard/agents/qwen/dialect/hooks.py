"""Decode the hook events of Qwen Code, which report everything.

A tool's PreToolUse comes once it may run, so after its question was answered.  PermissionRequest
comes before the dialog, which its hooks hold back; a notification says that the dialog is open.
Another says that Qwen is at rest, without a Stop or a StopFailure if somebody refused or
interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ....core.events import Event, Origin, Task
from ....core.text import line
from ....core.untrusted import Facts, text_of, time_of
from ...agent import STARTS
from ...words import FIELDS, Reader, Words, event_of, from_key, kind_in, typed_prompt

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",  # or resume, compacted: by its source
    "SessionEnd": "end",
    "UserPromptSubmit": "prompt",  # or activity: after each tool, without a text
    "UserPromptExpansion": "activity",
    "PreToolUse": "granted",
    "PermissionRequest": "request",
    "PermissionDenied": "tool end",
    "PostToolUse": "tool end",
    "PostToolUseFailure": "tool end",
    "PostToolBatch": "activity",
    "Notification": "note",  # or nudge, interrupt: by its type
    "Stop": "stop",
    "StopFailure": "failure",
    "SubagentStart": "agent start",
    "SubagentStop": "agent stop",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "TodoCreated": "note",
    "TodoCompleted": "note",
    "MessageDisplay": "note",
    "InstructionsLoaded": "note",
    "SessionDelete": "note",
}
NOTIFICATIONS: Final = {"permission_prompt": "nudge", "idle_prompt": "interrupt"}
#: Tools that ask a person → what they ask.
QUESTIONS: Final = {"ask_user_question": "question", "exit_plan_mode": "plan"}
ABOUT: Final = " to use "  # in the message of a notification, before the name of the tool
SPAWNS: Final = {"agent": "Agent", "task": "Task"}
#: Hooks that are run by a process other than Qwen's own, without a terminal.
DETACHED: Final = frozenset({"StopFailure"})
OVER: Final = frozenset({"completed", "failed", "cancelled", "killed", "stopped"})


def _prompt(top: Facts, facts: Facts) -> str | None:
    typed_prompt(top, facts)
    return None if text_of(top, "prompt") else "activity"


def _request(top: Facts, facts: Facts) -> None:
    facts["asks"] = QUESTIONS.get(text_of(top, "tool_name"), "permission")
    facts["early"] = True


def _notification(top: Facts, facts: Facts) -> str | None:
    facts["source"] = text_of(top, "notification_type")
    kind = NOTIFICATIONS.get(facts["source"])
    message = text_of(top, "message")
    if kind == "nudge":
        tool = message.rpartition(ABOUT)[2]
        facts["tool"], facts["detail"] = SPAWNS.get(tool, tool), message
    if kind == "interrupt":  # it is at rest, and no Stop says how it ended
        facts["inferred"], facts["at"] = True, time_of(top.get("timestamp")) or 0.0
    # One of a subagent is about the session that shows its dialog.
    facts.pop("agent", None)
    return kind


def _stop(top: Facts, facts: Facts) -> None:
    listed, crons = top.get("background_tasks"), top.get("crons")
    if isinstance(listed, list):
        facts["tasks"] = tuple(_task(x) for x in listed if isinstance(x, dict) and _runs(x))
    facts["wakeups"] = len(crons) if isinstance(crons, list) else 0


def _task(given: Facts) -> Task:
    return Task(text_of(given, "id"), "subagent", line(text_of(given, "description")))


def _runs(given: Facts) -> bool:
    return bool(text_of(given, "id")) and text_of(given, "status") not in OVER


def _failure(top: Facts, facts: Facts) -> None:
    said = (text_of(top, key) for key in ("error", "error_details", "last_assistant_message"))
    found = list(dict.fromkeys(text for text in said if text))
    facts["error"] = ": ".join(found[:2]) or "unknown"


READ: Final[Mapping[str, Reader]] = {
    "SessionStart": kind_in(STARTS, "source"),
    "SessionEnd": from_key("source", "reason"),
    "UserPromptSubmit": _prompt,
    "PermissionRequest": _request,
    "Notification": _notification,
    "Stop": _stop,
    "StopFailure": _failure,
    "PreCompact": from_key("source", "trigger"),
    "PostCompact": from_key("source", "trigger"),
}
WORDS: Final = Words(KINDS, READ, FIELDS, tools=SPAWNS)


def hook(
    payload: bytes, t: float, clock: float, origin: Origin, truncated: bool = False, name: str = ""
) -> Event:
    """Decode a hook's payload; return junk, with the reason, if it cannot be decoded."""
    event = event_of(payload, t, clock, origin, truncated, name, WORDS)
    if event.name in DETACHED:
        return replace(event, origin=replace(event.origin, pid=None, tty=None))
    return event
