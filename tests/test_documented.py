"""CLIs known by their documentation only: their payloads as documented, and what is shown.

Recordings of Kimi Code are in `traces/clis.jsonl`.
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import pytest

from bellboard.agents.registry import agent_of
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.session import is_listed, status_of
from playback import Line, play

if sys.version_info >= (3, 11):
    import tomllib

T = 1.8e9
ARGUMENT = "argument of the hook"  # key of the event of a payload that names none
pytestmark = pytest.mark.pure


def shown(agent: str, *told: dict[str, Any]) -> list[str]:
    """Return the statuses that are shown while these payloads arrive, a second apart."""
    origin = {"agent": agent, "pid": 11}
    lines: list[Line] = [
        {"t": T + n, "event": payload.pop(ARGUMENT, ""), "hook": payload, "origin": origin}
        for n, payload in enumerate(map(dict, told))
    ]
    return [c["to"] for c in play([*lines, {"t": T + len(lines), "tick": {}}])[0]]


def cursor(event: str, **more: Any) -> dict[str, Any]:
    common = {"conversation_id": "c1", "generation_id": "g1", "model": "gpt", "cursor_version": "2"}
    roots = {"workspace_roots": ["/home/u/proj"], "user_email": "someone@example.com"}
    return {**common, **roots, "hook_event_name": event, "transcript_path": None, **more}


def test_cursor_says_how_a_turn_ended() -> None:
    prompt = cursor("beforeSubmitPrompt", prompt="do it", attachments=[])
    for status, then in (("completed", "completed"), ("aborted", "idle"), ("error", "error")):
        stop = cursor("stop", status=status, loop_count=0)
        assert shown("cursor", prompt, stop) == ["working", then]


def test_cursor_is_never_blocked() -> None:
    """Cursor has no event for a question, and a long tool may be at work."""
    told = [
        cursor("sessionStart"),
        cursor("beforeSubmitPrompt", prompt="do it"),
        cursor("preToolUse", tool_name="Shell", tool_input={"command": "make"}, tool_use_id="t1"),
        cursor("beforeShellExecution", command="make", cwd="/home/u/proj"),
        *[cursor("afterAgentThought", text="hm", duration_ms=n) for n in range(30)],
        cursor("postToolUse", tool_name="Shell", tool_use_id="t1", tool_output="done"),
        cursor("stop", status="completed", loop_count=0),
        cursor("sessionEnd", reason="user_close"),
    ]
    assert shown("cursor", *told) == ["idle", "working", "completed", None]


def goose(event: str, **more: Any) -> dict[str, Any]:
    return {"event": event, "session_id": "abc-123", **more}


def test_goose_works_and_completes() -> None:
    tool = {"tool_name": "developer__shell", "tool_input": {"command": "rg TODO"}}
    tool |= {"tool_call_id": "t1", "matcher_context": "developer__shell"}
    told = [
        goose("SessionStart"),
        goose("UserPromptSubmit", message="summarize this file", matcher_context="summarize"),
        goose("PreToolUse", working_dir="/home/u/proj", **tool),
        goose("PostToolUse", working_dir="/home/u/proj", **tool),
        goose("Stop", last_assistant_message="Done."),
        goose("SessionEnd"),
    ]
    assert shown("goose", *told) == ["idle", "working", "completed", None]


def droid(event: str, **more: Any) -> dict[str, Any]:
    common = {"session_id": "fd-1", "transcript_path": "/home/u/.factory/fd-1.jsonl"}
    where = {"cwd": "/home/u/proj", "permission_mode": "auto"}
    return {**common, **where, "hook_event_name": event, **more}


@pytest.mark.parametrize("typed", [True, False], ids=["with a type", "without a type"])
def test_droid_asks_by_notification_until_the_tool_is_over(typed: bool) -> None:
    tool = {"tool_name": "Execute", "tool_input": {"command": "make"}}
    asks = {"message": "Droid needs your permission to use Execute"}
    asks |= {"notification_type": "permission_prompt"} if typed else {}
    told = [
        droid("SessionStart", source="startup"),
        droid("UserPromptSubmit", prompt="do it"),
        droid("PreToolUse", **tool),
        droid("Notification", **asks),
        droid("Notification", message="Task completed successfully"),
        droid("PostToolUse", **tool, tool_response={}),
        droid("Stop", stop_hook_active=False),
        droid("SessionEnd", reason="other"),
    ]
    wanted = ["idle", "working", "blocked", "working", "completed", None]
    assert shown("droid", *told) == wanted


def agy(event: str, **more: Any) -> dict[str, Any]:
    common = {"conversationId": "a-1", "workspacePaths": ["/home/u/proj"], "modelName": "flash"}
    return {ARGUMENT: event, **common, "transcriptPath": "/t.jsonl", **more}


def agy_stops(reason: str, **more: Any) -> dict[str, Any]:
    how = {"executionNum": 0, "terminationReason": reason, "error": "", "fullyIdle": True}
    return agy("Stop", **how, **more)


def test_antigravity_works_until_it_is_fully_idle() -> None:
    told = [
        agy("SessionStart"),
        agy("PreInvocation", invocationNum=0, initialNumSteps=2),
        agy("PreInvocation", invocationNum=1, initialNumSteps=4),
        {**agy_stops("NO_TOOL_CALL"), "fullyIdle": False},
        agy("PreInvocation", invocationNum=0, initialNumSteps=6),
        agy_stops("NO_TOOL_CALL"),
    ]
    assert shown("antigravity", *told) == ["idle", "working", "completed"]


def test_antigravity_says_how_a_turn_ended() -> None:
    prompt = agy("PreInvocation", invocationNum=0)
    failed = {**agy_stops("EXECUTOR_TERMINATION_REASON_ERROR"), "error": "quota"}
    cancelled = agy_stops("EXECUTOR_TERMINATION_REASON_USER_CANCELED")
    for stop, then in ((cancelled, "idle"), (failed, "error"), (agy_stops(""), "completed")):
        assert shown("antigravity", prompt, stop) == ["working", then]


def test_antigravity_is_never_asked_whether_a_tool_may_run() -> None:
    """It would take our silence for a no.  Its other hooks have to print an object."""
    (name,) = hooks = json.loads(hooked("antigravity"))
    assert name == "bellboard"
    assert hooks[name].keys() == {"SessionStart", "PreInvocation", "Stop"}
    for event, (handler,) in hooks[name].items():
        assert handler.keys() == {"type", "command", "timeout"}  # one it does not know voids all
        assert handler["command"].startswith(f"echo '{{}}'; emit {event} ")


def kimi(event: str, **more: Any) -> dict[str, Any]:
    common = {"session_id": "km-1", "session_title": "Fix it", "client_type": "kimi_code_cli"}
    return {"hook_event_name": event, **common, "cwd": "/home/u/proj", **more}


def test_kimi_asks_and_is_answered() -> None:
    tool = {"tool_name": "Shell", "tool_input": {"command": "git push"}, "tool_call_id": "call_1"}
    main = {"agent_id": "main", "turn_id": 3}
    told = [
        kimi("SessionStart", source="startup", model="k2", profile="default"),
        kimi("UserPromptSubmit", prompt="do it"),
        kimi("TurnStarted", turn_id=3, origin_kind="user", origin_name="", prompt="do it"),
        kimi("PreToolUse", **tool),
        kimi("PermissionRequest", id="apr-1", action="run command", **main, **tool),
        kimi("PermissionResult", id="apr-1", decision="approved", **main, **tool),
        kimi("PostToolUse", **tool, tool_output="ok"),
        kimi("Stop", stop_hook_active=False),
        kimi("SessionEnd", reason="exit"),
    ]
    wanted = ["idle", "working", "blocked", "working", "completed", None]
    assert shown("kimi", *told) == wanted


def test_kimi_waits_while_its_tool_asks_a_question() -> None:
    """No other event says so (seen on 2.1.0); dismissed questions end like answered ones."""
    given = {"questions": [{"question": "Which colour?"}]}
    tool = {"tool_name": "AskUserQuestion", "tool_input": given, "tool_call_id": "call_1"}
    told = [
        kimi("UserPromptSubmit", prompt="do it"),
        kimi("PreToolUse", **tool),
        kimi("PostToolUse", **tool, tool_output="dismissed"),
        kimi("Stop", stop_hook_active=False),
    ]
    assert shown("kimi", *told) == ["working", "blocked", "working", "completed"]


def test_kimi_says_that_it_was_interrupted_or_failed() -> None:
    prompt = kimi("UserPromptSubmit", prompt="do it")
    esc = kimi("Interrupt", turn_id=3, reason="cancelled")
    failed = kimi("StopFailure", error_type="rate_limit", error_message="too many requests")
    assert shown("kimi", prompt, esc) == ["working", "idle"]
    assert shown("kimi", prompt, failed) == ["working", "error"]


def crush(event: str, **more: Any) -> dict[str, Any]:
    return {"event": event, "session_id": "313909e", "cwd": "/home/u/proj", **more}


def test_crush_asks_and_is_answered() -> None:
    tool = {"tool_name": "bash", "tool_input": {"command": "git push"}}
    told = [
        crush("SessionStart"),
        crush("TurnStart"),
        crush("PreToolUse", **tool),
        crush("PermissionRequest", **tool),
        crush("PermissionResult", **tool),
        crush("PostToolUse", **tool),
        crush("TurnEnd", text="Done."),
        crush("SessionEnd"),
    ]
    wanted = ["idle", "working", "blocked", "working", "completed", None]
    assert shown("crush", *told) == wanted


def test_crush_says_that_it_was_interrupted_or_failed() -> None:
    """The event counts even if the turn then ends as well."""
    prompt, over = crush("TurnStart"), crush("TurnEnd", text="")
    assert shown("crush", prompt, crush("Interrupt"), over) == ["working", "idle"]
    assert shown("crush", prompt, crush("StopFailure"), over) == ["working", "error"]


def test_an_older_crush_says_only_that_it_uses_a_tool() -> None:
    tool = {"tool_name": "bash", "tool_input": {"command": "rm -rf /"}}
    assert shown("crush", crush("PreToolUse", **tool)) == ["working"]


def test_the_hooks_of_crush_run_in_a_shell_whose_parent_is_crush() -> None:
    """Crush's own shell is part of it: in there, the parent is whoever started Crush."""
    for handlers in json.loads(hooked("crush"))["hooks"].values():
        (shell, option, command) = shlex.split(handlers[0]["command"])
        assert (shell, option) == ("sh", "-c")
        assert '"$PPID" crush' in command


