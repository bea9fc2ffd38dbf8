"""Recordings of real CLIs: titles, logs and processes count for the session in the terminal."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from bellboard.agents.traces import replay
from bellboard.core.board import Board
from bellboard.core.session import is_listed, status_of

TERMINAL, LOG = 70, "rollout-1.jsonl"
SPINS, ASKS, RESTS = "\u280b proj", "[ ! ] Action Required | proj", "proj"
Line = dict[str, Any]


def hook(event: str, session: str = "s1", pid: int = TERMINAL, **more: Any) -> Line:
    """Return the line of a hook of Codex, which `pid` ran."""
    payload = {"session_id": session, "hook_event_name": event, **more}
    payload["transcript_path"] = f"/home/user/.codex/sessions/{LOG}"
    words = "codex app-server --listen" if pid != TERMINAL else "codex"
    rows = ["not a tty", f"{pid} 1 {pid} {pid} pts/3 {words}", f"99 {pid} 99 99 ? sh hook.sh"]
    origin = {"agent": "codex", "ps": rows, "env": {"TMUX": "/tmp/tmux-1/a,1,0", "TMUX_PANE": "%1"}}
    return {"event": event, "hook": payload, "pid": 99, "ppid": pid, "origin": origin}


def said(kind: str, **payload: Any) -> Line:
    line = {"type": "event_msg", "payload": {"type": kind, **payload}}
    return {"file": LOG, "line": line}


def rpc(thread: str, state: str | None, *flags: str) -> Line:
    """Return a message of a server of Codex about a thread."""
    status = {"type": state, "activeFlags": [*flags]}
    return {
        "rpc": {"method": "thread/status/changed", "params": {"threadId": thread, "status": status}}
    }


def opencode(kind: str, session: str, **properties: Any) -> Line:
    """Return the line of a plugin in OpenCode that only records an event."""
    payload = {"type": kind, "properties": {"sessionID": session, **properties}}
    origin = {"agent": "opencode", "ps": [], "env": {}}
    return {"event": kind, "hook": payload, "pid": TERMINAL, "ppid": 1, "origin": origin}


def process(alive: bool) -> Line:
    return {"process": {"pid": TERMINAL, "alive": alive, "tty": "/dev/pts/3"}}


ASKED = (
    hook("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="x1"),
    hook("PermissionRequest", tool_name="Bash", tool_input={"command": "ls"}),
)


def statuses(*lines: Line) -> dict[str, str]:
    """Return the status of each session after these lines, one second apart."""
    board, clock = Board(), count(1_800_000_000)
    for _ in replay((json.dumps({"t": next(clock), **x}).encode() for x in lines), board):
        pass
    assert not board.ledger.counts
    return {sid: status_of(s) for sid, s in board.sessions.items() if is_listed(s)}


def test_a_title_before_any_hook_belongs_to_the_session_that_follows() -> None:
    """A title at rest does not count until a title has shown work."""
    before = (process(True), {"title": RESTS}, {"title": SPINS})
    assert {} == statuses(*before)
    assert {"s1": "working"} == statuses(*before, hook("SessionStart"), {"title": SPINS})
    told = statuses(process(True), {"title": RESTS}, hook("UserPromptSubmit"), {"title": RESTS})
    assert {"s1": "working"} == {**told, **statuses(*before, hook("UserPromptSubmit"))}


def test_a_title_says_that_a_question_is_shown_and_answered() -> None:
    """No hook says that a permission was granted; a hook that waits hides the dialog."""
    start = (process(True), hook("UserPromptSubmit"), {"title": SPINS}, *ASKED)
    assert {"s1": "working"} == statuses(*start, {"tick": {}})
    assert {"s1": "blocked"} == statuses(*start, {"title": ASKS})
    assert {"s1": "working"} == statuses(*start, {"title": ASKS}, {"title": SPINS})
    assert {"s1": "idle"} == statuses(*start, {"title": ASKS}, {"title": RESTS}, {"tick": {}})


def test_a_server_says_that_a_question_is_shown_and_answered() -> None:
    """It does without titles, for the thread that it names; other messages mean nothing."""
    start = (
        *(hook("UserPromptSubmit", "s1", 80), hook("UserPromptSubmit", "s2", 80)),
        *(hook("UserPromptSubmit", "s3"), {"rpc": {"method": "initialized"}}),
        *(rpc("s2", "active"), rpc("s1", "active", "waitingOnApproval"), rpc("helper", "active")),
    )
    both = {"s1": "blocked", "s2": "working", "s3": "working"}
    assert both == statuses(*start)
    assert {**both, "s1": "working"} == statuses(*start, rpc("s1", "active"))
    assert {**both, "s1": "idle"} == statuses(*start, rpc("s1", "idle"), {"tick": {}})
    assert {**both, "s2": "blocked"} == statuses(*start, rpc("s2", "active", "waitingOnUserInput"))
    for odd in ("notLoaded", "brandNew", None):
        assert both == statuses(*start, rpc("s1", odd), {"tick": {}})


def test_a_title_that_is_behind_its_server_answers_nothing() -> None:
    """A dialog opens up to a second later; of a subagent, only the title tells that it waits."""
    start = (process(True), hook("UserPromptSubmit", "s1", 80), rpc("s1", "active"))
    asked = (*start, rpc("s1", "active", "waitingOnApproval"))
    assert {"s1": "blocked"} == statuses(*asked, {"title": SPINS})
    assert {"s1": "blocked"} == statuses(*asked, {"title": SPINS}, {"title": ASKS})
    assert {"s1": "working"} == statuses(*asked, {"title": SPINS}, rpc("s1", "active"))
    assert {"s1": "working"} == statuses(*asked, {"title": ASKS}, {"title": SPINS})
    assert {"s1": "blocked"} == statuses(*start, {"title": SPINS}, {"title": ASKS})
    assert {"s1": "working"} == statuses(*start, {"title": ASKS}, {"title": SPINS})


def test_without_a_title_a_request_is_shown_unless_a_program_decides() -> None:
    """Who decides is in the log, which may be written before the first hook."""
    asked = (hook("UserPromptSubmit"), *ASKED, {"tick": {}})
    reviewed = {"type": "turn_context", "payload": {"approvals_reviewer": "auto_review"}}
    assert {"s1": "blocked"} == statuses(*asked)
    assert {"s1": "working"} == statuses({"file": LOG, "line": reviewed}, *asked)


def test_an_error_is_in_the_log() -> None:
    """Codex runs no hook when a turn fails."""
    failed = said("task_complete", error={"message": "no such key"})
    late = {**failed["line"], "timestamp": "2027-01-15T08:00:02.900Z"}
    prompt = (process(True), hook("UserPromptSubmit"))
    assert {"s1": "error"} == statuses(*prompt, failed)
    assert {"s1": "error"} == statuses(*prompt, {"title": SPINS}, failed, {"title": RESTS})
    assert {"s1": "error"} == statuses(
        *prompt, {"title": SPINS}, {"title": RESTS}, {**failed, "line": late}
    )


def test_notes_for_the_judge_of_a_recording_are_not_evidence() -> None:
    """Notes are the screen's text, and the log of a CLI whose hooks report everything."""
    truth = {"truth": "blocked", "note": "screen", "screen": ["Would you like to run this?"]}
    prompt = (process(True), hook("UserPromptSubmit"))
    assert {"s1": "working"} == statuses(*prompt, truth, {"note": "press y"})
    asked = hook("UserPromptSubmit", prompt="do it")
    asked["origin"]["agent"] = "qwen"
    assert {"s1": "working"} == statuses(asked, {"file": LOG, "line": {"type": "user"}})


