"""Decode Codex's reports: hook events, logs, and the server's messages about threads.

Only fields that a rule or a screen needs are read; of prompts and tool inputs, only a short line is
kept.  This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from ...core.events import Event
from ...core.last_turn import Touched, TurnLog, created_file, merged
from ...core.text import line, usable_paths, whole
from ...core.untrusted import (
    LARGEST,
    Facts,
    list_of,
    number_of,
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
#: The files that a patch names.
_PATCHED: Final = re.compile(r"^[ \t]*\*{3} (?:(?:Add|Delete|Update) File|Move to):(.+)", re.M)
QUESTION: Final = "request_user_input"
#: Tool that asks a person → the kind of question.
QUESTIONS: Final = {QUESTION: "question"}
#: The server's word for a thread that waits → the kind of question.
FLAGS: Final = {"waitingOnApproval": "permission", "waitingOnUserInput": "question"}
#: Arguments of processes whose threads no terminal shows.
NO_TERMINAL: Final = frozenset({"app-server", "exec", "mcp-server"})
SERVER: Final = "app-server"  # the argument of a process that runs the threads of many terminals


# ---------------------------------------------------------------- hook events


def patched(patch: str, folder: str) -> list[str]:
    """Return the paths of the files that a patch changes, in a folder."""
    named = dict.fromkeys(map(str.strip, _PATCHED.findall(patch)))
    return [path if path.startswith("/") else f"{folder or '?'}/{path}" for path in named]


def _tool(top: Facts, facts: Facts) -> None:
    facts["asks"] = QUESTIONS.get(facts.get("tool", ""), "")
    # The input of a request has more than the input of its tool.
    if command := text_of(object_of(top.get("tool_input")), "command"):
        facts["tool_key"] = crc32(command.encode("utf-8", "replace"))
        if facts.get("tool") == PATCH:
            facts["writes"] = usable_paths(patched(command, text_of(top, "cwd")))


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


# ---------------------------------------------------------------- its last turn

CALLS: Final = b"_call"  # in the type of a line with the call of a tool
COMMAND: Final = "exec_command"


def is_unread(raw: bytes) -> bool:
    """Return whether a line says nothing about what was said and done."""
    head = raw[:HEAD]
    return b'"event_msg"' not in head and CALLS not in head


def last_turn(newest_first: Iterable[Facts]) -> TurnLog:
    """Return what was said and done in the last turn of a log."""
    log, edits, tokens = TurnLog(), list[Touched](), 0.0
    for line_ in newest_first:
        given = object_of(line_.get("payload"))
        kind, at = text_of(given, "type"), time_of(line_.get("timestamp")) or 0.0
        item = object_of(given.get("item"))
        item_type = text_of(item, "type")
        if kind == "task_started":
            log.began = at
            break
        if line_.get("type") != "event_msg":
            call = text_of(given, "input") or text_of(given, "arguments")
            log.runs |= COMMAND in call or PATCH not in (call + text_of(given, "name"))
        elif kind in TURNS:
            log.ended, log.text = at, text_of(given, "last_agent_message")
            log.text = log.text or text_of(object_of(given.get("error")), "message")
        elif kind == "token_count":
            tokens += _used(object_of(object_of(given.get("info")).get("last_token_usage")))
        elif item_type == "AgentMessage":
            log.text = log.text or _words(item)
        elif item_type == "UserMessage":
            log.prompt = f"{_words(item)}\n\n{log.prompt}".strip()
        elif item_type == "FileChange" and item.get("status") == "completed":
            edits += map(_edit, object_of(item.get("changes")).items())
    log.took = max(0.0, log.ended - log.began)
    log.tokens = int(tokens) if 0 < tokens < LARGEST else 0
    paths = dict.fromkeys(each.path for each in reversed(edits))
    log.touched = [merged([e for e in edits[::-1] if e.path == path]) for path in paths]
    return log


def _words(item: Facts) -> str:
    blocks = (object_of(block) for block in list_of(item.get("content")))
    return "\n\n".join(filter(None, (text_of(block, "text") for block in blocks))).strip()


def _edit(change: tuple[str, object]) -> Touched:
    path, given = f"/{whole(change[0]).lstrip('/')}", object_of(change[1])
    if given.get("type") == "add":
        return created_file(path, text_of(given, "content"))
    if given.get("type") == "delete":
        rows = text_of(given, "content").splitlines()
        hunk = (f"@@ -1,{len(rows)} +0,0 @@", *(f"-{row}" for row in rows))
        return Touched(path, known=True, hunks=hunk)
    moved, hunks = text_of(given, "move_path"), text_of(given, "unified_diff").splitlines()
    return Touched(moved or path, was=path if moved else "", known=True, hunks=tuple(hunks))


def _used(usage: Facts) -> float:
    """Return the tokens that were read anew and written."""
    read, cached, wrote = (
        number_of(usage.get(f"{name}_tokens")) or 0 for name in ("input", "cached_input", "output")
    )
    return max(0.0, read - cached) + wrote


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