def amp(event: str, **more: Any) -> dict[str, Any]:
    return {"event": event, "thread": "T-1", "cwd": "/home/u/proj", **more}


def test_amp_asks_and_is_answered() -> None:
    asking, working = "awaiting-approval", "running"
    told = [
        amp("session.start"),
        amp("agent.start", message="do it"),
        amp("thread.state", state=working, was="idle"),
        amp("thread.state", state=asking, was=working),
        amp("thread.state", state=working, was=asking),
        amp("thread.state", state="idle", was=working),
        amp("agent.end", status="done"),
    ]
    assert shown("amp", *told) == ["idle", "working", "blocked", "working", "completed"]


def test_amp_says_how_a_turn_ended() -> None:
    prompt = amp("agent.start", message="do it")
    for status, then in (("done", "completed"), ("cancelled", "idle"), ("error", "error")):
        assert shown("amp", prompt, amp("agent.end", status=status)) == ["working", then]
    failed = amp("thread.state", state="error", was="running")
    assert shown("amp", prompt, failed) == ["working", "error"]


def test_a_subagent_of_amp_blocks_the_thread_that_started_it_and_does_not_end_it() -> None:
    helper = {"agent": "T-2"}
    told = [
        amp("agent.start", message="do it"),
        amp("agent.start", message="help", **helper),
        amp("thread.state", state="awaiting-approval", was="running", **helper),
        amp("thread.state", state="running", was="awaiting-approval", **helper),
        amp("agent.end", status="error", **helper),
        amp("agent.end", status="done"),
    ]
    assert shown("amp", *told) == ["working", "blocked", "working", "completed"]


