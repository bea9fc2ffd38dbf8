"""Map the event names of Claude Code to the neutral kinds of events, and recognise notifications.

The kinds are the rows of the table in `machine.py`.
"""

from __future__ import annotations

import re
from typing import Final

#: Hook name → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",  # or resume, compacted: by its source
    "SessionEnd": "end",
    "UserPromptSubmit": "prompt",  # or report: by its text
    "UserPromptExpansion": "activity",
    "Stop": "stop",
    "StopFailure": "failure",
    "PreToolUse": "tool",  # or question: by its tool
    "PostToolUse": "tool end",
    "PostToolUseFailure": "tool end",
    "PostToolBatch": "batch",
    "PermissionRequest": "request",
    "PermissionDenied": "tool end",
    "Elicitation": "form",
    "ElicitationResult": "form answer",
    "Notification": "notification",  # nudge, choice, idle nudge, form answer or note: by its type
    "SubagentStart": "agent start",
    "SubagentStop": "agent stop",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "TaskCreated": "task",
    "TaskCompleted": "task done",
    "TeammateIdle": "teammate idle",
    "PostModelSwitch": "note",
    "PreModelSwitch": "note",
    "InstructionsLoaded": "note",
    "ConfigChange": "note",
    "CwdChanged": "note",
    "FileChanged": "note",
    "DirectoryAdded": "note",
    "WorktreeCreate": "note",
    "WorktreeRemove": "note",
    "Setup": "note",
    "MessageDisplay": "note",
    "PreSkillShellCommand": "note",
    "StopCancelled": "interrupt",  # Grok, whose other hooks are those of Claude Code
}

NOTIFICATIONS: Final = {
    "permission_prompt": "nudge",
    "worker_permission_prompt": "nudge",
    "elicitation_dialog": "nudge",
    "elicitation_url_dialog": "nudge",
    "agent_needs_input": "choice",
    "idle_prompt": "idle nudge",
    "elicitation_complete": "form answer",
    "elicitation_response": "form answer",
}
#: How an agent view says that another session asks. A session says it otherwise when it asks
#: itself, except for the setup of a team.
ELSEWHERE: Final = re.compile(r"(?<!\ATeammate setup) needs your input$| needs your input:")
#: How the reminder of a tool's dialog reads; those of other dialogs name what they are.
OF_TOOL: Final = re.compile("permission|approval for the plan|enter plan mode|your attention")
WRITES: Final = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
QUESTIONS: Final = {"AskUserQuestion": "question", "ExitPlanMode": "plan"}
#: Type of a subagent → the neutral one of what it is a part of.
TYPES: Final = {"workflow-subagent": "workflow"}
FINISHED: Final = frozenset({"completed", "failed", "killed", "stopped", "done", "cancelled"})
