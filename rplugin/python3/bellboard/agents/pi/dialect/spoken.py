"""The dialect of Pi, as our extension reports its events.  Pi asks for no permission."""

from __future__ import annotations

from typing import Final

from ...words import Worded, Words, kind_in

#: Event → kind.
KINDS: Final[dict[str, str]] = {
    "session_start": "start",  # or resume, note: by its reason
    "session_shutdown": "end",  # or note: by its reason
    "before_agent_start": "prompt",
    "agent_start": "activity",  # also of an attempt after an error
    "tool_execution_start": "tool",
    "tool_execution_end": "tool end",
    "agent_end": "stop",  # or interrupt, failure: by what its last message says
    "session_before_compact": "compacting",
    "session_compact": "compacted",
}
FIELDS: Final = {
    "session_id": "session",
    "cwd": "cwd",
    "source": "reason",
    "prompt": "prompt",
    "transcript": "file",
    "message": "text",
    "tool": "toolName",
    "tool_id": "toolCallId",
}
RELOADED: Final = "reload"  # the extensions, not the session
ENDS: Final = {"aborted": "interrupt", "error": "failure"}

DIALECT: Final = Worded(
    "pi",
    Words(
        KINDS,
        {
            "session_start": kind_in({RELOADED: "note", "resume": "resume"}, "reason"),
            "session_shutdown": kind_in({RELOADED: "note"}, "reason"),
            "agent_end": kind_in(ENDS, "stopReason", "errorMessage"),
        },
        FIELDS,
        event="event",
        once=True,
        given="args",
    ),
)
