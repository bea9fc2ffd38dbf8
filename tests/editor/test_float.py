"""The float among other windows: where it is, when it shrinks, what its rows do."""

from __future__ import annotations

from typing import Any

import pytest

from rig.editor import Editor
from rig.fetched import neovim
from rig.fixtures import Editors
from rig.host.asked import asks, edit, play
from rig.host.sample import QUIET, Host, blocked, session
from rig.waiting import eventually

#: Returns its current corner and height; nothing while it is hidden.
FLOAT = """
for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  local now = vim.api.nvim_win_get_config(win)
  if now.relative ~= '' and vim.wo[win].winhighlight:find('BellboardFloat', 1, true) then
    return now.anchor .. ' ' .. now.height
  end
end
return ''
"""
STATUS = "return require('bellboard.float').status()"
OTHER = """
local buf = vim.api.nvim_create_buf(false, true)
_G.others = _G.others or {}
others[#others + 1] = vim.api.nvim_open_win(buf, false, vim.tbl_extend('force',
  { relative = 'editor', style = 'minimal', noautocmd = true }, ...))
"""
#: Returns the number of marks in the buffer that has most of them.
MARKS = """
local most = 0
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  most = math.max(most, #vim.api.nvim_buf_get_extmarks(buf, -1, 0, -1, {}))
end
return most
"""
SHUT = "for _, win in ipairs(others) do vim.api.nvim_win_close(win, true) end others = {}"
#: No statusline shows the counts, so that the float becomes one line.
ALONE = "require('bellboard.start').attach()"
UNCOUNTED = {**QUIET, "statusline": {"auto": False}}
TERMINAL = """
vim.cmd('terminal sleep 600')
return vim.api.nvim_get_chan_info(vim.bo.channel).pty
"""


def stands(editor: Editor, expected: str) -> None:
    """Wait for its corner and height; a key triggers the update."""

    def look() -> bool:
        editor.press("<Ignore>")
        assert editor.lua(FLOAT) == expected, editor.screen.text
        return True

    eventually(look)


@pytest.mark.parametrize(("own", "corner"), [("double", "╔"), ("none", " "), ("", "╭")])
def test_every_float_has_the_border_of_the_user(nvim: Editors, own: str, corner: str) -> None:
    """Of 'winborder', which Neovim 0.11 brought; without it, titles and keys stay readable."""
    editor = nvim(neovim.NEWEST, config={**QUIET, "answer": {"key_delay": 0}}, columns=80, lines=30)
    host, asking = Host(editor), asks("edit", tool="Edit")
    play(editor, edit(asking, "limits.py", "a\n", "b\n"))
    editor.command(f"set winborder={own}")
    host.push(asking)

    def framed(text: str) -> None:
        shown = editor.shows(f"{corner} {text}").text
        assert not (set("╭╔┌") - {corner}) & set(shown), shown

    framed("1 needs you")
    editor.press(":ClaudeSessions pick<CR>")
    framed("Agent sessions")
    editor.press("<Esc>")
    editor.press(":ClaudeSessions answer edit<CR>")
    framed("edit: Edit a file")
    windows = "return #vim.api.nvim_list_wins()"
    before = editor.lua(windows)
    editor.press("R")
    editor.shows("<C-s> send")
    framed("No, and say why")
    editor.press("<C-c>")
    eventually(lambda: editor.lua(windows) == before, "the view alone")
    editor.press("q")
    editor.hides("Edit a file")
    editor.press(":ClaudeSessions board<CR>g?")
    framed("board")


@pytest.mark.parametrize(
    ("own", "border"),
    [
        ("+,-,+,|,+,-,+,|", ["+", "-", "+", "|", "+", "-", "+", "|"]),
        ("shadow", "shadow"),
        ("double", "solid"),
        ("·,-,·,|,·,-,·,|", "solid"),
        ("", "solid"),
    ],
)
def test_a_border_of_the_user_is_kept_where_lines_are_two_cells_wide(
    nvim: Editors, own: str, border: str | list[str]
) -> None:
    """Neovim has to accept the border; a view of two parts has a border that both can share."""
    editor = nvim(neovim.NEWEST, config={**QUIET, "answer": {"key_delay": 0}}, columns=80, lines=30)
    host, asking = Host(editor), asks("edit", tool="Edit")
    play(editor, edit(asking, "limits.py", "a\n", "b\n"))
    editor.nvim.options["winborder"] = own
    editor.command("set ambiwidth=double")
    assert editor.lua("return require('bellboard.highlight').border()") == border
    host.push(asking)
    editor.shows("rm -rf build")
    editor.press(":ClaudeSessions answer edit<CR>")
    editor.shows("edit: Edit a file")
    assert editor.messages() == ""


