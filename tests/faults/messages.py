"""Files that arrive through the spool: hook payloads, headers, lines of evidence."""

from __future__ import annotations

from random import Random
from typing import Any

from bellboard.agents.claude.hooks import KINDS as EVENTS
from bellboard.agents.claude.hooks import NOTIFICATIONS
from faults.fault import NOTHING, Fault, Kind
from faults.junk import brief, changed, encoded, text, value
from faults.target import MAGIC

SESSIONS = ("f0", "f1", "f2", "f3")
HEADERS = (
    *("agent", "event", "pid", "TMUX", "TMUX_PANE", "NVIM", "CLAUDE_PID", "CLAUDE_CONFIG_DIR"),
    *("CLAUDE_PROJECT_DIR", "CLAUDE_JOB_DIR", "CLAUDE_CODE_ENTRYPOINT", "SSH_CONNECTION"),
    *("CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_PARENT_SESSION_ID", "TERM_PROGRAM"),
    "AN_UNKNOWN_ONE",
)


def _payload(random: Random) -> dict[str, Any]:
    """Return a payload with every field that is read."""
    event = random.choice([*EVENTS, "SomethingNew"])
    task = {"id": "b1", "type": random.choice(["shell", "subagent"]), "status": "running"}
    return {
        "session_id": random.choice(SESSIONS),
        "hook_event_name": event,
        "cwd": "/srv/project",
        "transcript_path": "/srv/none.jsonl",
        "tool_name": random.choice(["Bash", "Edit", "AskUserQuestion", "ExitPlanMode", "Agent"]),
        "tool_use_id": "t1",
        "tool_input": {
            "command": "ls",
            "questions": [{"question": "?", "options": [{"label": 1}]}],
        },
        "tool_response": {"stdout": "x"},
        "agent_id": random.choice(["", "x1"]),
        "agent_type": "Explore",
        "permission_mode": "default",
        "permission_suggestions": [{"type": "addRules"}],
        "source": random.choice(["startup", "resume", "clear", "compact"]),
        "reason": "other",
        "trigger": "manual",
        "prompt": "do it",
        "prompt_id": "p1",
        "session_title": "a title",
        "model": "m",
        "to_model": "n",
        "context_tokens": 1000,
        "notification_type": random.choice([*NOTIFICATIONS, "new"]),
        "message": "Claude needs your permission to use Bash",
        "error": "rate_limit",
        "error_details": "later",
        "last_assistant_message": "Done.",
        "stop_hook_active": False,
        "background_tasks": [task],
        "session_crons": [{"id": "c", "next": 1}],
        "mcp_server_name": "db",
        "url": "https://example.invalid/",
        "task_subject": "a task",
    }


def payload(random: Random) -> Fault:
    """Put any value into any field of any event."""
    given = changed(random, _payload(random))
    raw = encoded(random, given)
    event = str(given.get("hook_event_name")) if isinstance(given, dict) else ""
    head = f"agent=claude\0event={event if event in EVENTS else 'unknown'}\0pid=0\0\0".encode()
    return Fault(brief(raw), lambda target: target.put(MAGIC + head + raw))


def header(random: Random) -> Fault:
    """Put any value into any record of the header; break, drop or add records."""
    records = dict.fromkeys(HEADERS, "") | {"agent": "claude", "event": "Stop", "pid": "0"}
    for _ in range(random.randrange(1, 4)):
        records[random.choice(HEADERS)] = text(random)
    rows = [f"{k}={v}".encode("utf-8", "surrogatepass") for k, v in records.items()]
    how = random.randrange(12)
    if how == 0:
        rows.append(random.choice([b"no sign", b"=", b"=x", random.randbytes(40)]))
    if how == 1:
        rows *= 50
    magic = MAGIC if how != 2 else random.choice([b"", b"bellboard 2\0", b"bellboard", b"\0"])
    ends = b"\0\0" if how != 3 else b""
    body = b'{"session_id":"f0","hook_event_name":"Stop"}'
    random.shuffle(rows)
    raw = magic + b"\0".join(rows) + ends + body
    return Fault(brief(raw), lambda target: target.put(raw))


