"""The view of a request among windows, tab pages and outcomes: where it opens, what it shows."""

from __future__ import annotations

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import (
    CALM,
    SLOW,
    asks,
    command,
    counts,
    delays,
    edit,
    opened,
    play,
    pressed,
    sent,
)
from rig.host.sample import Host
from rig.waiting import eventually


def reads(editor: Editor) -> None:
    """Open the only request."""
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    host.push(api)
    opened(editor, "api", "Run a command")


def test_the_view_comes_to_whoever_asks_for_it(shared: Editors, version: str) -> None:
    """From another tab page or window, by `answer` or triage; the next of a triage takes no focus.

    Otherwise A, D and C would edit the user's file.
    """
    editor = shared(version, CALM, columns=70, lines=30)
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
    editor.lua("require('bellboard').setup({ answer = { key_delay = 0, layout = 'split' } })")
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


@pytest.mark.parametrize(
    ("prompt", "shown", "keys"),
    [
        ('echo "a\\nb"', "Press ENTER", "A"),
        ("call input('name: ')", "name:", "x<CR>A"),
    ],
)
def test_a_key_for_a_prompt_grants_nothing(
    shared: Editors, version: str, prompt: str, shown: str, keys: str
) -> None:
    """The key that ends a prompt reaches the view, too; the next may be meant for the prompt."""
    editor = shared(version, CALM, columns=70, lines=30)
    reads(editor)
    counts(editor)
    delays(editor, 1000)
    editor.lua("vim.schedule(function() vim.cmd(...) end)".replace("...", f"[[{prompt}]]"))
    editor.shows(shown)
    editor.press(keys)
    pressed(editor)
    assert editor.lua("return answers") == []
    delays(editor, 0.3)
    editor.press("l")  # from which the pause begins again
    counts(editor)
    editor.press("A")
    assert sent(editor) == {"choice": "allow"}


def test_an_answer_that_may_have_been_sent_is_not_said_to_be_lost(shared: Editors) -> None:
    """The background process ended while the answer was on its way."""
    editor = shared(config=CALM, columns=70, lines=30)
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    why = "the background process has ended; it may have been sent"
    editor.lua("outcome.api = { ok = false, is_unsure = true, why = ... }", why)
    host.push(api)
    opened(editor, "api", "Run a command")
    editor.press("A")
    editor.shows("The background process has ended; it may have been sent.")
    editor.hides("ot answered")


@pytest.mark.parametrize("lines", [12, 9, 6])
def test_a_view_scrolls_on_a_small_screen(shared: Editors, lines: int) -> None:
    """The choices are the last rows, so a user who sees them has seen the rest."""
    editor = shared(config=CALM, columns=70, lines=lines)
    reads(editor)
    rows = editor.shows(" more: <Space> ╯").lines
    assert "│ api " in rows[1]
    editor.press("A")
    editor.shows("Read it to the end first")
    editor.press("<Space>" * 20)
    rows = editor.shows("q close").lines
    assert any("Read it to the end first" in row for row in rows[1:-2])
    editor.press("A")
    assert sent(editor) == {"choice": "allow"}


#: Counts typed keys, in as many callbacks.
COUNT = """
_G.counted = {}
for n = 1, ... do
  counted[n] = 0
  vim.on_key(function(_, typed)
    counted[n] = counted[n] + (typed ~= '' and 1 or 0)
  end)
end
"""


@pytest.mark.parametrize("callbacks", [1, 3])
def test_other_plugins_get_each_key_once(nvim: Editors, version: str, callbacks: int) -> None:
    """A key of a prompt counts too; then the keys of the view wait again."""
    editor = nvim(version, {**CALM, "answer": {"key_delay": 0.3}}, columns=70, lines=30)
    reads(editor)
    counts(editor)
    editor.lua(COUNT, callbacks)
    editor.press(":x<Esc>")
    eventually(lambda: max(editor.lua("return counted")) >= 3, "all keys")
    assert editor.lua("return counted") == [3] * callbacks


WAIT = "require('bellboard').setup({ answer = { key_delay = 1000, layout = ... } })"
#: A file that is read once `release` is called, and is not there then.
SLOW_FILE = """
vim.uv.fs_open = function(_, _, _, done)
  _G.release = function()
    done('ENOENT')
    vim.wait(50)
  end
end
"""


