"""Decode the hook events of Claude Code, and of agents that bellboard does not know.

Only fields that a rule or a screen needs are read; of prompts and tool inputs, only a short line is
kept.  Its session files are decoded here, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import islice
from typing import Final
from zlib import crc32

from msgspec import Raw, Struct
from msgspec.structs import replace

from ...core.events import MATE, SPAWNS, Event, Origin, Task, is_id, junk
from ...core.request import shown_digest_of
from ...core.text import ODD, files_of, line, prompt_line, tool_detail, whole
from ...core.untrusted import (
    LARGEST,
    MOST,
    Facts,
    decoder_of,
    leniently,
    members,
    number_of,
    text_of,
    value_of,
)
from ..words import BY_AGENT, STARTS
from .rules import rule_line
from .transcript import BY_PROGRAM, WRITES, error_of, member_of, unwrapped

# Decode the hook events of Claude Code, and of agents that bellboard does not know.
#
# Only fields that a rule or a screen needs are read; of prompts and tool inputs, only a short
# line is kept.


class HookPayload(Struct, gc=False):
    """The fields of a hook's payload that are read."""

    session_id: str
    hook_event_name: str
    tool_name: str | None = None
    tool_use_id: str | None = None
    tool_input: Raw = Raw(b"")
    permission_suggestions: Raw = Raw(b"")
    prompt_id: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    cwd: str | None = None
    transcript_path: str | None = None
    permission_mode: str | None = None
    source: str | None = None
    reason: str | None = None
    trigger: str | None = None
    prompt: str | None = None
    session_title: str | None = None
    model: str | None = None
    to_model: str | None = None
    context_tokens: int | None = None
    notification_type: str | None = None
    message: str | None = None
    error: str | None = None
    error_details: str | None = None
    last_assistant_message: str | None = None
    stop_hook_active: Raw = Raw(b"")
    background_tasks: Raw = Raw(b"")
    session_crons: Raw = Raw(b"")
    mcp_server_name: str | None = None
    url: str | None = None
    task_subject: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


_decode = decoder_of(HookPayload)


def hook(
    payload: bytes,
    t: float,
    clock: float,
    origin: Origin = Origin(),  # noqa: B008 - frozen
    truncated: bool = False,
    name: str = "",
) -> Event:
    """Decode a hook's payload; return junk, with the reason, if it cannot be decoded."""
    if not (math.isfinite(t) and t > 0):
        return junk("invalid time", clock, clock)
    odd = payload.count(b'"session_id"') > 1  # nested, or a key given twice
    try:
        p = (None if odd else _decode(payload)) or _lenient(payload, truncated)
    except ODD as e:
        return junk(str(e)[:120], t, clock)
    sid, name = p.session_id, p.hook_event_name
    if not is_id(sid):
        return junk("no usable session id", t, clock, name[:60] or "junk")
    kind = KINDS.get(name, "unknown")
    if kind == "unknown":
        return Event("unknown", name[:60], t, clock, sid, origin)
    facts = _common(p)
    if (read := READ.get(kind)) is not None:
        kind = read(p, facts) or kind
    if kind == "tool end" and p.tool_name in SPAWNS:
        facts.update(_spawned(payload, truncated))
    if name == "PostToolUse" and p.tool_name in WRITES:
        facts["file"] = next(iter(files_of(p.tool_input)), "")
    if p.agent_id:
        kind = BY_AGENT.get(kind, "note")
        facts["agent"] = p.agent_id
    key = crc32((name + p.tool_use_id).encode()) if p.tool_use_id else crc32(payload)
    return Event(kind, name, t, clock, sid, origin, key or 1, **facts)


# ---------------------------------------------------------------- facts by kind


def _common(p: HookPayload) -> Facts:
    """Return the facts that an event of any kind may have."""
    facts: Facts = {}
    if p.cwd:
        facts["cwd"] = p.cwd
    if p.transcript_path:
        facts["transcript"] = p.transcript_path
    if p.permission_mode:
        facts["mode"] = p.permission_mode
    if p.tool_name:
        facts["tool"] = p.tool_name
    if p.prompt_id:
        facts["prompt_id"] = p.prompt_id
    if p.tool_use_id:
        facts["tool_id"] = p.tool_use_id
    if p.agent_type:
        facts["agent_type"] = TYPES.get(p.agent_type, p.agent_type)
    if p.session_title:
        facts["title"] = line(p.session_title)
    if p.model or p.to_model:
        facts["model"] = p.model or p.to_model
    if p.context_tokens and 0 < p.context_tokens < LARGEST:
        facts["context"] = p.context_tokens
    return facts


