"""The dialect of Cursor CLI: no hook says that it waits for somebody, so it is never blocked."""

from __future__ import annotations

from typing import Final

from ....core.untrusted import Facts
from ...words import Worded, Words, kind_in

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "sessionStart": "start",
    "sessionEnd": "end",
    "beforeSubmitPrompt": "prompt",
    "preToolUse": "tool",
    "postToolUse": "tool end",
    "postToolUseFailure": "tool end",
    "beforeShellExecution": "activity",
    "beforeMCPExecution": "activity",
    "beforeReadFile": "activity",
    "afterShellExecution": "activity",
    "afterMCPExecution": "activity",
    "afterFileEdit": "activity",
    "afterAgentThought": "activity",
    "afterAgentResponse": "activity",
    "stop": "stop",  # or interrupt, failure: by its status
    "preCompact": "compacting",
    "subagentStart": "note",
    "subagentStop": "note",
    "beforeTabFileRead": "note",  # of its editor
    "afterTabFileEdit": "note",
    "workspaceOpen": "note",
}
ENDS: Final = {"aborted": "interrupt", "error": "failure"}
FIELDS: Final = {
    "session_id": "conversation_id",
    "prompt_id": "generation_id",
    "model": "model",
    "prompt": "prompt",
    "transcript": "transcript_path",
    "cwd": "cwd",
    "source": "reason",
    "tool": "tool_name",
    "tool_id": "tool_use_id",
}


def _start(top: Facts, facts: Facts) -> None:
    roots = top.get("workspace_roots")
    if isinstance(roots, list) and roots and isinstance(roots[0], str):
        facts["cwd"] = roots[0]


DIALECT: Final = Worded(
    "cursor",
    Words(
        KINDS,
        {
            "sessionStart": _start,
            "beforeSubmitPrompt": _start,
            "stop": kind_in(ENDS, "status", "error_message"),
        },
        FIELDS,
    ),
)