#: What happens (a command, another float, or its end), and the corner and height after it.
IN_USE: dict[str, list[tuple[str | dict[str, Any], str]]] = {
    "nothing": [("", "NE 2")],
    "the cursor": [("normal! $", "SE 2"), ("normal! 0", "SE 2")],  # it stays where it is if free
    "another float": [
        ("normal! $", "SE 2"),
        ("normal! 0", "SE 2"),
        ({"row": 20, "col": 60, "width": 20, "height": 5}, "NE 2"),
        (SHUT, "NE 2"),
    ],
    "a scrollbar": [
        ({"row": 0, "col": 78, "width": 2, "height": 29, "focusable": False}, "NE 2"),
    ],
    "a float that leaves a row, and two where the cursor is": [
        ({"row": 2, "col": 0, "width": 80, "height": 24, "focusable": True}, "SE 1"),
        (SHUT, "SE 2"),
    ],
    "the board": [
        ("normal! $", "SE 2"),
        ("ClaudeSessions board", "NE 2"),
        ("only", ""),
    ],
}


@pytest.mark.parametrize("name", IN_USE)
def test_it_covers_nothing_that_is_in_use(shared: Editors, version: str, name: str) -> None:
    """The float is in the other corner then, smaller, or hidden."""
    editor = shared(version, UNCOUNTED, columns=80, lines=30)
    host = Host(editor, ALONE)
    host.push()
    editor.lua("_G.others = {}")
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { ('x'):rep(79), 'y' })")
    host.push(blocked())
    stands(editor, "NE 2")
    for happens, corner in IN_USE[name]:
        if isinstance(happens, dict):
            editor.lua(OTHER, happens)
        elif happens == SHUT:
            editor.lua(SHUT)
        else:
            editor.command(happens)
        stands(editor, corner)
    assert editor.messages() == ""


def test_it_covers_no_terminal_that_asks(nvim: Editors, version: str) -> None:
    """The float stays beside the terminal, or is hidden; not once the session works again."""
    editor = nvim(version, UNCOUNTED, columns=80, lines=30)
    host = Host(editor, ALONE)
    editor.command("20vnew")
    tty = editor.lua(TERMINAL)
    host.push(blocked(), blocked("web", tty=tty, ago=9))
    editor.command("wincmd p")
    stands(editor, "NE 4")
    editor.command("wincmd r")
    stands(editor, "")
    host.push(blocked(), session("working", "web", tty=tty))
    eventually(lambda: editor.lua(FLOAT).endswith(" 2"), "room beside a terminal")
    assert editor.messages() == ""


def test_one_line_covers_nothing_near_the_cursor(nvim: Editors, version: str) -> None:
    """Text that was just typed stays visible, too."""
    editor = nvim(version, {**UNCOUNTED, "float": {"seconds": 0.2}}, columns=80, lines=20)
    host = Host(editor, ALONE)
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(('x\\n'):rep(17), '\\n'))")
    editor.press("5gg")
    host.push(blocked())
    stands(editor, "NE 1")
    editor.press("4gg")
    stands(editor, "SE 1")
    editor.press("G")
    stands(editor, "NE 1")
    editor.press("ggOwords")
    stands(editor, "SE 1")
    assert editor.messages() == ""


@pytest.mark.parametrize("how", ["command", "click", "function"])
def test_it_can_be_dismissed_until_another_session_is_blocked(
    nvim: Editors, version: str, how: str
) -> None:
    """By a command, or by a click on its border; it mutes nothing."""
    editor = nvim(version, QUIET, columns=80, lines=20)
    host = Host(editor)
    editor.command("set mouse=a")
    host.push(blocked(asked_at=1), blocked("web", asked_at=2))
    editor.shows(":ClaudeSessions answer · next · dismiss")
    if how == "command":
        editor.command("ClaudeSessions dismiss")
    elif how == "function":
        editor.lua("require('bellboard').dismiss()")
    else:
        click(editor, "2 need you")
    editor.hides("2 need you")
    assert editor.lua(STATUS) == "not shown: dismissed until another session is blocked"
    host.push(blocked(asked_at=1), blocked("web", asked_at=2), session("working"))
    editor.shows("*1")
    assert editor.lua(FLOAT) == ""
    host.push(blocked(asked_at=1), blocked("web", asked_at=2), blocked("docs", asked_at=3))
    editor.shows("3 need you")
    assert editor.messages() == ""


