"""The view of a request among windows, tab pages and outcomes: where it opens, what it shows."""

from __future__ import annotations

import pytest

from asked import asks, command, play
from rig.fixtures import Editors
from sample import Host
from test_editor_answer import CALM, counts, opened

pytestmark = pytest.mark.editor


def test_the_view_comes_to_whoever_asks_for_it(nvim: Editors, version: str) -> None:
    """From another tab page or window, by `answer` or triage; the next of a triage takes no focus.

    Otherwise A, D and C would edit the user's file.
    """
    editor = nvim(version, CALM, columns=70, lines=30)
    host, two = Host(editor), [asks("p0", ago=2), asks("p1", ago=1)]
    play(editor, command(two[0], "make p0"), command(two[1], "make p1"))
    host.push(*two)
    enters = "return vim.api.nvim_win_get_config(0).relative"
    opened(editor, "p0", "Run a command")
    editor.command("tabnew")
    editor.hides("p0: Run a command")
    opened(editor, "p1", "Run a command")
    assert editor.lua(enters) == "editor"
    editor.press("q")
    editor.hides("p1: Run a command")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 2
    editor.lua("require('bellboard').setup({ answer = { ready = 0, layout = 'split' } })")
    own = editor.lua("return vim.api.nvim_get_current_win()")
    opened(editor, "p0", "Run a command")
    editor.lua("vim.api.nvim_set_current_win(...)", own)
    editor.command("ClaudeSessions triage")
    editor.shows("2 left · p0")
    assert editor.lua("return vim.api.nvim_get_current_win()") != own
    editor.lua("vim.api.nvim_set_current_win(...)", own)
    play(editor, command(two[1], "make p1"))
    host.push(two[1])
    editor.shows("1 left · p1")
    assert editor.lua("return vim.api.nvim_get_current_win()") == own


#: Keeps what a session asks back until `release` is called.
SLOW = """
_G.held = {}
local host = require('bellboard.host')
local ask = host.ask
host.ask = function(what, given, done)
  if what ~= 'request' or given.session_id ~= ... then
    return ask(what, given, done)
  end
  table.insert(held, function() ask(what, given, done) end)
end
function _G.release()
  for _, reply in ipairs(held) do reply() end
end
"""


def test_an_outcome_stays_in_view_when_the_next_request_arrives(nvim: Editors) -> None:
    """It may come while a triage waits for what is asked next."""
    editor = nvim(config=CALM, columns=70, lines=30)
    host, two = Host(editor), [asks("p0", ago=2), asks("p1", ago=1)]
    play(editor, command(two[0], "make p0"), command(two[1], "make p1"))
    editor.lua("outcome.p0 = { ok = false, why = 'its hook is gone' }")
    editor.lua(SLOW.replace("...", "'p1'"))
    host.push(*two)
    editor.command("ClaudeSessions triage")
    editor.shows("make p0")
    counts(editor)
    editor.press("A")
    editor.shows("p0: not answered: its hook is gone")
    editor.lua("release()")
    editor.shows("make p1")
    editor.shows("p0: not answered: its hook is gone")
