"""Unusual circumstances: options, windows and moments that few users have."""

from __future__ import annotations

from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import asks, command, play
from rig.host.sample import QUIET, Host, house
from rig.waiting import eventually

#: Runs a subcommand once the caller has its answer, as a key would.
RUN = "local verb = ... vim.schedule(function() require('bellboard').run(verb) end)"
ASK = """
_G.said = {}
local choices = { { 'y', 'yes', function() table.insert(said, 'y') end }, { 'n', 'no' } }
require('bellboard.dialog').ask('Title', { 'What it asks' }, choices)
"""
FOOTER = "return vim.inspect(vim.api.nvim_win_get_config(0).footer)"
INPUT = """
require('bellboard.answer.input').open({ title = 'Answer' }, function(text)
  _G.got = text
end)
"""


def opened(
    shared: Editors, version: str, board: dict[str, Any] | None = None, **options: Any
) -> Editor:
    editor = shared(version, {**QUIET, "board": board or {}}, columns=100, lines=30, **options)
    Host(editor).push(*house())
    return editor


def test_every_view_opens_where_no_buffer_can_be_changed(nvim: Editors, version: str) -> None:
    """`nvim -M` makes new buffers that cannot be changed."""
    editor = opened(nvim, version, args=["-M"])
    play(editor)  # whoever asks for a preview gets a reply
    editor.command("ClaudeSessions board")
    for keys, seen, close in (
        ("g?", "go to the session; fold a heading", "q"),
        ("K", "title         add", "q"),
        ("P", "title         add", "P"),
    ):
        editor.press(keys)
        editor.shows(seen)
        editor.press(close)
        editor.hides(seen)
    editor.press("q:ClaudeSessions pick<CR>")
    editor.shows("Filter:")
    editor.press("tidy")
    editor.hides("rate limits")
    editor.press("<Esc>")
    editor.shows("rate limits")
    editor.lua("require('bellboard.popup').window({ 'one', 'two' }, 'explain')")
    editor.shows("two")
    editor.command("close")
    editor.lua(INPUT)
    editor.press("words<C-s>")
    eventually(lambda: editor.lua("return got") == "words", "what was typed")
    editor.lua(ASK)
    editor.shows("What it asks")
    assert editor.messages() == ""


@pytest.mark.parametrize("verb", ["board", "pick", "health"])
def test_a_command_in_the_command_line_window_closes_it(
    shared: Editors, version: str, verb: str
) -> None:
    """No other window can be opened while it is open."""
    editor = opened(shared, version)
    editor.press(f"q::ClaudeSessions {verb}<CR>")
    editor.shows(
        {"board": "g? help", "pick": "Agent sessions", "health": "bellboard: editor"}[verb]
    )
    assert editor.nvim.eval("getcmdwintype()") == ""
    assert editor.nvim.eval("v:errmsg") == ""


#: Shows output as it arrives: of a command, of past notices, of a start.
OUTPUT = {
    "of explain": "require('bellboard.popup').window({ 'of', 'of explain' }, 'explain')",
    "No notifications yet": "require('bellboard.notify').history({})",
    "of a start": "require('bellboard.jump.launch').terminal({ 'echo', 'of a start' })",
}


@pytest.mark.parametrize("seen", OUTPUT)
def test_output_waits_for_the_end_of_the_command_line_window(
    shared: Editors, version: str, seen: str
) -> None:
    """No other window can be opened while it is open."""
    editor = shared(version, QUIET, columns=100, lines=30)
    editor.press("q:")
    eventually(lambda: editor.lua("return vim.fn.getcmdwintype()") == ":", "the window")
    editor.lua(f"vim.schedule(function() {OUTPUT[seen]} end)")
    assert editor.lua("return vim.fn.getcmdwintype()") == ":"
    editor.press("iecho 1<Esc>:quit<CR>")
    editor.shows(seen)
    assert editor.messages() == ""


