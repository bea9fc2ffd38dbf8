"""Hypothesis strategies: plausible histories of the spool, and impossible ones."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from bellboard.core.machine import TABLE
from bellboard.core.routes import ROUTES
from bellboard.core.session import STATUSES
from rig.host.playback import Line

T0 = 1.8e9
SESSIONS = ("a", "b", "c")
AGENTS = ("", "", "", "x1", "x2")
TOOLS = ("Bash", "Edit", "AskUserQuestion", "ExitPlanMode", "Agent", "mcp__db__ask")
PANES = ("%1", "%2")
SOCKET = "/tmp/tmux-1000/default"

#: Seconds between events: less than the swap time, the hold time, a turn, a night.
GAPS = st.sampled_from([0.0, 0.001, 0.02, 0.06, 0.3, 1.0, 2.5, 20.0, 70.0, 900.0, 90000.0])

sessions = st.sampled_from(SESSIONS)
pids = st.sampled_from([None, 11, 12, 13])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with these fields, any of which may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


running = st.lists(
    st.builds(
        lambda id, type: {"id": id, "type": type, "status": "running", "description": "a job"},
        st.sampled_from(["x1", "x2", "b1"]),
        st.sampled_from(["subagent", "shell", "teammate", "workflow"]),
    ),
    max_size=2,
)
fields = some(
    agent_id=st.sampled_from(AGENTS[2:]),
    agent_type=st.sampled_from(["", "Explore"]),
    tool_name=st.sampled_from(TOOLS),
    tool_use_id=st.sampled_from(["t1", "t2", "t3"]),
    tool_input=st.sampled_from([{"command": "ls"}, {"command": "make"}, {}]),
    source=st.sampled_from(["startup", "resume", "clear", "compact", "fork"]),
    reason=st.sampled_from(["clear", "resume", "other", "prompt_input_exit"]),
    trigger=st.sampled_from(["manual", "auto"]),
    prompt=st.sampled_from(["do it", "more", "<task-notification>done"]),
    notification_type=st.sampled_from(
        ["permission_prompt", "idle_prompt", "elicitation_dialog", "agent_needs_input", "new"]
    ),
    message=st.sampled_from(["Claude needs your permission to use Bash", "hello"]),
    background_tasks=running,
    mcp_server_name=st.just("db"),
    error=st.just("rate_limit"),
)
names = st.sampled_from(
    [
        *("SessionStart", "SessionEnd", "UserPromptSubmit", "UserPromptSubmit", "Stop", "Stop"),
        *("StopFailure", "PreToolUse", "PreToolUse", "PostToolUse", "PostToolUse"),
        *("PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionRequest"),
        *("PermissionDenied", "Elicitation", "ElicitationResult", "Notification", "SubagentStart"),
        *("SubagentStop", "PreCompact", "PostCompact", "TaskCreated", "TaskCompleted"),
        *("TeammateIdle", "StopCancelled", "CwdChanged", "UserPromptExpansion"),
    ]
)
origins = some(
    pid=pids,
    tty=st.sampled_from([None, "/dev/pts/1", "/dev/pts/2"]),
    pane=st.sampled_from(PANES),
    tmux=st.just(SOCKET),
    nvim=st.sampled_from([None, "/run/nvim.1"]),
    env=some(
        CLAUDE_CODE_ENTRYPOINT=st.sampled_from(["cli", "sdk-cli"]),
        CLAUDE_JOB_DIR=st.just("/j"),
        CLAUDE_CODE_PARENT_SESSION_ID=sessions,
    ),
)
hooks = st.builds(
    lambda name, sid, more, origin: {
        "hook": {"session_id": sid, "hook_event_name": name, **more},
        "origin": origin,
    },
    names,
    sessions,
    fields,
    origins,
)
records = st.builds(
    lambda sid, more: {"sessionId": sid, "cwd": "/home/u/proj", **more},
    sessions,
    some(
        status=st.sampled_from(["busy", "idle", "waiting", "shell"]),
        waitingFor=st.sampled_from(["permission prompt", "input needed", "dialog open"]),
        procStart=st.sampled_from(["1", "2"]),
        name=st.sampled_from(["tidy css", "zsh prompt"]),
    ),
)
entries = st.sampled_from(
    [
        {"type": "user", "message": {"content": "do it"}},
        {"type": "user", "message": {"content": "[Request interrupted by user]"}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1"}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "so"}]}},
        {"type": "assistant", "message": {"content": [], "stop_reason": "end_turn"}},
        {
            "type": "assistant",
            "message": {"content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
        },
        {"type": "assistant", "isApiErrorMessage": True, "message": {"content": []}},
        {"type": "system", "subtype": "turn_duration"},
        {"type": "system", "subtype": "api_error"},
    ]
)
views = st.sampled_from(
    [None, {"session_id": "a"}, {"session_id": "b"}, {"tmux": SOCKET, "pane": "%1"}]
)
machines = st.sampled_from(["dev", "box"])
rows = st.builds(
    lambda sid, status, ago, more: {
        "session_id": sid,
        "agent": "claude",
        "status": status,
        "since": T0 - ago,
        "updated": T0 - ago,
        **more,
    },
    sessions,
    st.sampled_from(STATUSES),
    st.sampled_from([-500.0, 0.0, 3.0, 90000.0]),
    some(
        markers=st.lists(st.sampled_from(["unseen", "parked", "stale"]), max_size=2, unique=True),
        hidden=st.booleans(),
        label=st.just("HEAVY"),
    ),
)
cursors = some(cursor=st.sampled_from(["d.1", "d.2", "d.3", "e.1"]), done=st.booleans())
far = st.one_of(
    st.builds(
        lambda m, row, found, more: {"far": {"machine": m, "row": row, "found": found, **more}},
        machines,
        rows,
        st.booleans(),
        cursors,
    ),
    st.builds(
        lambda m, how, ids, more: {"far": {"machine": m, how: ids, **more}},
        machines,
        st.sampled_from(["gone", "all"]),
        st.lists(sessions, max_size=2),
        cursors,
    ),
    st.builds(
        lambda m, more: {"link": {"machine": m, **more}},
        machines,
        st.sampled_from([{"up": True}, {"up": False, "why": "no route"}, {"gone": True}]),
    ),
)
others = st.one_of(
    st.builds(lambda p, r: {"registry": {"pid": p or 11, "record": r}}, pids, st.none() | records),
    st.builds(lambda s, e: {"transcript": {"session_id": s, "entry": e}}, sessions, entries),
    st.builds(lambda p, a: {"process": {"pid": p or 11, "alive": a}}, pids, st.booleans()),
    st.builds(
        lambda p, a: {"pane": {"tmux": SOCKET, "pane": p, "alive": a, "tty": "/dev/pts/1"}},
        st.sampled_from(PANES),
        st.booleans(),
    ),
    st.builds(lambda v, who: {"view": v, "viewer": who}, views, st.sampled_from(["u", "v"])),
    st.builds(lambda s: {"goto": {"session_id": s}}, sessions),
    st.builds(
        lambda s, x: {"set": {"session_id": s, "status": x}},
        sessions,
        st.sampled_from(["idle", "blocked", "working", "background", "no such status"]),
    ),
    st.builds(lambda s: {"label": {"session_id": s, "label": "HEAVY"}}, sessions),
    st.builds(lambda s: {"submit": {"session_id": s, "by": "a shell"}}, sessions),
    st.builds(
        lambda s, x: {"answer": {"session_id": s, "choice": "allow", "way": "hook", **x}},
        sessions,
        some(outcome=st.just("taken"), by=st.just("Neovim 4711"), pid=pids),
    ),
    st.sampled_from([{"tick": {}}, {"tick": {}}, {"restart": {}}]),
    far,
)


@st.composite
def histories(draw: st.DrawFn, most: int = 40) -> list[Line]:
    """A plausible content of the spool: mostly hook events, mostly in order."""
    t, lines = T0, []
    for told in draw(st.lists(st.one_of(hooks, hooks, hooks, others), min_size=1, max_size=most)):
        t += draw(GAPS)
        late = draw(st.sampled_from([0.0, 0.0, 0.0, 0.03, 4.0]))
        lines.append({"t": t - late, "arrived": t, **told})
    return lines


# ---------------------------------------------------------------- impossible histories

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = (
    *("t", "arrived", "hook", "origin", "registry", "transcript", "process", "pane", "view"),
    *("far", "link", "machine", "row", "gone", "all", "ids", "up", "cursor", "since"),
    *(
        "goto",
        "set",
        "label",
        "config",
        "raw",
        "restart",
        "facts",
        "name",
        "park",
        "snooze",
        "submit",
    ),
    *(
        "answer",
        "choice",
        "way",
        "pid",
        "record",
        "session_id",
        "sessionId",
        "entry",
        "status",
        "type",
        "message",
        "content",
    ),
    *("hook_event_name", "tool_name", "tool_input", "agent_id", "background_tasks", "timestamp"),
    *("decoded", "kind"),
)
#: Objects with known keys and arbitrary values.
wrong_shapes = st.recursive(
    json_values | st.sampled_from([*SESSIONS, "Stop", "PreToolUse", "working", 11, T0]),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)
decoded_events = st.builds(
    lambda kind, session_id, facts: {"kind": kind, "session_id": session_id, **facts},
    st.sampled_from([*TABLE, *ROUTES, "novel"]),
    sessions | st.just(""),
    some(
        key=st.integers(1, 3),
        pid=pids,
        origin=st.just({"pid": 11, "tty": "/dev/pts/1"}),
        agent=st.just("g1"),
        tool=st.just("Bash"),
        tool_id=st.just("t1"),
        status=st.sampled_from(["busy", "idle", "waiting", "working", "no such status"]),
        asks=st.sampled_from(["permission", "question", "no such kind"]),
        source=st.sampled_from(["away", "gone"]),
        viewer=st.just("u"),
        alive=st.booleans(),
        settings=st.just({"grace": "x", "branch": [1]}),
    ),
)
texts = st.one_of(
    wrong_shapes.map(lambda x: json.dumps(x).encode()),
    st.binary(max_size=200),
    hooks.map(lambda x: json.dumps(x["hook"]).encode()[:-7]),
)