def test_it_covers_no_change_that_is_asked_about(nvim: Editors, version: str) -> None:
    """The diff fills the tab page; the statusline still counts."""
    config = {**QUIET, "float": {"seconds": 0}, "answer": {"key_delay": 0}}
    editor = nvim(version, config, columns=80, lines=30)
    host, asking = Host(editor), asks("edit", tool="Edit")
    play(editor, edit(asking, "/srv/limits.py", "return 5\n", "return 10\n"))
    host.push(asking)
    stands(editor, "NE 2")
    editor.command("ClaudeSessions answer edit")
    editor.shows("Edit a file")
    editor.press("gd")
    eventually(lambda: editor.lua("return vim.wo.diff"), "the diff")
    stands(editor, "")
    editor.command("tabclose")
    editor.shows("Edit a file")
    editor.press("q")
    stands(editor, "NE 2")
    assert editor.messages() == ""


def test_it_shrinks_to_a_line_and_opens_for_a_new_question(nvim: Editors, version: str) -> None:
    """The newest is marked, and among those shown."""
    editor = nvim(version, {**UNCOUNTED, "float": {"seconds": 0.2, "max_sessions": 2}}, columns=80)
    host = Host(editor, ALONE)
    three = [blocked(name, ago=7300, asked_at=at) for at, name in enumerate(("api", "web", "docs"))]
    plan = blocked("infra", "Which one?", kind="question", ago=7100, asked_at=3)
    host.push(*three, plan)
    editor.shows(" !3 ?1 · api: rm -rf build 2h")
    editor.hides("4 need you")
    slow = "vim.g.bellboard = { float = { seconds = 0, max_sessions = 2 } }"
    editor.lua(slow + " require('bellboard').setup()")
    host.push(*three, plan)
    editor.shows(" !3 ?1 · api")
    host.push(*three, plan, blocked("new", ago=5, asked_at=4))
    picture = editor.shows("5 need you")
    assert " ! api " in picture.text
    assert ">! new " in picture.text
    assert "and 3 more" in picture.text
    host.push(*three)
    editor.shows("3 need you")


def test_it_closes_where_the_statusline_says_the_same(nvim: Editors) -> None:
    """Instead of one line of its own, until another session is blocked."""
    editor = nvim(config={**QUIET, "float": {"seconds": 0.2}}, columns=80)
    host = Host(editor)
    host.push(blocked())
    eventually(lambda: editor.lua(FLOAT) == "", "closed")
    editor.shows("!1 api: rm -rf build 2m")
    editor.command("checkhealth bellboard")
    editor.shows("not shown: the statusline says it")
    editor.lua("vim.g.bellboard = { float = { seconds = 0 } } require('bellboard').setup()")
    host.push(blocked(), blocked("web", ago=5))
    editor.shows("2 need you")


def heard(editor: Editor) -> None:
    """Record jumps instead of making them."""
    editor.lua("""
      require('bellboard.jump').to = function(id) _G.went = id end
      require('bellboard.answer').to = function(id) _G.went = id end
      require('bellboard.picker').open = function() _G.went = 'pick' end
      vim.o.mouse = 'a'
    """)


def click(editor: Editor, text: str, button: str = "left", *actions: str) -> None:
    lines = editor.shows(text).lines
    row = next(n for n, line in enumerate(lines) if text in line)
    for action in actions or ("press", "release"):
        editor.nvim.api.input_mouse(button, action, "", 0, row, lines[row].index(text))


def test_every_row_is_a_button(nvim: Editors, version: str) -> None:
    """A session's rows show its request, the last row the picker, the one line the full float."""
    editor = nvim(version, {**UNCOUNTED, "float": {"seconds": 0, "max_sessions": 2}}, columns=80)
    host = Host(editor, ALONE)
    heard(editor)
    before: Any = editor.lua("return vim.api.nvim_get_current_win()")
    host.push(blocked(ago=300), blocked("web", "npm publish"), blocked("docs", "make", ago=7))
    for text, leads in (("! api", "api"), ("make", "docs"), ("and 1 more", "pick")):
        editor.lua("_G.went = nil")
        click(editor, text)
        eventually(lambda leads=leads: editor.lua("return went") == leads, f"click on {text}")
        assert editor.lua("return vim.api.nvim_get_current_win()") == before
    editor.lua("vim.g.bellboard = { float = { seconds = 0.2 } } require('bellboard').setup()")
    host.push(blocked(ago=300), blocked("web", ago=2))
    editor.hides("2 need you")
    editor.lua("vim.g.bellboard = { float = { seconds = 0 } } require('bellboard').setup()")
    click(editor, "!2 · api")
    editor.shows("2 need you")