def test_closing_the_picker_leaves_the_cursor_where_it_was(shared: Editors, version: str) -> None:
    """And where the user last inserted something."""
    editor = opened(shared, version)
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one two three' })")
    editor.press("7|")
    where = "return { vim.fn.getpos('.'), vim.fn.getpos(\"'^\"), vim.api.nvim_get_mode().mode }"
    before = editor.lua(where)
    for keys in ("api<Esc>", "api<C-c>", "nothing<CR>"):
        editor.lua(RUN, "pick")
        editor.shows("Filter:")
        editor.press(keys)
        editor.hides("Filter:")
        assert editor.lua(where) == before, keys


@pytest.mark.parametrize("level", ["ERROR", "WARN"])
def test_without_a_command_line_no_message_waits_for_a_key(
    shared: Editors, version: str, level: str
) -> None:
    """With 'cmdheight' 0, Neovim waits for ENTER after each error."""
    editor = opened(shared, version)
    editor.command("set cmdheight=0")
    editor.press(":ClaudeSessions nonsense<CR>")
    editor.shows('no subcommand "nonsense"')
    notice = {"channel": "notify", "session_id": "x", "title": "api failed", "text": "overloaded"}
    status = {"ERROR": "error", "WARN": "blocked"}[level]
    editor.lua("require('bellboard.notify').show(...)", {**notice, "status": status})
    editor.shows("api failed: overloaded")
    assert not editor.nvim.request("nvim_get_mode")["blocking"]


def test_a_message_that_does_not_fit_is_whole_in_the_list(shared: Editors, version: str) -> None:
    """On the screen are its start and its end; it does not wait for a key."""
    editor = opened(shared, version)
    short = editor.nvim.eval("&shortmess")
    verb = "nonsense" * 12 + "'|\"quoted"
    editor.lua(RUN, verb)
    whole = f'bellboard: no subcommand "{verb}"; try :ClaudeSessions <Tab>'
    eventually(lambda: editor.messages() == whole, "the whole message")
    assert "try :ClaudeSessions <Tab>" in editor.shows("bellboard: no sub").lines[-1]
    notice = {"channel": "notify", "session_id": "x", "title": "api failed", "text": "why " * 40}
    editor.lua("require('bellboard.notify').show(...)", {**notice, "status": "error"})
    eventually(lambda: editor.messages().endswith("api failed: " + ("why " * 40).strip()), "all")
    assert not editor.nvim.request("nvim_get_mode")["blocking"]
    assert editor.nvim.eval("&shortmess") == short


def test_a_question_takes_no_key_that_was_meant_for_the_text(shared: Editors, version: str) -> None:
    """A key typed before it can have been read keeps its meaning, and a macro is recorded whole."""
    editor = opened(shared, version)
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one two', 'three' })")
    editor.lua(ASK + "vim.api.nvim_feedkeys('yiw', 't', false)")
    eventually(lambda: editor.nvim.eval('@"') == "one", "what was yanked")
    editor.hides("What it asks")
    assert editor.lua("return said") == []
    editor.press("qax")
    eventually(lambda: editor.nvim.eval("getline(1)") == "ne two")
    editor.lua(ASK)
    editor.press("xq")
    editor.shows("What it asks")
    assert editor.nvim.eval("@a") == "xx"
    eventually(lambda: "BellboardKey" in editor.lua(FOOTER), "keys that answer")
    editor.press("y")
    eventually(lambda: editor.lua("return said") == ["y"], "the answer")


def test_a_key_that_closes_a_question_is_translated_once(shared: Editors, version: str) -> None:
    """By 'langmap', as without a question."""
    editor = opened(shared, version)
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one two' })")
    editor.command("set langmap=xi,ix")
    editor.lua(ASK)
    editor.shows("What it asks")
    editor.press("i")
    editor.hides("What it asks")
    eventually(lambda: editor.nvim.eval("getline(1)") == "ne two", "what was deleted")
    assert editor.nvim.request("nvim_get_mode")["mode"] == "n"