def beside(shared: Editors, version: str) -> tuple[Editor, int]:
    """Open the request for a change in a split; return the window of the user, too."""
    editor = shared(version, CALM, columns=70, lines=30)
    editor.lua("require('bellboard').setup({ answer = { key_delay = 0, layout = 'split' } })")
    host, api = Host(editor), asks("edit", tool="Edit")
    play(editor, edit(api, "/srv/limits.py", "5", "10"))
    host.push(api)
    own = editor.lua("return vim.api.nvim_get_current_win()")
    opened(editor, "edit", "Edit a file")
    counts(editor)
    return editor, own


def slow_diff(editor: Editor) -> None:
    """Press the key for the diff, whose file is not read until `release` is called."""
    editor.lua(SLOW_FILE)
    editor.press("gd")
    eventually(lambda: editor.lua("return release ~= nil"), "its file is read")


def test_what_comes_late_does_not_take_the_focus(shared: Editors, version: str) -> None:
    """A text that is left, and a file that is read slowly."""
    editor, own = beside(shared, version)
    go, here = "vim.api.nvim_set_current_win(...)", "return vim.api.nvim_get_current_win()"
    editor.press("R")
    editor.shows("<C-s> send")
    editor.lua(go, own)
    editor.hides("<C-s> send")
    assert editor.lua(here) == own
    editor.press("<C-w>w")
    slow_diff(editor)
    editor.lua(go, own)
    editor.lua("release()")
    assert editor.lua("return { #vim.api.nvim_list_tabpages(), ... }", own) == [1, own]


def test_a_key_for_another_window_grants_nothing(shared: Editors, version: str) -> None:
    """The view that gets the focus as that window is closed has keys only after a pause."""
    editor, own = beside(shared, version)
    editor.lua("vim.api.nvim_set_current_win(...)", own)
    editor.lua(WAIT, "split")
    editor.lua("vim.api.nvim_win_close(..., true)", own)
    editor.press("A")
    pressed(editor)
    assert editor.lua("return { #vim.api.nvim_list_wins(), #answers }") == [1, 0]


def test_a_view_behind_a_diff_that_was_closed_waits_for_a_pause(
    shared: Editors, version: str
) -> None:
    editor, _ = beside(shared, version)
    slow_diff(editor)
    editor.lua("release()")
    eventually(lambda: editor.lua("return vim.wo.diff"), "a diff")
    editor.lua(WAIT, "split")
    editor.command("tabclose")
    editor.press("A")
    editor.shows("edit: Edit a file")
    pressed(editor)
    assert editor.lua("return answers") == []
    assert editor.messages() == ""


MOVES = """
local n = 0
vim.uv.new_timer():start(0, 50, vim.schedule_wrap(function()
  n = n + 1
  vim.api.nvim_input_mouse('move', '', '', 0, n % 30, 5)
end))
"""


def test_a_mouse_that_moves_presses_no_key(shared: Editors, version: str) -> None:
    """Neovim reports it as one, with 'mousemoveevent'."""
    config = {**CALM, "answer": {"key_delay": 0.5}}
    editor = shared(version, config, columns=70, lines=30)
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    host.push(api)
    editor.lua("vim.o.mousemoveevent = true")
    opened(editor, "api", "Run a command")
    editor.lua(MOVES)
    counts(editor)


def test_an_answer_elsewhere_leaves_the_user_in_another_tab_page(
    shared: Editors, version: str
) -> None:
    """That page has the diff of the request, which is the user's."""
    editor = shared(version, CALM, columns=70, lines=30)
    host, api = Host(editor), asks("edit", tool="Edit")
    play(editor, edit(api, "/srv/limits.py", "5", "10"))
    host.push(api)
    opened(editor, "edit", "Edit a file")
    editor.press("gd")
    eventually(lambda: editor.lua("return vim.wo.diff"), "a diff")
    editor.command("tabnew")
    tab = editor.lua("return vim.api.nvim_get_current_tabpage()")
    play(editor)
    host.push()
    said = "bellboard: edit: The session has ended."
    eventually(lambda: editor.messages() == said, "its end")
    assert editor.lua("return vim.api.nvim_get_current_tabpage()") == tab


def test_an_outcome_stays_in_view_when_the_next_request_arrives(shared: Editors) -> None:
    """An outcome may come while a triage waits for the next request."""
    editor = shared(config=CALM, columns=70, lines=30)
    host, two = Host(editor), [asks("p0", ago=2), asks("p1", ago=1)]
    play(editor, command(two[0], "make p0"), command(two[1], "make p1"))
    editor.lua("outcome.p0 = { ok = false, why = 'its hook is gone' }")
    editor.lua(SLOW, "request", "p1")
    host.push(*two)
    editor.command("ClaudeSessions triage")
    editor.shows("make p0")
    counts(editor)
    editor.press("A")
    editor.shows("p0: not answered: its hook is gone")
    editor.lua("release()")
    editor.shows("make p1")
    editor.shows("p0: not answered: its hook is gone")


