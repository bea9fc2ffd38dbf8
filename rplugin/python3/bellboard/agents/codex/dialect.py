"""Decode Codex's reports: hook events, logs, and the server's messages about threads.

Only fields that a rule or a screen needs are read; of prompts and tool inputs, only a short line is
kept.  This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from ...core.events import Event
from ...core.text import line
from ...core.untrusted import (
    Facts,
    list_of,
    object_of,
    text_of,
    time_of,
)
from ..agent import Heard, Seen
from ..words import STARTS, Words, from_key, kind_in

KEY: Final = "codex"  # its name in evidence
#: Hook → kind, a row of the table in `machine.py`.
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
#: Tool that asks a person → the kind of question.
QUESTIONS: Final = {QUESTION: "question"}
#: The server's word for a thread that waits → the kind of question.
FLAGS: Final = {"waitingOnApproval": "permission", "waitingOnUserInput": "question"}
#: Statuses in which a terminal cannot leave a thread.
AT_WORK: Final = frozenset({"working", "blocked", "background"})
#: Arguments of processes whose threads no terminal shows.
NO_TERMINAL: Final = frozenset({"app-server", "exec", "mcp-server"})
SERVER: Final = "app-server"  # the argument of a process that runs the threads of many terminals


# ---------------------------------------------------------------- hook events


def _tool(top: Facts, facts: Facts) -> None:
    facts["asks"] = QUESTIONS.get(facts.get("tool", ""), "")
    # The input of a request has more than the input of its tool.
    if command := text_of(object_of(top.get("tool_input")), "command"):
        facts["tool_key"] = crc32(command.encode("utf-8", "replace"))


def _before(top: Facts, facts: Facts) -> str | None:
    _tool(top, facts)
    return "question" if facts["asks"] else None


def _request(top: Facts, facts: Facts) -> None:
    _tool(top, facts)
    facts["asks"] = "permission"


WORDS: Final = Words(
    KINDS,
    {
        "SessionStart": kind_in(STARTS, "source"),
        "SessionEnd": from_key("source", "reason"),
        "PreToolUse": _before,
        "PermissionRequest": _request,
        "PostToolUse": _tool,
        "PreCompact": from_key("source", "trigger"),
        "PostCompact": from_key("source", "trigger"),
    },
)


# ---------------------------------------------------------------- lines of a log
#
# Only logs show that a turn failed, and who decides on approvals. A line may hold whole prompts
# and files; only the state of the turn is kept.


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
    """Return whether a line says nothing about the turn, like most: messages and tool calls."""
    head = raw[:HEAD]
    return not any(kind in head for kind in READ)


def entry(session_id: str, entry: Facts, t: float, now: float) -> Event:
    """Decode a line; `t` is its time, if the line itself has none."""
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


# ---------------------------------------------------------------- what its server says
#
# The server reports to every client when a thread begins to work, to wait, or to rest, but not
# whether a turn was completed, was interrupted or failed.


CHANGED: Final = "thread/status/changed"
#: Types of states at rest; the type of a thread that is not loaded says nothing.
RESTS: Final = frozenset({"idle", "systemError"})


def heard(message: Facts) -> Heard | None:
    """Return the thread and the state that a message reports; None if it reports neither."""
    if message.get("method") != CHANGED:
        return None
    given = object_of(message.get("params"))
    thread, seen = text_of(given, "threadId"), thread_state(given.get("status"))
    return Heard(thread, seen) if thread and seen is not None else None


def thread_state(status: object) -> Seen | None:
    """Return a state in our words."""
    given = object_of(status)
    kind = text_of(given, "type")
    if kind in RESTS:
        return Seen("idle")
    if kind != "active":
        return None
    flags = list_of(given.get("activeFlags"))
    asks = next((FLAGS[flag] for flag in flags if type(flag) is str and flag in FLAGS), "")
    return Seen("waiting", asks) if asks else Seen("busy")
