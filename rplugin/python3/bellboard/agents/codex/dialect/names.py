"""Map the names that Codex uses to neutral ones.

The kinds are the rows of the table in `machine.py`.
"""

from __future__ import annotations

from typing import Final

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",  # or resume, compacted: by its source
    "SessionEnd": "end",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",  # or question: by its tool
    "PermissionRequest": "request",
    "PostToolUse": "tool end",
    "Stop": "stop",
    "Interrupt": "interrupt",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "SubagentStart": "agent start",
    "SubagentStop": "agent stop",
    "PreModelRequest": "note",
    "PostModelRequest": "note",
}
BASH: Final = "Bash"
PATCH: Final = "apply_patch"
QUESTION: Final = "request_user_input"
#: Tools that ask a person → what they ask.
QUESTIONS: Final = {QUESTION: "question"}
#: What the server says of a thread that waits → what it asks.
FLAGS: Final = {"waitingOnApproval": "permission", "waitingOnUserInput": "question"}
#: Statuses in which a terminal cannot leave a thread.
AT_WORK: Final = frozenset({"working", "blocked", "background"})
#: Arguments of processes whose threads no terminal shows.
NO_TERMINAL: Final = frozenset({"app-server", "exec", "mcp-server"})
SERVER: Final = "app-server"  # the argument of a process that runs the threads of many terminals
