"""Going to a session: its terminal here, its tmux pane, or a word on why not; and back."""

from __future__ import annotations

from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.tmux import Server
from rig.waiting import eventually
from sample import QUIET, Host, blocked, session

pytestmark = pytest.mark.editor

TERMINAL = """
vim.cmd.file('here') -- :terminal would take an empty buffer over
local before = vim.api.nvim_get_current_buf()
vim.cmd('terminal sleep 60')
local buf = vim.api.nvim_get_current_buf()
vim.api.nvim_win_set_buf(0, before)
return { buf, vim.api.nvim_get_chan_info(vim.bo[buf].channel).pty }
"""
BUFFER = "return vim.api.nvim_get_current_buf()"


def mode(editor: Editor) -> Any:
    return editor.nvim.api.get_mode()["mode"]


def test_a_hidden_terminal_is_shown_here_and_entered(nvim: Editors, version: str) -> None:
    """By its device, not by name or folder; `back` returns to where the first jump began."""
    editor = nvim(version, QUIET, ui=False)
    here = editor.lua(BUFFER)
    (one, tty), (two, other) = editor.lua(TERMINAL), editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty), blocked("web", tty=other, ago=60))
    editor.command("ClaudeSessions next")
    assert editor.lua(BUFFER) == one
    eventually(lambda: mode(editor) == "t", "terminal mode")
    editor.lua("require('bellboard').next()")
    assert editor.lua(BUFFER) == two
    editor.lua("require('bellboard').back()")
    assert editor.lua(BUFFER) == here
    eventually(lambda: mode(editor) == "n", "normal mode")


def test_a_terminal_in_another_tab_is_gone_to(nvim: Editors) -> None:
    """A window that shows it already is used, wherever it is."""
    editor = nvim(config=QUIET, ui=False)
    buf, tty = editor.lua(TERMINAL)
    editor.command(f"tabnew | buffer {buf} | tabfirst")
    Host(editor).push(blocked("api", tty=tty))
    editor.lua("require('bellboard').jump('api')")
    assert editor.lua("return vim.fn.tabpagenr()") == 2
    assert len(editor.lua("return vim.fn.win_findbuf(...)", buf)) == 1


def test_next_goes_round_those_that_need_you(nvim: Editors) -> None:
    """Blocked, failed and done, in the order of the board; a count steps further."""
    editor = nvim(config=QUIET, ui=False)
    names, sessions = {}, []
    for place, status in enumerate(["blocked", "error", "completed", "working"]):
        buf, tty = editor.lua(TERMINAL)
        names[buf] = status
        sessions.append(session(status, tty=tty, ago=100 + place))
    Host(editor).push(*sessions)
    went = []
    for command in ("next", "next", "next", "next", "prev"):
        editor.command(f"ClaudeSessions {command}")
        went.append(names[editor.lua(BUFFER)])
    assert went == ["blocked", "error", "completed", "blocked", "completed"]
    editor.command("2ClaudeSessions next")
    assert names[editor.lua(BUFFER)] == "error"


def test_nothing_to_go_to_is_said(nvim: Editors) -> None:
    """A word instead of an error, with all that is known."""
    editor = nvim(config=QUIET, columns=120)
    host = Host(editor)
    editor.lua("require('bellboard').next()")
    editor.shows("nothing needs you")
    host.push(blocked("api", pid=4711, tty="/dev/pts/99", cwd="/somewhere"))
    editor.lua("require('bellboard').jump('api')")
    editor.shows("do not know how to get there: pid 4711, tty /dev/pts/99, cwd /somewhere")
    editor.lua("require('bellboard').jump('nobody')")
    editor.shows('no session "nobody"')


@pytest.mark.tmux
def test_a_tmux_pane_is_selected_by_its_id(nvim: Editors, tmux: Server) -> None:
    """Window and pane of that server, and nothing else of it."""
    first = tmux.open(["sleep", "60"])
    second = tmux.open(["sh", "-c", "echo a question; sleep 60"])
    second.shows("a question")
    editor = nvim(config=QUIET, columns=120, env={"PATH": tmux.home.env["PATH"]})
    Host(editor).push(blocked("api", tmux=str(tmux.socket), pane=second.id))
    lines = editor.lua(
        "return require('bellboard.jump').capture(...)",
        {
            "tmux": str(tmux.socket),
            "pane": second.id,
        },
    )
    assert lines == ["a question"]
    editor.lua("require('bellboard').jump('api')")
    editor.shows(f"selected pane {second.id}, but no terminal shows that tmux")
    assert second.ask("#{window_active}#{pane_active}") == "11"
    assert first.ask("#{pane_dead}") == "0"


@pytest.mark.tmux
def test_a_pane_that_is_gone_is_said(nvim: Editors, tmux: Server) -> None:
    """tmux's own words, and what is known."""
    tmux.open(["sleep", "60"])
    editor = nvim(config=QUIET, columns=160)
    Host(editor).push(blocked("api", tmux=str(tmux.socket), pane="%99", pid=12))
    editor.lua("require('bellboard').jump('api')")
    editor.shows("tmux pane %99 is not to be had (can't find pane: %99): pid 12")


def test_a_session_of_another_neovim_is_shown_there(nvim: Editors) -> None:
    """By its server's address; that one is not waited for."""
    there = nvim(config=QUIET, ui=False)
    buf, tty = there.lua(TERMINAL)
    address = there.lua("return vim.v.servername")
    Host(there).push(blocked("api", tty=tty, nvim=address))
    here = nvim(config=QUIET, ui=False)
    Host(here).push(blocked("api", tty=tty, nvim=address))
    here.lua("require('bellboard').jump('api')")
    eventually(lambda: there.lua(BUFFER) == buf, "the terminal over there")