#: The buffers of the plugin's floats, and whether each has changes to save.
BUFFERS = """
return vim.tbl_map(function(buf) return vim.bo[buf].modified end, vim.tbl_filter(function(buf)
  return not vim.bo[buf].buflisted and vim.api.nvim_buf_get_name(buf) == ''
end, vim.api.nvim_list_bufs()))
"""


@pytest.mark.parametrize("is_open", [True, False])
def test_it_is_itself_again_after_all_buffers_were_deleted(
    nvim: Editors, version: str, is_open: bool
) -> None:
    """Rows are buttons again, and `:quitall` asks to save nothing."""
    editor = nvim(version, {**QUIET, "float": {"seconds": 0}}, columns=80)
    host = Host(editor)
    heard(editor)
    host.push(blocked(ago=300))
    editor.shows("1 needs you")
    if not is_open:
        host.push()
        editor.hides("1 needs you")
    editor.command("edit one | edit two | silent %bdelete")
    host.push(blocked(ago=300), blocked("web", "npm publish"))
    editor.command("edit two")
    click(editor, "npm publish")
    eventually(lambda: editor.lua("return went") == "web", "the session")
    assert editor.lua(BUFFERS) == [False]
    assert editor.messages() == ""


@pytest.mark.parametrize("keys", ["", "i", "v"])
def test_a_click_leads_to_the_request(nvim: Editors, version: str, keys: str) -> None:
    """The next key acts on it."""
    config = {**QUIET, "float": {"seconds": 0}, "answer": {"key_delay": 0}}
    editor = nvim(version, config, columns=80)
    host, asking = Host(editor), asks("edit", tool="Edit")
    play(editor, edit(asking, "limits.py", "a\n", "b\n"))
    editor.command("set mouse=a")
    host.push(asking)
    editor.shows("1 needs you")
    editor.press(keys)
    click(editor, "! edit")
    editor.shows("edit: Edit a file")
    assert editor.lua("return vim.fn.mode()") == "n"
    editor.press("q")
    editor.hides("edit: Edit a file")
    assert editor.messages() == ""


def test_stop_clears_it(nvim: Editors, version: str) -> None:
    """Without a background process, nobody knows whether the sessions still ask."""
    editor = nvim(version, QUIET, columns=80)
    editor.lua("require('bellboard').start()")
    Host(editor).push(blocked())
    editor.shows("1 needs you")
    editor.command("ClaudeSessions process stop")
    editor.hides("1 needs you")


def test_checkhealth_says_why_it_is_not_shown(nvim: Editors, version: str) -> None:
    """Each time there is one reason, the first that is true."""
    editor = nvim(version, QUIET, columns=80, lines=30)
    host = Host(editor)
    editor.lua("require('bellboard').start()")
    parked = {"float": [], "left_out": {"api": "parked"}}
    own = editor.lua("return vim.v.servername")

    def says(expected: str) -> None:
        eventually(lambda: editor.lua("return require('bellboard.float').status()") == expected)

    says("not shown: nothing was received from the background process yet")
    host.push(session("api", "working"), in_front="/tmp/other")
    says("not shown: nothing is blocked")
    host.push(blocked("api"), front=False, float=[], in_front="/tmp/other")
    says("not shown: another Neovim had the focus last: /tmp/other")
    host.push(blocked("api"), front=False, float=[], in_front="")
    says("not shown: no Neovim has a screen")
    host.push(blocked("api"), in_front=own, **parked)
    says("not shown: api: parked")
    host.push(blocked("api"), blocked("web"), in_front=own, left_out={})
    says("shown (2 sessions)")
    everywhere = {"row": 0, "col": 0, "width": 80, "height": 29, "focusable": True}
    editor.lua(OTHER, everywhere)
    stands(editor, "")
    says("not shown: no corner of the screen is free")
    editor.lua(SHUT)
    stands(editor, "NE 4")
    editor.command("checkhealth bellboard")
    assert "float: shown (2 sessions)" in "\n".join(editor.nvim.current.buffer[:])
    editor.command("set columns=29")
    says("not shown: the screen is smaller than 30x8")
    editor.command("ClaudeSessions process stop")
    says("not shown: the sessions are out of date")
    editor.lua("require('bellboard').setup({ float = { enabled = false } })")
    says("not shown: `float.enabled` is false")


def test_its_buffer_does_not_grow(nvim: Editors, version: str) -> None:
    """However often it changes: Neovim keeps the marks of a text that was replaced."""
    editor = nvim(version, QUIET, columns=80)
    host = Host(editor)
    for turn in range(30):
        host.push(blocked(detail=f"make step-{turn}"), blocked("web", f"ask {turn}"))
        editor.shows(f"make step-{turn} ")
    assert editor.lua(MARKS) < 30