def _tool(p: HookPayload, facts: Facts) -> str:
    tool = p.tool_name or ""
    facts["tool_key"] = crc32(p.tool_input)
    facts["detail"] = tool_detail(tool, p.tool_input)
    facts["asks"] = QUESTIONS.get(tool, "")
    if tool in WRITES:
        facts["writes"] = files_of(p.tool_input)
    return "question" if tool in QUESTIONS else "tool"


def _request(p: HookPayload, facts: Facts) -> None:
    _tool(p, facts)
    facts["asks"] = facts["asks"] or "permission"
    facts["shown_digest"] = shown_digest_of(p.tool_input)
    if p.permission_suggestions:
        given, suggested = value_of(p.tool_input), value_of(p.permission_suggestions)
        facts["rule"] = rule_line(p.tool_name or "", given, suggested)


def _start(p: HookPayload, facts: Facts) -> str | None:
    facts["source"] = p.source or ""
    return STARTS.get(facts["source"])


def _end(p: HookPayload, facts: Facts) -> None:
    facts["source"] = p.reason or ""


def _prompt(p: HookPayload, facts: Facts) -> str | None:
    if p.prompt and p.prompt.startswith(BY_PROGRAM):
        return "report"
    facts["prompt"] = prompt_line(unwrapped(p.prompt or ""))
    return None


def _mate_idle(p: HookPayload, facts: Facts) -> None:
    facts.update(member_of(p.teammate_name or "", p.team_name or ""))


def _stop(p: HookPayload, facts: Facts) -> None:
    facts["message"] = line(p.last_assistant_message or "")
    facts["tasks"] = _tasks(p.background_tasks)
    facts["wakeups"] = _count(p.session_crons)
    facts["again"] = bytes(p.stop_hook_active) == b"true"


def _failure(p: HookPayload, facts: Facts) -> None:
    named = ": ".join(x for x in (p.error, p.error_details) if x and x != "unknown")
    said = p.last_assistant_message or ""
    # The message says until when a limit lasts, and what was wrong if the error has no name.
    is_told = not named or p.error == "rate_limit" or said.startswith("API Error")
    facts["error"] = (error_of(said) if is_told else "") or line(named)


def _notification(p: HookPayload, facts: Facts) -> str:
    kind = p.notification_type or ""
    facts["source"] = kind
    facts["detail"] = facts["message"] = line(p.message or "")
    if not kind:  # before 2.0.37, only the message shows the type
        kind = "permission_prompt" if "permission" in (p.message or "") else "none"
    facts["asks"] = "form" if kind.startswith("elicitation") else "permission"
    if kind == "agent_needs_input":
        facts["asks"] = "choice"
        facts["about"] = "elsewhere" if ELSEWHERE.search(p.message or "") else ""
    elif OF_TOOL.search(p.message or ""):
        facts["about"] = "tool"
    return NOTIFICATIONS.get(kind, "note")


def _form(p: HookPayload, facts: Facts) -> None:
    facts["asks"], facts["tool"] = "form", p.mcp_server_name or ""
    facts["detail"] = line(p.message or p.url or "")


def _form_answer(p: HookPayload, facts: Facts) -> None:
    facts["tool"] = p.mcp_server_name or ""


def _compaction(p: HookPayload, facts: Facts) -> None:
    facts["source"] = p.trigger or ""


def _task(p: HookPayload, facts: Facts) -> None:
    facts["detail"] = line(p.task_subject or "")


#: Kind → the function that reads its own fields, and may return a more exact kind.
READ: Final[dict[str, Callable[[HookPayload, Facts], str | None]]] = {
    "tool": _tool,
    "request": _request,
    "start": _start,
    "end": _end,
    "prompt": _prompt,
    "stop": _stop,
    "agent stop": _stop,
    "failure": _failure,
    "notification": _notification,
    "form": _form,
    "form answer": _form_answer,
    "compacting": _compaction,
    "compacted": _compaction,
    "teammate idle": _mate_idle,
    "task": _task,
    "task done": _task,
}