@pytest.mark.parametrize("layout", ["split", "vsplit", "tab", "float"])
def test_closing_a_window_goes_back_to_the_one_before(
    shared: Editors, version: str, layout: str
) -> None:
    """Neovim itself would go to the nearest one."""
    editor = opened(shared, version, board={"layout": layout})
    editor.command("edit a.txt | rightbelow vnew b.txt | rightbelow new c.txt | wincmd p")
    here = "return vim.fn.bufname()"
    assert editor.lua(here) == "b.txt"
    editor.command("ClaudeSessions board")
    editor.press("g?")
    editor.shows("go to the session; fold a heading")
    editor.press("qq")
    eventually(lambda: editor.lua(here) == "b.txt", "the window before the board")
    editor.lua("require('bellboard.popup').window({ 'one', 'two' }, 'explain')")
    editor.press("q")
    eventually(lambda: editor.lua(here) == "b.txt", "the window before the list")
    editor.command("only")
    editor.lua("require('bellboard.popup').window({ 'one', 'two' }, 'explain')")
    editor.command("only")
    editor.press("q")
    editor.hides("two")
    assert editor.messages() == ""


def test_the_picker_opens_once(shared: Editors, version: str) -> None:
    """An open picker is entered; it would stay open with no way to close it."""
    editor = opened(shared, version)
    windows = "return #vim.api.nvim_list_wins()"
    before = editor.lua(windows)
    for _ in range(2):
        editor.lua(RUN, "pick")
        editor.shows("Filter:")
    editor.press("<Esc>")
    eventually(lambda: editor.lua(windows) == before, "its windows")
    assert editor.messages() == ""


@pytest.mark.parametrize(
    "wide", ["set ambiwidth=double", "call setcellwidths([[0x2500, 0x257f, 2]])"]
)
def test_windows_open_where_lines_are_two_cells_wide(
    shared: Editors, version: str, wide: str
) -> None:
    """Neovim refuses a border of such characters, so the border is blank; what is cut fits."""
    config = {**QUIET, "board": {"layout": "float"}, "answer": {"key_delay": 0}}
    editor = shared(version, config, columns=70, lines=30)
    editor.command(wide)
    api = asks("api")
    play(editor, command(api, "make"))
    Host(editor).push(api)
    editor.shows("rm -rf build")
    editor.command("ClaudeSessions answer api")
    editor.shows("api: Run a command")
    editor.press("A")
    eventually(lambda: editor.lua("return #answers == 1"), "the answer")
    editor.command("ClaudeSessions board")
    editor.shows("Agent sessions")
    editor.press("K")
    editor.shows("detail        rm -rf build")
    editor.press("qq")
    cut = "return vim.fn.strdisplaywidth(require('bellboard.text').fit('a long text', ...))"
    for cells in range(6):
        assert editor.lua(cut, cells) == cells
    assert editor.messages() == "bellboard: api: answered"


def test_a_request_is_answered_although_an_autocommand_of_the_user_fails(
    shared: Editors, version: str
) -> None:
    """The autocommand runs when buffers get names."""
    config = {**QUIET, "answer": {"key_delay": 0}, "float": {"enabled": False}}
    editor = shared(version, config, columns=70, lines=30)
    api = asks("api")
    play(editor, command(api, "make"))
    Host(editor).push(api)
    editor.command("autocmd BufFilePre,BufFilePost * throw 'theirs'")
    editor.lua("require('bellboard').answer('api')")
    editor.shows("A  Yes, this once")
    editor.press("A")
    eventually(lambda: editor.lua("return #answers == 1"), "the answer")
    eventually(lambda: editor.lua("return #vim.api.nvim_list_wins()") == 1, "closed")