def pi(event: str, **more: Any) -> dict[str, Any]:
    return {"event": event, "session": "01-a", "cwd": "/home/u/proj", "file": "/s.jsonl", **more}


def test_pi_works_and_completes() -> None:
    tool = {"toolName": "bash", "toolCallId": "call_1"}
    told = [
        pi("session_start", reason="startup"),
        pi("before_agent_start", prompt="do it"),
        pi("agent_start"),
        pi("tool_execution_start", **tool, args={"command": "make"}),
        pi("tool_execution_end", **tool),
        pi("agent_settled", stopReason="stop", text="Done."),
        pi("session_shutdown", reason="reload"),
        pi("session_start", reason="reload"),
        pi("session_shutdown", reason="quit"),
    ]
    assert shown("pi", *told) == ["idle", "working", "completed", None]


def test_pi_says_how_a_turn_ended() -> None:
    prompt = pi("before_agent_start", prompt="do it")
    assert shown("pi", prompt, pi("agent_settled", stopReason="aborted")) == ["working", "idle"]
    failed = pi("agent_settled", stopReason="error", errorMessage="401")
    assert shown("pi", prompt, failed) == ["working", "error"]


def hooked(agent: str) -> str:
    return agent_of(agent).reporting(lambda event: f'emit {event} "$PPID" {agent}; exit 0')