#: A valid line of each kind of evidence.
LINES: dict[str, Any] = {
    "hook": {"session_id": "f1", "hook_event_name": "UserPromptSubmit", "prompt": "x"},
    "decoded": {
        "kind": "request",
        "name": "PermissionRequest",
        "t": 1.79e9,
        "session_id": "f1",
        "origin": {"agent": "claude", "pid": 7, "tty": "/dev/pts/99", "env": {"TERM_PROGRAM": "x"}},
        "key": 1,
        "tool": "Bash",
        "tool_id": "t1",
        "tool_key": 1,
        "asks": "permission",
        "detail": "x",
        "tasks": [{"id": "b1", "type": "shell"}],
        "pid": 4711,
        "at": 1.8e9,
        "children": 1,
        "settings": {"branch": "main"},
    },
    "raw": '{"session_id":"f1","hook_event_name":"Stop"}',
    "registry": {
        "pid": 4711,
        "record": {
            "pid": 4711,
            "sessionId": "f1",
            "cwd": "/srv",
            "status": "waiting",
            "waitingFor": "approve Bash",
            "statusUpdatedAt": 1.8e12,
            "procStart": "77",
            "kind": "bg",
            "entrypoint": "cli",
            "name": "n",
            "nameSource": "user",
        },
    },
    "transcript": {
        "session_id": "f1",
        "entry": {
            "type": "assistant",
            "timestamp": "2027-01-15T08:00:00.000Z",
            "isSidechain": False,
            "message": {
                "role": "assistant",
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 5},
                "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t1"}],
            },
        },
    },
    "process": {"pid": 4711, "alive": True, "started": "77", "children": 1, "found": True},
    "pane": {"tmux": "/tmp/none", "pane": "%1", "alive": True, "tty": "/dev/pts/99"},
    "view": {"session_id": "f1", "how": "looks", "viewer": "me", "tmux": "/tmp/none", "pane": "%1"},
    "goto": {"session_id": "f1"},
    "set": {"session_id": "f1", "status": "blocked"},
    "label": {"session_id": "f1", "label": "HEAVY"},
    "name": {"session_id": "f1", "name": "a name"},
    "park": {"session_id": "f1", "parked": True},
    "snooze": {"session_id": "f1", "until": 1.9e9},
    "submit": {"session_id": "f1", "by": "a shell"},
    "forget": {"session_id": "f2"},
    "facts": {"session_id": "f1", "branch": "main", "ports": [8080], "remotes": ["origin x"]},
    "restart": {},
    "clock": {},
    "tick": {},
    "novelty": {"x": 1},
}


def evidence(random: Random) -> Fault:
    """Put any value into any field of any line."""
    key = random.choice(list(LINES))
    when = random.choice([1.79e9, 1.9e9])  # long ago, or in the future, which counts as now
    told = {"t": when, key: changed(random, LINES[key]), "viewer": "me", "origin": {"pid": 7}}
    if random.random() < 0.2:
        told[random.choice(["t", "arrived", "viewer", "origin"])] = value(random)
    raw = encoded(random, told)
    return Fault(brief(raw), lambda target: target.put(raw), survives=NOTHING)


#: Every option of the rules, as a line of evidence shares them with all hosts.
OPTIONS: dict[str, Any] = {
    "hold": 0.25,
    "settle": 0.25,
    "dwell": 1.0,
    "grace": 15.0,
    "quiet": 600.0,
    "team": 15.0,
    "forget": 86400.0,
    "prompts": 0,
    "silence": 15.0,
    "fresh": 30.0,
    "compaction": 60.0,
    "report": 2.0,
    "late": 45.0,
    "swap": 0.05,
    "approval": {"fast": 3.0, "enabled": True},
    "clear": {"grace": 15.0},
    "pid": 1,
}


def shared(random: Random) -> Fault:
    """Put any value into any option that hosts share."""
    raw = encoded(Random(0), {"t": 1.8e9, "config": changed(random, OPTIONS)})
    good = {**OPTIONS, "approval": False}
    return Fault(brief(raw), lambda x: x.put(raw), lambda x: x.line(config=good), survives=NOTHING)


KINDS = (
    Kind("payload", make=payload, batch=150),
    Kind("header", make=header, batch=150),
    Kind("evidence", make=evidence, batch=150),
    Kind("shared", make=shared, batch=20),
)
