"""Agents as their makers document them; nothing here was measured.

Each is a table of its names of hook events, and the form in which it reads its hooks.  The
plugins with chats inside Neovim have the words that `lua/bellboard/report/chats.lua` defines.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Final

from ..core.untrusted import Facts, list_of, text_of
from .agent import Agent, timeouts_of
from .words import FIELDS, STARTS, Reader, Words, failure, from_key, kind_in

PATIENCE: Final = 10  # seconds that a hook may take


class Documented(Agent):
    """An agent that nobody has seen run here; comments say what its hooks do not report.

    It has neither `hooks` nor `abilities`: `bellboard hooks print` prints the text of `reporting`,
    for the user to put into the file at `place`, and nothing installs it.
    """


# ---------------------------------------------------------------- Cursor CLI
#
# No hook says that Cursor waits for somebody, so its sessions are never blocked.


def _first_of(key: str) -> Reader:
    """Return a reader of the folder: the first of a list."""

    def read(top: Facts, facts: Facts) -> None:
        folders = list_of(top.get(key))
        if folders and isinstance(folders[0], str):
            facts["cwd"] = folders[0]

    return read


class CursorCli(Documented):
    """See `Agent`."""

    key = "cursor"
    name = "Cursor CLI"
    program = "cursor-agent"
    prompting = ("--",)
    place = "~/.cursor/hooks.json"
    words = Words(
        {
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
            "beforeTabFileRead": "note",  # of the editor
            "afterTabFileEdit": "note",
            "workspaceOpen": "note",
        },
        {
            "sessionStart": _first_of("workspace_roots"),
            "beforeSubmitPrompt": _first_of("workspace_roots"),
            "stop": kind_in(
                {"aborted": "interrupt", "error": "failure"}, "status", "error_message"
            ),
        },
        {
            "session_id": "conversation_id",
            "prompt_id": "generation_id",
            "model": "model",
            "prompt": "prompt",
            "transcript": "transcript_path",
            "cwd": "cwd",
            "source": "reason",
            "tool": "tool_name",
            "tool_id": "tool_use_id",
        },
    )

    def reporting(self, line: Callable[[str], str]) -> str:
        hooks: dict[str, list[dict[str, object]]] = {
            name: [{"command": line(name)}] for name in timeouts_of(self.words, PATIENCE)
        }
        hooks["stop"][0]["loop_limit"] = None  # by default, Cursor runs it at most five times
        return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False)


# ---------------------------------------------------------------- Droid
#
# Notifications say that Droid asks; nothing says that it was interrupted.

#: Type of a notification → the kind of question.
DROID_ASKS: Final = {"permission_prompt": "permission", "elicitation_dialog": "question"}
PERMISSION: Final = " needs your permission to use "  # in a notification without a type


def _droid_notifies(top: Facts, facts: Facts) -> str | None:
    kind, message = text_of(top, "notification_type"), text_of(top, "message")
    facts["source"], facts["detail"] = kind, message
    if kind == "idle_prompt":
        return "idle nudge"
    _, asks, tool = message.partition(PERMISSION)
    if kind not in DROID_ASKS and (kind or not asks):
        return None
    facts["tool"] = tool
    if DROID_ASKS.get(kind) == "question":
        facts["asks"] = "question"
    return "nudge"


class Droid(Documented):
    """See `Agent`."""

    key = "droid"
    name = "Droid"
    program = "droid"
    prompting = ("--",)
    place = "~/.factory/settings.json"
    words = Words(
        {
            "SessionStart": "start",  # or resume, compacted: by its source
            "SessionEnd": "end",
            "UserPromptSubmit": "prompt",
            "PreToolUse": "tool",
            "PostToolUse": "tool end",
            "Notification": "note",  # or nudge, idle nudge: by its type, or its text
            "Stop": "stop",
            "SubagentStop": "note",
            "PreCompact": "compacting",
        },
        {
            "SessionStart": kind_in(STARTS, "source"),
            "SessionEnd": from_key("source", "reason"),
            "Notification": _droid_notifies,
            "PreCompact": from_key("source", "trigger"),
        },
    )
    timeouts = timeouts_of(words, PATIENCE, "Notification")


# ---------------------------------------------------------------- Goose
#
# No hook says that Goose waits, was interrupted or failed.


class Goose(Documented):
    """See `Agent`."""

    key = "goose"
    name = "Goose"
    program = "goose"
    prompting = ("run", "--interactive", "--text=")
    place = "~/.agents/plugins/bellboard/hooks/hooks.json"
    words = Words(
        {
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
        },
        fields={
            "session_id": "session_id",
            "prompt": "message",
            "message": "last_assistant_message",
            "cwd": "working_dir",
            "tool": "tool_name",
            "tool_id": "tool_call_id",
        },
        event="event",
    )
    timeouts = timeouts_of(words, PATIENCE)


# ---------------------------------------------------------------- Antigravity CLI
#
# Its payloads name no event, so the argument of the hook does.  Every hook holds it up, and prints
# an empty object; for PreToolUse that refuses the tool, so there is none, and nothing else says
# that it waits for somebody.  A Stop that is not fully idle leaves work in the background, and
# another Stop follows.


def _agy_invokes(top: Facts, facts: Facts) -> str | None:
    _agy_folder(top, facts)
    return "prompt" if top.get("invocationNum") == 0 else None


def _agy_stops(top: Facts, facts: Facts) -> str | None:
    reason = text_of(top, "terminationReason")
    if "CANCEL" in reason:
        return "interrupt"
    if text_of(top, "error") or "ERROR" in reason:
        _agy_failure(top, facts)
        return "failure"
    return "activity" if top.get("fullyIdle") is False else None


_agy_folder: Final = _first_of("workspacePaths")
_agy_failure: Final = failure("terminationReason", "error")


class Antigravity(Documented):
    """See `Agent`."""

    key = "antigravity"
    name = "Antigravity CLI"
    program = "agy"
    place = "~/.gemini/config/hooks.json"
    words = Words(
        {
            "SessionStart": "start",
            "PreInvocation": "activity",  # or prompt: the first one of a turn
            "PostInvocation": "activity",
            "PreToolUse": "activity",
            "PostToolUse": "activity",
            "Stop": "stop",  # or interrupt, failure, activity: by its reason
        },
        {"SessionStart": _agy_folder, "PreInvocation": _agy_invokes, "Stop": _agy_stops},
        {"session_id": "conversationId", "model": "modelName", "transcript": "transcriptPath"},
        event="",
    )

    def reporting(self, line: Callable[[str], str]) -> str:
        hooks = {
            event: [{"type": "command", "command": f"echo '{{}}'; {line(event)}", "timeout": t}]
            for event, t in timeouts_of(self.words, PATIENCE, "PreInvocation").items()
        }
        return json.dumps({"bellboard": hooks}, indent=2, ensure_ascii=False)


# ---------------------------------------------------------------- Amp
#
# Our plugin reports Amp.  An event of a subagent's thread names that thread in `agent`, and the
# thread that started it in `thread`.

#: State of a thread → kind.
AMP_STATES: Final = {"awaiting-approval": "request", "error": "failure"}
_amp_ended = kind_in({"cancelled": "interrupt", "error": "failure"}, "status")
_amp_does = kind_in(AMP_STATES, "state")


def _amp_starts(top: Facts, facts: Facts) -> str | None:
    return "agent start" if facts.get("agent") else None


def _amp_ends(top: Facts, facts: Facts) -> str | None:
    return "agent stop" if facts.get("agent") else _amp_ended(top, facts)


def _amp_changes(top: Facts, facts: Facts) -> str | None:
    return _amp_does(top, facts) or ("form answer" if text_of(top, "was") in AMP_STATES else None)


class Amp(Documented):
    """See `Agent`."""

    key = "amp"
    name = "Amp"
    program = "amp"
    place = "~/.config/amp/plugins/bellboard.ts"
    words = Words(
        {
            "session.start": "start",
            "agent.start": "prompt",
            "agent.end": "stop",  # or interrupt, failure: by its status
            "thread.state": "note",  # or request, form answer, failure: by old and new state
        },
        {"agent.start": _amp_starts, "agent.end": _amp_ends, "thread.state": _amp_changes},
        {"session_id": "thread", "agent": "agent", "cwd": "cwd", "prompt": "message"},
        event="event",
        once=True,
    )

    def reporting(self, line: Callable[[str], str]) -> str:
        from ..system.files import plugin

        return plugin("// bellboard's plugin for Amp: reports what a thread does.", "amp.js")


# ---------------------------------------------------------------- Crush
#
# Newer versions report everything; older ones know PreToolUse only.


class Crush(Documented):
    """See `Agent`."""

    key = "crush"
    name = "Crush"
    program = "crush"
    place = "~/.config/crush/crush.json"
    words = Words(
        {
            "SessionStart": "start",
            "SessionEnd": "end",
            "TurnStart": "prompt",
            "PreToolUse": "tool",
            "PostToolUse": "tool end",
            "PostToolUseFailure": "tool end",
            "PermissionRequest": "request",
            "PermissionResult": "tool end",  # which ends its question
            "TurnEnd": "stop",
            "StopFailure": "failure",
            "Interrupt": "interrupt",
            "PreCompact": "compacting",
            "PostCompact": "compacted",
        },
        {"StopFailure": failure("error")},
        {**FIELDS, "message": "text"},
        event="event",
    )

    def reporting(self, line: Callable[[str], str]) -> str:
        # Crush runs a hook in a shell inside its own process, where $PPID is the parent of Crush.
        commands = {event: f"sh -c {shlex.quote(line(event))}" for event in self.kinds}
        hooks = {
            event: [{"name": "bellboard", "command": command, "timeout": PATIENCE}]
            for event, command in commands.items()
        }
        return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)


# ---------------------------------------------------------------- chats inside Neovim


class Chat(Documented):
    """See `Agent`."""

    words = Words(
        {
            "opens": "start",
            "works": "prompt",
            "asks": "request",
            "goes on": "form answer",
            "fails": "failure",
            "rests": "rest",
            "breaks off": "interrupt",
            "closes": "end",
        },
        {"fails": failure("error")},
        {"session_id": "session_id", "cwd": "cwd", "tool": "tool_name"},
        event="event",
    )

    def __init__(self, key: str) -> None:
        self.key, self.name = key, f"{key}.nvim"