def _spawned(payload: bytes, truncated: bool) -> Facts:
    """Return the subagent that a tool left running; only of a few tools, as results are large."""
    try:
        left = members(payload, truncated).get("tool_response")
    except ODD:
        return {}
    is_mate = isinstance(left, dict) and left.get("status") == "teammate_spawned"
    is_left = is_mate or (isinstance(left, dict) and left.get("isAsync"))
    agent = left.get("agentId") if is_left and isinstance(left, dict) else ""
    if not isinstance(agent, str):
        return {}
    return {"spawned": whole(agent)} | ({"agent_type": MATE} if is_mate else {})


# ---------------------------------------------------------------- unexpected JSON


def _lenient(payload: bytes, truncated: bool) -> HookPayload:
    """Decode unexpected JSON: use the values that have the right type."""
    p = leniently(HookPayload, members(payload, truncated))
    if not p.hook_event_name:
        raise ValueError("no event name")
    return p


# ---------------------------------------------------------------- background tasks


def _tasks(raw: Raw) -> tuple[Task, ...] | None:
    """Return the tasks that a Stop lists as running; None if this CLI does not list any."""
    listed = value_of(raw) if raw else None
    if not isinstance(listed, list):
        return None
    objects = (x for x in listed if isinstance(x, dict))
    running = (x for x in objects if str(x.get("status", "running")) not in FINISHED)
    return tuple(
        Task(
            id=str(x.get("id") or ""),
            type=str(x.get("type") or ""),
            description=line(str(x.get("description") or x.get("command") or "")),
        )
        for x in islice(running, MOST)
    )


def _count(raw: Raw) -> int:
    listed = value_of(raw) if raw else None
    return len(listed) if isinstance(listed, list) else 0


# Map the event names of Claude Code to the neutral kinds of events, and recognise
# notifications.
#
# The kinds are the rows of the table in `machine.py`.


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
    "StopCancelled": "interrupt",  # of Grok, which else has the hooks of Claude Code
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
#: Words of an agent view for another session that asks. A session that asks itself uses other
#: words, except for the setup of a team.
ELSEWHERE: Final = re.compile(r"(?<!\ATeammate setup) needs your input$| needs your input:")
#: The reminder of a tool's dialog; reminders of other dialogs name their kind.
OF_TOOL: Final = re.compile("permission|approval for the plan|enter plan mode|your attention")
QUESTIONS: Final = {"AskUserQuestion": "question", "ExitPlanMode": "plan"}
#: Type of a subagent → the neutral type of the work that it is a part of.
TYPES: Final = {"workflow-subagent": "workflow"}
CONFIG: Final = "CLAUDE_CONFIG_DIR"  # the variable that names the config directory
FINISHED: Final = frozenset({"completed", "failed", "killed", "stopped", "done", "cancelled"})


# Decode a session file of the CLI, its own account of a session.


#: Value of `waitingFor` → kind of question; "dialog open" is not the agent's.
WAITING: Final = {
    "permission prompt": "permission",
    "sandbox request": "permission",
    "worker request": "permission",
    "input needed": "question",
    "goal proposal": "choice",
    "dialog open": "",
}


def account(record: Facts, about: Event) -> Event:
    """Return the event with the contents of a record."""
    status, waiting = text_of(record, "status"), text_of(record, "waitingFor")
    since = number_of(record.get("statusUpdatedAt"))
    moved = "parkedJobId" in record  # the conversation goes on in the job; the status stays behind
    if moved:
        status, waiting, since = "idle", "", number_of(record.get("updatedAt"))
    tool = waiting.removeprefix("approve ") if waiting.startswith("approve ") else ""
    asks = ""
    if status == "waiting":
        asks = WAITING.get(waiting, "choice" if waiting else "permission")
        asks = QUESTIONS.get(tool, "permission") if tool else asks
    env = {"job": "bg"} if record.get("kind") == "bg" else {}
    if entry := text_of(record, "entrypoint"):
        env["entrypoint"] = entry
    return replace(
        about,
        name=f"registry {status}".strip(),
        origin=Origin(pid=about.pid, env=env),
        started=text_of(record, "procStart"),
        status=status,
        spare=moved or record.get("spare") is True,
        asks=asks,
        tool=tool,
        at=since / 1000 if since else about.t,
        cwd=text_of(record, "cwd"),
        title=line(text_of(record, "name")) if record.get("nameSource") != "derived" else "",
        named=record.get("nameSource") not in (None, "derived"),
    )
