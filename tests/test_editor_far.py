"""In Neovim, what a user does to a session of another machine; the host's replies are given."""

from __future__ import annotations

from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.waiting import eventually
from sample import HIDDEN_TERMINAL, QUIET, Host, far

pytestmark = pytest.mark.editor

#: Plays the host: replies to each request as given, and keeps what was asked and said.
PLAYED = """
_G.replies, _G.asked, _G.said, _G.told = ..., {}, {}, {}
local host = require('bellboard.host')
host.ask = function(what, request, done)
  table.insert(asked, { what, request })
  vim.schedule(function() done(replies[what]) end)
end
host.tell = function(evidence)
  table.insert(told, (next(evidence)))
  return true
end
vim.notify = function(text) table.insert(said, text) end
"""
SID = "dev/claude/api-blocked"
HERE = "return vim.api.nvim_get_current_buf()"


def played(nvim: Editors, **replies: Any) -> Editor:
    """Return an editor with one far session, whose host replies so."""
    editor = nvim(config={**QUIET, "float": {"enabled": False}})
    Host(editor).push(far("dev", "blocked", "api", far_pid=4711, detail="make"))
    editor.lua(PLAYED, replies)
    return editor


def jump(editor: Editor) -> None:
    editor.lua("require('bellboard').jump(...)", SID)


def asked(editor: Editor, count: int) -> list[Any]:
    """Wait until so much was asked and done; return what."""
    eventually(lambda: len(editor.lua("return asked")) == count)
    return list(editor.lua("return asked"))


def test_a_jump_shows_the_terminal_here_that_shows_the_machine(nvim: Editors) -> None:
    """And goes back to where it began."""
    editor = played(nvim)
    tty = editor.lua(HIDDEN_TERMINAL)
    terminal = editor.lua("return terminal")
    editor.lua("replies['goto'] = ...", {"ok": True, "place": {"tty": tty}})
    before = editor.lua(HERE)
    jump(editor)
    eventually(lambda: editor.lua(HERE) == terminal, "the terminal")
    assert asked(editor, 1) == [["goto", {"session_id": SID}]]
    assert editor.lua("return told") == ["goto"]
    editor.command("ClaudeSessions back")
    assert editor.lua(HERE) == before


def test_a_jump_opens_one_terminal_and_shows_it_again(nvim: Editors) -> None:
    """While its program runs."""
    command = ["sh", "-c", "echo the far pane; exec sleep 600"]
    editor = played(nvim, goto={"ok": True, "command": command})
    before = editor.lua(HERE)
    jump(editor)
    editor.shows("the far pane")
    opened = editor.lua(HERE)
    editor.command("ClaudeSessions back")
    assert editor.lua(HERE) == before
    jump(editor)
    eventually(lambda: editor.lua(HERE) == opened, "the same terminal")
    editor.lua("vim.fn.jobstop(vim.bo[...].channel)", opened)
    jump(editor)
    eventually(lambda: editor.lua(HERE) not in (opened, before), "another terminal")


def test_why_a_machine_cannot_be_asked_is_said(nvim: Editors) -> None:
    down = {"ok": False, "why": "the link is down: ssh: no route"}
    editor = played(nvim, goto=down, preview=down)
    jump(editor)
    said = eventually(lambda: editor.lua("return said"))
    assert "dev:api: the link is down: ssh: no route" in said[0]
    editor.lua(
        "require('bellboard.view.preview').lines(require('bellboard').sessions()[1],"
        " function(lines) _G.shown = lines end)"
    )
    lines = eventually(lambda: editor.lua("return shown"))
    assert lines[-1] == "the link is down: ssh: no route"


def test_a_preview_and_a_stop_are_asked_of_the_machine(nvim: Editors) -> None:
    """The text of its terminal is safe to show; the process is the one over there."""
    rows = {"ok": True, "rows": ["❯ make", "\x1b[31mred\u202e", "", ""]}
    editor = played(nvim, preview=rows, stop={"ok": True, "text": "process 4711 has ended"})
    editor.lua(
        "require('bellboard.view.preview').lines(require('bellboard').sessions()[1],"
        " function(lines) _G.shown = lines end)"
    )
    lines = eventually(lambda: editor.lua("return shown"))
    assert lines[0] == "❯ make"
    assert len(lines) == 2
    assert not {"\x1b", "\u202e"} & set(lines[1])
    editor.lua(
        "vim.ui.select = function(_, opts, done) _G.prompt = opts.prompt done('Stop it') end"
    )
    editor.lua("require('bellboard.action.several').stop(require('bellboard').sessions())")
    assert asked(editor, 2)[1] == ["stop", {"session_id": SID, "pid": 4711}]
    assert editor.lua("return prompt").startswith("Stop process 4711 (dev:api")
