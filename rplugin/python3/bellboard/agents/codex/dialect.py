"""Decode what Codex reports: its hook events, its logs, what its server says of a thread.

Only fields that a rule or a screen needs are read; of prompts and tool inputs, only a short line is
kept.  This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import math
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from ...core.events import Event, Origin, is_id, junk
from ...core.request import shown_digest_of
from ...core.text import ODD, line, tool_detail
from ...core.untrusted import (
    Facts,
    leniently,
    list_of,
    members,
    object_of,
    text_of,
    time_of,
    value_of,
)
from ..agent import Heard, Seen
from ..words import BY_AGENT, STARTS

# Map the names that Codex uses to neutral ones.
#
# The kinds are the rows of the table in `machine.py`.


#: Hook → kind.
KEY: Final = "codex"  # its name in evidence
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


# Decode the hook events of Codex.
#
# Only fields that a rule or a screen needs are read; of prompts and tool inputs, only a short
# line is kept.


class CodexPayload(Struct, gc=False):
    """The fields of a hook's payload that are read."""

    session_id: str
    hook_event_name: str
    tool_name: str | None = None
    tool_use_id: str | None = None
    tool_input: Raw = Raw(b"")
    agent_id: str | None = None
    agent_type: str | None = None
    cwd: str | None = None
    transcript_path: str | None = None
    permission_mode: str | None = None
    model: str | None = None
    source: str | None = None
    reason: str | None = None
    trigger: str | None = None
    prompt: str | None = None
    last_assistant_message: str | None = None


_decode = msgspec.json.Decoder(CodexPayload).decode


def hook(
    payload: bytes, t: float, clock: float, origin: Origin, truncated: bool = False, name: str = ""
) -> Event:
    """Decode a hook's payload; return junk, with the reason, if it cannot be decoded."""
    if not (math.isfinite(t) and t > 0):
        return junk("invalid time", clock, clock)
    try:
        p = _lenient(payload, truncated) if truncated else _decode(payload)
    except ODD:
        try:
            p = _lenient(payload, truncated)
        except ODD as e:
            return junk(str(e)[:120], t, clock)
    name = p.hook_event_name[:60]
    if not is_id(p.session_id):
        return junk("no usable session id", t, clock, name or "junk")
    kind = KINDS.get(name)
    if kind is None:
        return Event("unknown", name, t, clock, p.session_id, origin)
    facts = _facts(p)
    if p.tool_name in QUESTIONS and kind == "tool":
        kind = "question"
    elif kind == "start":
        kind = STARTS.get(facts["source"], kind)
    elif kind == "request":
        facts["shown_digest"] = shown_digest_of(p.tool_input)
        facts["asks"] = "permission"
    if p.agent_id:
        kind = BY_AGENT.get(kind, "note")
    key = crc32((name + p.tool_use_id).encode()) if p.tool_use_id else crc32(payload)
    return Event(kind, name, t, clock, p.session_id, origin, key or 1, **facts)


def _facts(p: CodexPayload) -> dict[str, Any]:
    tool = p.tool_name or ""
    facts: dict[str, Any] = {
        "agent": p.agent_id or "",
        "agent_type": p.agent_type or "",
        "cwd": p.cwd or "",
        "transcript": "" if p.agent_id else p.transcript_path or "",  # that is the subagent's
        "mode": p.permission_mode or "",
        "model": p.model or "",
        "source": p.source or p.reason or p.trigger or "",
        "prompt": line(p.prompt or ""),
        "message": line(p.last_assistant_message or ""),
        "tool": tool,
        "tool_id": p.tool_use_id or "",
    }
    if tool:
        given = object_of(value_of(p.tool_input) if p.tool_input else None)
        command = text_of(given, "command")
        # The input of a request has more than the input of its tool.
        facts["tool_key"] = crc32(command.encode("utf-8", "replace") if command else p.tool_input)
        facts["detail"] = tool_detail(tool, p.tool_input)
        facts["asks"] = QUESTIONS.get(tool, "")
    return facts


def _lenient(payload: bytes, truncated: bool) -> CodexPayload:
    """Decode unexpected JSON: use the values that have the right type."""
    p = leniently(CodexPayload, members(payload, truncated))
    if not p.hook_event_name:
        raise ValueError("no event name")
    return p


# Decode the lines that Codex appends to the log of a thread.
#
# Only they show that a turn failed, and who decides on approvals. A line may hold whole prompts
# and files; only what shows the state of the turn is kept.


#: Type of an event → kind.
TURNS: Final = {
    "task_started": "said prompt",
    "task_complete": "said end",  # or said error: by its error
    "turn_aborted": "interrupt",
}
HEAD: Final = 160  # bytes that include a line's type
READ: Final = (b'"event_msg"', b'"turn_context"', b'"session_meta"')
PERSON: Final = "user"
HEADLESS: Final = "exec"


def is_noise(raw: bytes) -> bool:
    """Return whether a line says nothing about the turn: most are what was said and done."""
    head = raw[:HEAD]
    return not any(kind in head for kind in READ)


def entry(session_id: str, entry: Facts, t: float, now: float) -> Event:
    """Decode a line; `t` is when it was written, if it does not say so itself."""
    kind, facts = "note", Facts()
    name, given = text_of(entry, "type"), entry["payload"]
    if name == "event_msg":
        name = text_of(given, "type")
        kind = TURNS.get(name, kind)
        if kind == "said end" and (error := given.get("error")):
            kind = "said error"
            facts["error"] = line(text_of(error, "message")) or "unknown"
    elif name == "turn_context":
        if reviewer := text_of(given, "approvals_reviewer"):
            facts["reviewer"] = "person" if reviewer == PERSON else "program"
        facts["model"] = text_of(given, "model")[:80]
    elif name == "session_meta":
        facts["headless"] = given.get("source") == HEADLESS
    at = time_of(entry.get("timestamp")) or t
    return Event(kind, f"transcript {name[:60]}", at, now, session_id, **facts)


# Decode what Codex's server says of the state of a thread.
#
# It reports to every client when a thread begins to work, to wait, or to rest, but not whether
# a turn that ended was completed, was interrupted or failed.


CHANGED: Final = "thread/status/changed"
#: Types of states at rest; another one, of a thread that is not loaded, says nothing.
RESTS: Final = frozenset({"idle", "systemError"})


def heard(message: Facts) -> Heard | None:
    """Return which thread a message is about, and its state; None if it says nothing."""
    if message.get("method") != CHANGED:
        return None
    given = object_of(message.get("params"))
    thread, seen = text_of(given, "threadId"), thread_state(given.get("status"))
    return Heard(thread, seen) if thread and seen is not None else None


def thread_state(status: object) -> Seen | None:
    """Return what a state means."""
    given = object_of(status)
    kind = text_of(given, "type")
    if kind in RESTS:
        return Seen("idle")
    if kind != "active":
        return None
    flags = list_of(given.get("activeFlags"))
    asks = next((FLAGS[flag] for flag in flags if type(flag) is str and flag in FLAGS), "")
    return Seen("waiting", asks) if asks else Seen("busy")
