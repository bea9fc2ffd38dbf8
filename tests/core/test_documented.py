"""The files that let CLIs report, as they are printed or written; and the chats of a Neovim.

Payloads of CLIs known by their documentation only are in `traces/documented.jsonl`.
"""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from bellboard.agents.registry import agent_of
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.session import is_listed, status_of

if sys.version_info >= (3, 11):
    import tomllib

T = 1.8e9


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


def test_antigravity_is_never_asked_whether_a_tool_may_run() -> None:
    """It would take our silence for a no.  Its other hooks have to print an object."""
    (name,) = hooks = json.loads(hooked("antigravity"))
    assert name == "bellboard"
    assert hooks[name].keys() == {"SessionStart", "PreInvocation", "Stop"}
    for event, (handler,) in hooks[name].items():
        assert handler.keys() == {"type", "command", "timeout"}  # one it does not know voids all
        assert handler["command"].startswith(f"echo '{{}}'; emit {event} ")


def test_the_hooks_of_crush_run_in_a_shell_whose_parent_is_crush() -> None:
    """Crush's own shell is part of it: in there, the parent is whoever started Crush."""
    for handlers in json.loads(hooked("crush"))["hooks"].values():
        (shell, option, command) = shlex.split(handlers[0]["command"])
        assert (shell, option) == ("sh", "-c")
        assert '"$PPID" crush' in command


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
