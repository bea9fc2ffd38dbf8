"""No room for another window: on a small screen, or with a large 'winminheight'."""

from __future__ import annotations

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import asks, command, play
from rig.host.sample import QUIET, TERMINAL, Host, house, session
from rig.waiting import eventually

HIGH = "set winheight=5 winminheight=5 winheight=999 | split | split"
PAST = {"t": 1.0, "channel": "notify", "session_id": "api", "status": "blocked", "text": "it asks"}
FLOATS = "return vim.api.nvim_win_get_config(0).relative"
#: Of each float: whether it can be entered, and has our colors.
PARTS = """
local found = {}
for _, win in ipairs(vim.api.nvim_list_wins()) do
  local config = vim.api.nvim_win_get_config(win)
  if config.relative ~= '' then
    local is_ours = vim.wo[win].winhighlight:find('BellboardFloat') ~= nil
    found[#found + 1] = { config.focusable, is_ours }
  end
end
table.sort(found, function(a, b) return b[1] and not a[1] end)
return found
"""


def crowded(nvim: Editors, version: str, **config: object) -> tuple[Editor, Host]:
    quiet = {**QUIET, "float": {"enabled": False}, **config}
    editor = nvim(version, quiet, columns=80, lines=24)
    host = Host(editor)
    host.push(*house())
    editor.command(HIGH)
    return editor, host


def test_the_board_floats_where_it_has_no_room(nvim: Editors, version: str) -> None:
    """At the same edge; it closes as ever, and the options of the user are as before."""
    editor, _ = crowded(nvim, version)
    editor.press(":ClaudeSessions board<CR>")
    editor.shows("rm -rf build && make all")
    assert editor.lua(FLOATS) == "editor"
    editor.press("q")
    editor.hides("rm -rf build && make all")
    assert editor.lua(FLOATS) == ""
    assert editor.lua("return { vim.o.winminheight, vim.o.winheight, vim.fn.winnr('$') }") == [
        5,
        999,
        3,
    ]


def test_a_push_that_opens_a_list_is_taken_where_it_has_no_room(
    nvim: Editors, version: str
) -> None:
    """The list of notifications is shown, and so are the sessions of that push."""
    editor, host = crowded(nvim, version)
    host.push(*house(), notice_log=[PAST])
    editor.shows("it asks")
    assert editor.lua(FLOATS) == "editor"
    host.push(*house(), notice_log=[{**PAST, "text": "again"}])
    editor.shows("again")
    editor.press("q")
    editor.hides("again")


@pytest.mark.parametrize(("columns", "lines"), [(12, 3), (20, 5)], ids=["three", "five"])
def test_the_board_on_the_smallest_screen(
    nvim: Editors, version: str, columns: int, lines: int
) -> None:
    """The board opens and closes without an error."""
    editor = nvim(version, {**QUIET, "float": {"enabled": False}}, columns=columns, lines=lines)
    host = Host(editor)
    host.push(*house())
    editor.press(":ClaudeSessions board<CR>")
    eventually(lambda: editor.lua("return vim.bo.filetype") == "bellboard", "the board")
    host.push(*house(), notice_log=[PAST])
    editor.press("qq")
    assert "E36" not in editor.lua("return vim.fn.execute('messages')")


def test_a_request_floats_where_it_has_no_room(nvim: Editors, version: str) -> None:
    """The frame has its keys, as always."""
    config = {**QUIET, "float": {"enabled": False}, "answer": {"layout": "split"}}
    editor = nvim(version, config, columns=80, lines=24)
    one = asks("api")
    play(editor, command(one, "make all"))
    Host(editor).push(one)
    editor.command(HIGH)
    editor.press(":ClaudeSessions answer<CR>")
    editor.shows("Run a command")
    assert editor.lua(FLOATS) == "editor"
    assert editor.lua(PARTS) == [[True, True]]
    editor.press("q")
    editor.hides("Run a command")
    assert editor.lua(FLOATS) == ""


def test_a_terminal_gets_a_tab_page_where_it_has_no_room(nvim: Editors, version: str) -> None:
    """So it is after a jump from a window that must keep its buffer."""
    editor, host = crowded(nvim, version)
    _, tty = editor.lua(TERMINAL)
    host.push(session("working", "w", tty=tty))
    editor.command("windo set winfixheight")
    editor.press(":ClaudeSessions goto w<CR>")
    eventually(lambda: editor.lua("return vim.bo.buftype") == "terminal", "the terminal")
    assert editor.lua("return vim.fn.tabpagenr('$')") == 2


@pytest.mark.parametrize("layout", ["split", "vsplit"])
def test_a_new_agent_gets_a_tab_page_where_it_has_no_room(
    nvim: Editors, version: str, layout: str
) -> None:
    """A float would cover where later jumps go."""
    editor, _ = crowded(nvim, version, launch={"layout": layout})
    editor.command("set switchbuf=useopen")
    if layout == "vsplit":
        editor.command("only | set winwidth=30 winminwidth=30 | vsplit")
    editor.lua("require('bellboard.jump.launch').terminal({ 'cat' })")
    assert editor.lua("return { vim.bo.buftype, #vim.api.nvim_tabpage_list_wins(0) }") == [
        "terminal",
        1,
    ]
    assert editor.lua("return vim.fn.tabpagenr('$')") == 2


@pytest.mark.parametrize("columns", [80, 200])
def test_an_error_of_a_command_loses_nothing(nvim: Editors, version: str, columns: int) -> None:
    """A message would lose its middle, often what to do: a window shows all of it then."""
    why = "unknown agent: choose from " + ", ".join(f"agent{n}" for n in range(12))
    fails = ["sh", "-c", f"echo 'bellboard set: error: {why}' >&2; exit 2"]
    editor = nvim(version, {**QUIET, "python": fails}, columns=columns, lines=24)
    Host(editor)
    editor.press(":ClaudeSessions set x<CR>")
    editor.shows("set: unknown agent")
    editor.shows("agent6")
    is_long = columns == 80
    name = editor.lua("return vim.api.nvim_buf_get_name(0)")
    assert name == ("bellboard://set" if is_long else "")
    assert (f"set: {why}" in editor.messages()) is not is_long


def test_lost_hooks_are_reported_with_the_file_that_had_them(nvim: Editors, version: str) -> None:
    """Plain `install` would change another one."""
    editor = nvim(version, QUIET, columns=90, lines=24)
    repair = " --settings /tmp/x.json"
    host = Host(editor)
    host.push(health={"vanished": "hooks gone from /tmp/x.json", "repair": repair})
    editor.shows(f"bellboard: hooks gone; :ClaudeSessions install{repair}")
    long = {"vanished": "hooks gone from /tmp/y.json", "repair": repair + "x" * 60}
    host.push(health=long)
    editor.shows("bellboard: hooks gone from /tmp/y.json; see :checkhealth bellboard")