@pytest.mark.parametrize("agent", ["codex", "copilot", "qwen", "cursor", "droid", "goose", "crush"])
def test_the_file_that_lets_a_cli_report_names_each_event_in_its_command(agent: str) -> None:
    hooks = json.loads(hooked(agent))["hooks"]
    assert len(hooks) > 5
    for event, handlers in hooks.items():
        assert f'emit {event} \\"$PPID\\" {agent}; exit 0' in json.dumps(handlers)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is in Python 3.11")
def test_the_tables_that_let_kimi_report_are_toml() -> None:
    """A table with another field, or an event that Kimi does not know, would void its settings."""
    tables = tomllib.loads(hooked("kimi"))["hooks"]
    assert {frozenset(table) for table in tables} == {frozenset({"event", "command", "timeout"})}
    assert all(f"emit {table['event']} " in table["command"] for table in tables)
    odd = "/\U0001f600 é\x7f\x1f\"'\\/emit"
    said = agent_of("kimi").reporting(lambda event: odd)
    assert {table["command"] for table in tomllib.loads(said)["hooks"]} == {odd}


def test_copilot_is_not_made_to_run_a_hook_that_could_refuse_its_tools() -> None:
    assert "preToolUse" not in hooked("copilot")


def test_cursor_reports_every_stop() -> None:
    """Cursor calls a hook of `stop` only a few times, unless the limit is null."""
    (stop,) = json.loads(hooked("cursor"))["hooks"]["stop"]
    assert stop["loop_limit"] is None


def test_two_chats_of_a_neovim_are_two_sessions_without_a_terminal() -> None:
    """Neovim's own terminal is not theirs: else each would take it, and a jump end there."""
    board = Board()
    origin = {"agent": "codecompanion", "pid": 11, "nvim": "/run/nvim.sock", "shared": True}
    for n, chat in enumerate(("one", "two")):
        told = {"event": "works", "session_id": chat, "cwd": "/home/u/proj"}
        board.fold(from_line({"t": T + n, "raw": json.dumps(told), "origin": origin}))
        where = {"pid": 11, "alive": True, "tty": "/dev/pts/3", "tmux": "/tmp/t", "pane": "%1"}
        board.fold(from_line({"t": T + n + 0.5, "process": where}))
    shown = [(s.session_id, status_of(s), s.nvim, s.tty, s.pane) for s in board.sessions.values()]
    there = ("working", "/run/nvim.sock", "", "")
    assert shown == [("one", *there), ("two", *there)]
    board.fold(from_line({"t": T + 9, "process": {"pid": 11, "alive": False}}))
    assert not any(map(is_listed, board.sessions.values()))