@pytest.mark.parametrize("keys", ["ihello ", "Rhello ", "ihello <C-o>", "v$"])
def test_windows_to_read_open_in_normal_mode(shared: Editors, version: str, keys: str) -> None:
    """Else their keys would be dead, or extend a selection; also in one that is open."""
    editor = opened(shared, version)
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one two' })")
    modes = ["n", "i", "x"]
    editor.lua("vim.keymap.set(..., '<F2>', '<Plug>(bellboard-board)')", modes)
    editor.lua("_G.window = require('bellboard.popup').window")
    editor.lua(
        "vim.keymap.set({ 'n', 'i', 'x' }, '<F3>', function() window({ 'to read' }, 'x') end)"
    )
    for key, seen in (("<F2>", "g? help"), ("<F3>", "to read")):
        for _ in range(2):
            editor.press("<C-w>t" + keys)
            eventually(lambda: editor.nvim.request("nvim_get_mode")["mode"] != "n", "that mode")
            editor.press(key)
            editor.shows(seen)
            eventually(lambda: editor.nvim.request("nvim_get_mode")["mode"] == "n", "Normal mode")
            assert editor.lua("return vim.bo.modifiable") is False
        editor.press("q")
        editor.hides(seen)
    assert editor.nvim.eval("v:errmsg") == ""


@pytest.mark.parametrize("theirs", ["rightleft", "foldmethod=indent foldlevel=0 shiftwidth=2"])
def test_windows_show_lines_as_they_were_written(
    shared: Editors, version: str, theirs: str
) -> None:
    """Lines are neither mirrored nor folded, whatever the user's options."""
    editor = shared(version, {**QUIET, "answer": {"key_delay": 0}}, columns=80, lines=40)
    editor.command(f"set {theirs}")
    api = asks("api")
    play(editor, command(api, "make"))
    Host(editor).push(api)
    editor.shows("1 needs you ──")
    editor.command("ClaudeSessions board")
    editor.shows("! Bash  rm -rf build")
    editor.lua("require('bellboard.popup').open({ 'head', '  one', '  two' }, 'lines')")
    editor.shows("  one")
    editor.shows("  two")
    editor.press("q")
    editor.hides("  two")
    editor.lua("require('bellboard').answer('api')")
    editor.shows("A  Yes, this once")
    editor.lua("require('bellboard.popup').window({ 'head', '  one', '  two' }, 'explain')")
    editor.shows("  two")
    assert editor.messages() == ""


#: Closes the window of the picker; a push follows at once.
CLOSE = """
for _, win in ipairs(vim.api.nvim_list_wins()) do
  local layout = vim.api.nvim_win_get_config(win)
  if layout.relative ~= '' then
    vim.api.nvim_win_close(win, true)
    vim.api.nvim_exec_autocmds('User', { pattern = 'BellboardUpdate' })
    return
  end
end
"""


def test_a_picker_that_loses_a_window_closes(shared: Editors, version: str) -> None:
    """Each push would be an error while its prompt is open."""
    config = {**QUIET, "float": {"enabled": False}}
    editor = shared(version, config, columns=100, lines=30)
    host = Host(editor)
    host.push(*house())
    windows = "return #vim.api.nvim_list_wins()"
    before = editor.lua(windows)
    editor.lua(RUN, "pick")
    editor.shows("Filter:")
    editor.lua(CLOSE)
    eventually(lambda: editor.lua(windows) == before, "its windows")
    host.push(*house())
    eventually(lambda: editor.nvim.request("nvim_get_mode")["mode"] == "n")
    assert editor.messages() == ""


def test_the_board_opens_while_errors_are_thrown(shared: Editors, version: str) -> None:
    """'debug' is for those who look for errors: also for ones that are expected."""
    editor = shared(version, QUIET, columns=80, lines=24)
    editor.command("set debug=throw")
    Host(editor).push(*house())
    editor.command("ClaudeSessions board")
    editor.shows(" sessions")
    assert editor.messages() == ""
