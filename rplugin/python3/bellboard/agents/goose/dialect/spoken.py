"""The dialect of Goose: no hook says that it waits, was interrupted or failed."""

from __future__ import annotations

from typing import Final

from ...words import Worded, Words

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",
    "SessionEnd": "end",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",
    "PreToolUseResult": "activity",
    "PostToolUse": "tool end",
    "PostToolUseFailure": "tool end",
    "BeforeReadFile": "activity",
    "AfterFileEdit": "activity",
    "BeforeShellExecution": "activity",
    "AfterShellExecution": "activity",
    "Stop": "stop",
}
FIELDS: Final = {
    "session_id": "session_id",
    "prompt": "message",
    "message": "last_assistant_message",
    "cwd": "working_dir",
    "tool": "tool_name",
    "tool_id": "tool_call_id",
}

DIALECT: Final = Worded("goose", Words(KINDS, fields=FIELDS, event="event"))
