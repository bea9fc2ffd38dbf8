"""Events of other agents' hooks and plugins, as they arrive through the spool."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from bellboard.agents.registry import all_agents
from faults.fault import Fault, Kind
from faults.junk import brief, changed, encoded
from faults.target import MAGIC

SESSIONS: Final = ("g0", "g1", "g2", "g3")
#: What the dialects call the session and the event.
SESSION: Final = ("session_id", "sessionId", "sessionID", "session", "thread", "conversation_id")
EVENT: Final = ("hook_event_name", "hookName", "event", "type")
#: Every value that decides what an event means.
DECIDING: Final = {
    "reason": ("startup", "reload", "resume", "quit", "clear"),
    "source": ("startup", "resume", "compact", "new"),
    "status": ("completed", "aborted", "error", "done", "cancelled", {"type": "busy"}),
    "state": ("idle", "running", "awaiting-approval", "error"),
    "was": ("idle", "running", "awaiting-approval", "error"),
    "stopReason": ("stop", "aborted", "error", "end_turn"),
    "notification_type": ("permission_prompt", "idle_prompt", "ToolPermission", "agent_idle"),
    "error": ("x", {"name": "MessageAbortedError"}, {"message": "x"}),
    "reply": ("once", "reject"),
    "answered": (True, False),
}


def _payload(random: Random, event: str) -> dict[str, Any]:
    """Return a payload with the fields of all dialects."""
    sid = random.choice(SESSIONS)
    given: dict[str, Any] = {
        **dict.fromkeys(SESSION, sid),
        **dict.fromkeys(EVENT, event),
        **{name: random.choice(values) for name, values in DECIDING.items()},
        "agent": random.choice(["", "h1"]),
        "agent_id": random.choice(["", "h1"]),
        "cwd": "/srv/project",
        "file": "/srv/none.jsonl",
        "transcript_path": "/srv/none.jsonl",
        "toolName": "bash",
        "tool_name": "bash",
        "toolCallId": "t1",
        "tool_use_id": "t1",
        "args": {"command": "ls"},
        "toolArgs": {"command": "ls"},
        "tool_input": {"command": "ls"},
        "prompt": "do it",
        "message": "do it",
        "text": "Done.",
        "errorMessage": "429",
    }
    given["properties"] = {**given, "id": "per_1", "requestID": "per_1", "patterns": ["ls *"]}
    return given


def payload(random: Random) -> Fault:
    """Put any value into any field of any event of any agent."""
    dialect = random.choice(all_agents())
    event = random.choice([*dialect.kinds])
    raw = encoded(random, changed(random, _payload(random, event)))
    name = "".join(c if c.isalnum() else "_" for c in event)
    head = f"agent={dialect.key}\0event={name}\0pid=0\0\0".encode()
    return Fault(f"{dialect.key} {brief(raw)}", lambda target: target.put(MAGIC + head + raw))


KINDS = (Kind("agents", make=payload, batch=150),)
