"""The dialect of Droid: notifications say that it asks; nothing says that it was interrupted."""

from __future__ import annotations

from typing import Final

from ....core.untrusted import Facts, text_of
from ...agent import STARTS
from ...words import FIELDS, Worded, Words, from_key, kind_in

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",  # or resume, compacted: by its source
    "SessionEnd": "end",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",
    "PostToolUse": "tool end",
    "Notification": "note",  # or nudge, idle nudge: by its type, or its text
    "Stop": "stop",
    "SubagentStop": "note",
    "PreCompact": "compacting",
}
#: Type of a notification → what is asked.
ASKS: Final = {"permission_prompt": "permission", "elicitation_dialog": "question"}
PERMISSION: Final = " needs your permission to use "  # in the text of one without a type


def _notification(top: Facts, facts: Facts) -> str | None:
    kind, message = text_of(top, "notification_type"), text_of(top, "message")
    facts["source"], facts["detail"] = kind, message
    if kind == "idle_prompt":
        return "idle nudge"
    _, asks, tool = message.partition(PERMISSION)
    if kind not in ASKS and (kind or not asks):
        return None
    facts["tool"] = tool
    if ASKS.get(kind) == "question":
        facts["asks"] = "question"
    return "nudge"


DIALECT: Final = Worded(
    "droid",
    Words(
        KINDS,
        {
            "SessionStart": kind_in(STARTS, "source"),
            "SessionEnd": from_key("source", "reason"),
            "Notification": _notification,
            "PreCompact": from_key("source", "trigger"),
        },
        FIELDS,
    ),
)