@pytest.mark.parametrize("before", ["q:", ":let g:typed = 1"])
def test_a_triage_waits_for_the_end_of_the_command_line(
    shared: Editors, version: str, before: str
) -> None:
    """A request may arrive while the user is there, where no window can be opened."""
    editor = shared(version, CALM, columns=70, lines=30)
    host, api = Host(editor), asks("p0")
    play(editor, command(api, "make p0"))
    editor.lua(SLOW, "request", "p0")
    host.push(api)
    editor.command("ClaudeSessions triage")
    editor.press(before)
    eventually(lambda: editor.nvim.eval("getcmdwintype() != '' || mode() == 'c'"), "it")
    editor.nvim.exec_lua("release()")
    assert editor.nvim.eval("getcmdwintype() != '' || mode() == 'c'")
    editor.press(":quit<CR>" if before == "q:" else "<CR>")
    editor.shows("p0: Run a command")
    assert editor.messages() == ""


#: A background process that says what another machine's terminal shows once `release` is called.
FAR = """
require('bellboard.process.talk').ask = function(_, _, done)
  function _G.release()
    release = nil
    done({ ok = true, rows = { 'from far away' } })
  end
end
"""


def test_a_preview_opens_only_over_the_board(shared: Editors, version: str) -> None:
    """A preview may arrive when the user types elsewhere, or a command."""
    editor = shared(version, CALM, columns=70, lines=30)
    editor.lua(FAR)
    Host(editor).push(asks("api", machine="dev"))
    editor.command("ClaudeSessions board")
    editor.press("K")
    eventually(lambda: editor.lua("return release ~= nil"), "a request")
    editor.press("<C-w>pihello ")
    eventually(lambda: editor.nvim.eval("mode()") == "i", "typing")
    editor.lua("release()")
    editor.press("world")
    eventually(lambda: editor.nvim.eval("getline(1)") == "hello world", "all of it")
    editor.hides("from far away")
    editor.press("<Esc><C-w>pK")
    eventually(lambda: editor.lua("return release ~= nil"), "a request")
    editor.press(":let g:typed")
    eventually(lambda: editor.nvim.eval("mode()") == "c", "typing a command")
    editor.nvim.exec_lua("release()")
    editor.press(" = 1<CR>")
    editor.shows("from far away")
    assert editor.nvim.eval("g:typed") == 1
    assert editor.messages() == ""


#: The windows whose text has a word.
SHOWING = """
local word = ...
return vim.tbl_filter(function(win)
  local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)
  return table.concat(lines):find(word) ~= nil
end, vim.api.nvim_list_wins())
"""


@pytest.mark.parametrize(
    ("layout", "copied"),
    [
        ("float", "<C-w>T"),
        ("float", ":split<CR><C-w>p:quit<CR>"),
        ("split", "<C-w>T"),
    ],
)
def test_no_copy_of_a_view_outlives_it(
    shared: Editors, version: str, layout: str, copied: str
) -> None:
    """A copy would show one request and answer another; the last window is free."""
    config = {**CALM, "answer": {"key_delay": 0, "layout": layout}}
    editor = shared(version, config, columns=70, lines=30)
    host, two = Host(editor), [asks("p0", ago=2), asks("p1", ago=1)]
    play(editor, *(command(each, f"make {each['session_id']}") for each in two))
    host.push(*two)
    opened(editor, "p0", "Run a command")
    editor.press(copied)
    pressed(editor)
    host.push(*two)
    eventually(lambda: editor.lua(SHOWING, "make p0") == [], "no copy")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    editor.command("edit another")
    assert editor.messages() == ""


def test_a_copy_of_a_view_grants_nothing(shared: Editors, version: str) -> None:
    """A choice in a copy is not shown there; the view answers, and the copy goes with it."""
    editor = shared(version, {**CALM, "answer": {"key_delay": 0}}, columns=70, lines=40)
    reads(editor)
    view = editor.lua("return vim.api.nvim_get_current_win()")
    editor.command("split")
    copy = [win for win in editor.lua(SHOWING, "make") if win != view]
    editor.lua("vim.api.nvim_set_current_win(...)", copy[0])
    editor.press("A1")
    pressed(editor)
    assert editor.lua("return answers") == []
    editor.lua("vim.api.nvim_set_current_win(...)", view)
    editor.press("A")
    assert sent(editor) == {"choice": "allow"}
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