def test_a_server_runs_several_sessions_and_its_place_is_not_theirs() -> None:
    """Both stay listed; the terminal that one sits in ends, and the server goes on."""
    both = (hook("UserPromptSubmit", "s1", 80), hook("UserPromptSubmit", "s2", 80))
    assert {"s1": "working", "s2": "working"} == statuses(process(True), *both)
    alone = (hook("UserPromptSubmit", "s1"), hook("Stop", "s1"), hook("UserPromptSubmit", "s2"))
    assert {"s2": "working"} == statuses(process(True), *alone)


def test_a_run_without_a_terminal_of_its_own_is_the_tool_of_another_program() -> None:
    """The log of `codex exec` shows its kind."""
    meta = {"file": LOG, "line": {"type": "session_meta", "payload": {"source": "exec"}}}
    prompt = hook("UserPromptSubmit")
    assert {"s1": "working"} == statuses(prompt)
    assert {} == statuses(meta, prompt, {"tick": {}})


def test_the_session_of_a_subagent_is_part_of_the_one_that_shows_it() -> None:
    """In OpenCode, only the event that creates it names its parent."""

    def state(session: str, word: str) -> Line:
        return opencode("session.status", session, status={"type": word})

    def created(session: str, parent: str | None = None) -> Line:
        return opencode("session.created", session, info={"id": session, "parentID": parent})

    start = (process(True), created("A"), state("A", "busy"), created("C", "A"), state("C", "busy"))
    asked = opencode("permission.asked", "C", id="p1", permission="bash")
    deeper = (created("D", "C"), opencode("permission.asked", "D", id="p2", permission="bash"))
    granted = opencode("permission.replied", "C", requestID="p1", reply="once")
    ended = (state("C", "idle"), opencode("session.idle", "C"))
    assert {"A": "working"} == statuses(*start)
    assert {"A": "blocked"} == statuses(*start, asked, {"tick": {}})
    assert {"A": "blocked"} == statuses(*start, *deeper, {"tick": {}})
    assert {"A": "working"} == statuses(*start, asked, granted, *ended, {"tick": {}})
    rest = (state("A", "busy"), state("A", "idle"), opencode("session.idle", "A"))
    assert {"A": "completed"} == statuses(*start, asked, granted, *ended, *rest)


def test_a_log_with_the_name_of_all_logs_is_that_of_the_newest_session() -> None:
    """In Copilot, also if the session before it, which /clear has ended, has named its own."""

    def copilot(event: str, session: str, **more: Any) -> Line:
        line = hook(event, session)
        payload, origin = {"sessionId": session, **more}, {**line["origin"], "agent": "copilot"}
        return {**line, "hook": payload, "origin": origin}

    log = {"transcriptPath": "/home/user/.copilot/session-state/s1/events.jsonl"}
    abort = {"file": "events.jsonl", "line": {"type": "abort", "data": {"reason": "user_abort"}}}
    first = (process(True), copilot("userPromptSubmitted", "s1", prompt="one"))
    cleared = (copilot("agentStop", "s1", **log), copilot("sessionEnd", "s1", reason="user_exit"))
    second = (copilot("sessionStart", "s2"), copilot("userPromptSubmitted", "s2", prompt="two"))
    assert {"s1": "idle"} == statuses(*first, abort)
    assert {"s2": "working"} == statuses(*first, *cleared, *second)
    assert {"s2": "idle"} == statuses(*first, *cleared, *second, abort)
