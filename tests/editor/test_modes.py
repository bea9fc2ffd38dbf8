"""Typing continues as if no host had sent anything: every mode, both Neovims.

Each case is typed twice, in the same editor with the board open.  In the middle of the second time,
a session is blocked (the float opens, the board and the statusline change), then another one, then
none (the float closes).
"""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

import pytest

from bellboard import __version__ as VERSION
from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import asks, command, play
from rig.host.sample import QUIET, Host, blocked, dated, session
from rig.waiting import eventually, rest

PUSH = "require('bellboard')._push(...)"
#: As the background process does.
HOST_PUSH = "require('bellboard.process.talk')._pushed(...)"
BEGIN = """
vim.cmd('enew!')
vim.o.shortmess = vim.o.shortmess .. 'I'
vim.bo.bufhidden = 'wipe'
vim.api.nvim_buf_set_lines(0, 0, -1, false, {
  'one two three', 'four five six', 'seven eight nine', 'ten', 'only other words',
})
vim.bo.undolevels = vim.bo.undolevels -- what was set is no change
for letter in ('abcdefghijklmnopqrstuvwxyz0123456789'):gmatch('.') do
  vim.fn.setreg(letter, {})
end
vim.fn.setreg('q', vim.keycode('ihello <Esc>:sleep 400m<CR>awide <Esc>'))
vim.fn.setreg('"', 'unnamed')
vim.fn.setreg('/', '')
vim.cmd('messages clear')
vim.v.errmsg = ''
vim.api.nvim_win_set_cursor(0, { 1, 0 })
vim.cmd.clearjumps()
vim.g.tick = vim.b.changedtick
"""
#: Goes into the typeahead: the next request is answered after all of it was processed.
TYPE = "vim.api.nvim_feedkeys(vim.keycode(...), 't', false)"
STATE = """
local function here(value) return vim.fn.getpos(value) end
local regs, marks, wins = {}, {}, {}
for letter in ('"abcdefghijklmnopqrstuvwxyz0123456789-./:'):gmatch('.') do
  regs[letter] = { vim.fn.getreg(letter), vim.fn.getregtype(letter) }
end
for mark in ('<>[]^.'):gmatch('.') do
  marks[mark] = here("'" .. mark)
end
for place, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  if vim.api.nvim_win_get_config(win).relative == '' then
    local size = { vim.api.nvim_win_get_width(win), vim.api.nvim_win_get_height(win) }
    table.insert(wins, { size, win == vim.api.nvim_get_current_win() })
  end
end
local tree = vim.fn.undotree()
return {
  mode = vim.api.nvim_get_mode().mode,
  text = vim.api.nvim_buf_get_lines(0, 0, -1, false),
  view = vim.fn.winsaveview(),
  visual = here('v'),
  regs = regs,
  marks = marks,
  wins = wins,
  undo = { tree.seq_cur, tree.seq_last, #tree.entries },
  tick = vim.b.changedtick - vim.g.tick,
  count = { vim.v.count, vim.v.count1, vim.v.register, vim.v.operator },
  command = { vim.fn.getcmdtype() .. vim.fn.getcmdline(), vim.fn.getcmdpos() },
  window = vim.fn.getcmdwintype(),
  popup = { vim.fn.pumvisible(), vim.fn.complete_info({ 'selected', 'mode' }) },
  recording = vim.fn.reg_recording(),
  jumps = #vim.fn.getjumplist()[1],
  changes = vim.fn.getchangelist()[1],
  search = { vim.fn.getreg('/'), vim.v.searchforward, vim.v.hlsearch },
  errors = vim.v.errmsg,
  messages = vim.fn.execute('messages'):gsub('%d+ seconds? ago', 'ago'),
  global = { vim.g.typed or 0 },
}
"""


class Way(NamedTuple):
    """The keys up to the middle, the mode there, and the remaining keys."""

    before: str
    mode: str
    after: str
    waits: str = ""  # if it blocks on a key there: how the last row ends
    draws: bool = (
        True  # whether windows are redrawn; with a half-typed command, only the statusline is
    )


WAYS = {
    "insert": Way("ihello", "i", " wide<Esc>j."),
    "append": Way("Ahello", "i", "<BS>p!<Esc>u<C-r>j."),
    "insert with a count": Way("3ix", "i", "y<Esc>j."),
    "replace": Way("RON", "R", "E<Esc>j."),
    "virtual replace": Way("gRON", "Rv", "E<Esc>"),
    "visual": Way("wve", "v", "djgv<Esc>"),
    "visual lines": Way("jVj", "V", "yGp"),
    "visual block": Way("l<C-v>je", "\x16", "c-<Esc>j."),
    "visual block insert": Way("<C-v>jIab", "i", "c<Esc>j0."),
    "select": Way("wgh", "s", "x<Esc>"),
    "command": Way(":let g:typed = 4", "c", "2<CR>", draws=False),
    "command in the middle": Way(
        ":let typed = 4<C-b><Right><Right><Right><Right>", "c", "g:<CR>", draws=False
    ),
    "search": Way("/fi", "c", "ve<CR>x", draws=False),
    "command from insert": Way("ix<C-o>:let g:typed", "c", " = 7<CR>y<Esc>", draws=False),
    "command window": Way("q:ilet g:typed = 4", "i", "3<Esc><CR>", draws=False),
    "completion": Way("jjjo<C-n>", "ic", "<C-n><C-y>!<Esc>j."),
    "operator": Way('"a2d', "no", "w."),
    "register": Way('"b', "n", "yyp"),
    "letter of a register": Way('"', "n", "cyyp", waits='"'),
    "count": Way("3", "n", "x.", waits="3"),
    "replaced letter": Way("r", "R", "X.", waits="r"),
    "found letter": Way("ct", "no", "tnew<Esc>j0.", waits="ct"),
    "insert a register": Way("yiwA <C-r>", "i", '"!<Esc>j.', waits="^R"),
    "getchar": Way(":let g:typed = getchar()<CR>", "n", "x", draws=False),
    "hit-enter": Way(':echo "a\\nb\\nc"<CR>', "r", "<CR>x", waits="command to continue"),
    "recording": Way("qaAx", "i", "<Esc>jq@a"),
    "recording in normal mode": Way("qaxj", "n", "xjq@au"),
}


def message(host: Host, *sessions: dict[str, Any]) -> str:
    """Return a message as a host sends it: one string."""
    host.seq += 1
    calling = [s["session_id"] for s in sessions if s["status"] == "blocked"]
    head = {"v": 2, "version": VERSION, "seq": host.seq, "full": True, "now": time.time()}
    rest: dict[str, Any] = {"removed": [], "transitions": [], "front": True, "float": calling}
    return json.dumps({**head, "sessions": [*sessions], **rest})


ONE = dated(blocked("api", "rm -rf build", ago=1), 2.0)
TWO = dated(blocked("web", "npm publish", ago=1), 3.0)
NONE = dated(session("working", "api", ago=1, project="api", tool="Edit"), 2.0)
OTHER = dated(session("working", "web", ago=1, project="web", tool="Read"), 3.0)
#: The pushes in order, and what the statusline and the float then show.
STORIES = ((ONE,), (ONE, TWO), (NONE,))
SHOWN = (("!1 api", "1 needs you"), ("!2 ", "2 need you"), (" *1", ""))


def opened(shared: Editors, version: str) -> tuple[Editor, Host]:
    editor = shared(version, QUIET, columns=90, lines=30)
    host = Host(editor)
    editor.nvim.exec_lua(PUSH, message(host, NONE))
    editor.lua("vim.o.showmode, vim.o.showcmd = true, true vim.o.mousemodel = 'extend'")
    editor.command("ClaudeSessions board")
    editor.command("wincmd p")
    editor.lua(BEGIN)
    return editor, host


def is_in(editor: Editor, way: Way) -> None:
    """Wait for the middle: that mode, and whether it waits for a key."""

    def look() -> bool:
        now = editor.nvim.request("nvim_get_mode")
        expected = (way.mode, bool(way.waits))
        assert (now["mode"][: len(way.mode)], now["blocking"]) == expected, now
        return True

    eventually(look)


def lived(editor: Editor, way: Way) -> Any:
    """Return the final state, once all keys have had their effect."""
    editor.press(way.after)
    editor.press("<C-\\><C-n>:let g:done = 1<CR>")
    eventually(lambda: editor.nvim.request("nvim_get_mode")["mode"] == "n", "the end")
    eventually(lambda: editor.lua("return vim.g.done == 1"), "the end")
    editor.lua("vim.g.done = nil")
    return editor.lua(STATE)


def still(editor: Editor) -> str:
    """Return the last row of the screen: typed text, and messages."""
    return editor.screen.lines[-1]


@pytest.mark.parametrize("waits", [False, True], ids=["typing", "waiting for a key"])
def test_typing_is_not_disturbed(shared: Editors, version: str, waits: bool) -> None:
    """Mode, text, cursor, registers, marks, undo, repeat, windows, count and messages."""
    editor, host = opened(shared, version)
    for name, way in WAYS.items():
        if bool(way.waits) == waits:
            live_through(editor, host, name, way)


def live_through(editor: Editor, host: Host, name: str, way: Way) -> None:
    """Type the keys once undisturbed, and once with pushes in the middle."""
    ends = []
    for meanwhile in (None, pushed_while_waiting if way.waits else pushed_while_typing):
        editor.lua(BEGIN)
        editor.lua(TYPE, way.before)
        is_in(editor, way)
        if meanwhile:
            meanwhile(editor, host, name)
            is_in(editor, way)
        ends.append(lived(editor, way))
    assert ends[1] == ends[0], name
    eventually(lambda: "need" not in editor.screen.text, "no float")


def pushed_while_typing(editor: Editor, host: Host, name: str) -> None:
    """Each change is on the screen at once, and nothing else has changed."""
    way, before = WAYS[name], editor.lua(STATE)
    editor.nvim.exec_lua(PUSH, message(host, NONE, OTHER), async_=True)
    eventually(lambda: " *2" in editor.screen.lines[-2], f"all that was drawn before, in {name}")
    row = still(editor)
    for story, (status, note) in zip(STORIES, SHOWN, strict=True):
        editor.nvim.exec_lua(PUSH, message(host, *story), async_=True)
        eventually(lambda status=status: status in editor.screen.lines[-2], f"{status} in {name}")
        if way.draws and note:
            editor.shows(note)
        elif way.draws:
            eventually(lambda: "need" not in editor.screen.text, "no float")
        assert editor.lua(STATE) == before, name
        assert still(editor) == row, name


def drawn(editor: Editor) -> list[str] | None:
    """Return the screen, once nothing more comes."""
    lines = editor.screen.lines
    rest(0.1)
    return lines if editor.screen.lines == lines else None


def pushed_while_waiting(editor: Editor, host: Host, name: str) -> None:
    """A push is queued as everything else is: the screen does not change."""
    eventually(lambda: still(editor).endswith(WAYS[name].waits), f"the keys of {name}")
    lines = eventually(lambda: drawn(editor), "all that was drawn before")
    for story in STORIES:
        editor.nvim.exec_lua(PUSH, message(host, *story), async_=True)
    editor.nvim.request("nvim_get_mode")  # they have arrived once this returns
    assert editor.screen.lines == lines, name


def test_a_running_macro_is_not_disturbed(shared: Editors, version: str) -> None:
    """Everything changes while it sleeps half-way; what it types is complete."""
    editor, host = opened(shared, version)
    editor.lua(BEGIN)
    editor.press("@q")
    editor.shows("hello")
    for story in STORIES:
        editor.nvim.exec_lua(PUSH, message(host, *story), async_=True)
    eventually(lambda: editor.lua("return vim.fn.getline(1)") == "hello wide one two three")
    assert editor.lua("return vim.fn.getline(2)") == "four five six"
    assert editor.lua("return vim.fn.getreg('q')").startswith("ihello")


def test_an_expression_mapping_is_not_disturbed(shared: Editors, version: str) -> None:
    """A push that arrives while the mapping waits for a key, with a lock, is shown after it."""
    editor, host = opened(shared, version)
    editor.lua(BEGIN)
    editor.lua(
        "vim.keymap.set('n', 'gz', function() vim.g.at = 'waits'"
        " local key = vim.fn.getcharstr() vim.g.at = key return 'x' end, { expr = true })"
    )
    editor.nvim.exec_lua(HOST_PUSH, message(host, ONE))
    editor.shows("1 needs you")
    editor.press("gz")
    eventually(lambda: editor.lua("return vim.g.at") == "waits")
    editor.nvim.exec_lua(HOST_PUSH, message(host, ONE, TWO), async_=True)
    editor.nvim.request("nvim_get_mode")  # it has arrived once this returns
    editor.press("w")
    eventually(lambda: editor.lua("return vim.g.at") == "w")
    editor.shows("2 need you")
    assert editor.lua("return vim.fn.getline(1)") == "ne two three"
    assert editor.lua("return { vim.v.errmsg, vim.fn.execute('messages') }") == ["", ""]


def test_what_fails_after_a_lock_keeps_nothing_else_back(shared: Editors) -> None:
    """The error is shown, and later actions run."""
    editor = shared(config=QUIET, ui=False)
    editor.lua(
        "local when = require('bellboard.moment').when"
        " vim.keymap.set('n', 'gz', function()"
        "   when('draw', function() error('one fails', 0) end)"
        "   when('draw', function() vim.g.next = 'comes' end)"
        "   vim.g.early = vim.g.next or 'nothing' return '' end, { expr = true })"
    )
    editor.press("gz")
    eventually(lambda: editor.lua("return vim.g.next") == "comes", "the second")
    assert editor.lua("return vim.g.early") == "nothing"
    assert "one fails" in editor.messages()


def test_a_terminal_is_not_disturbed(shared: Editors, version: str) -> None:
    """Terminal mode continues, and the program gets each key once."""
    editor, host = opened(shared, version)
    editor.lua(BEGIN)
    editor.command("enew! | terminal cat")
    editor.press("ione ")
    editor.shows("one")
    for story, (_, note) in zip(STORIES[:2], SHOWN[:2], strict=True):
        editor.nvim.exec_lua(PUSH, message(host, *story), async_=True)
        editor.shows(note)
    assert editor.nvim.request("nvim_get_mode")["mode"] == "t"
    editor.press("two<CR>")
    eventually(lambda: editor.screen.text.count("one two") == 2, "the echo and the copy")


@pytest.mark.parametrize("keys", ["i", "A", "R", "gR", "A<C-o>R"])
def test_a_view_goes_back_to_the_mode_it_was_opened_from(
    shared: Editors, version: str, keys: str
) -> None:
    """Keys of the view work, and typing continues where it was."""
    editor, host = opened(shared, version)
    editor.lua(BEGIN)
    asking = asks("web")
    play(editor, command(asking, "make"))
    host.push(asking)
    editor.lua("vim.keymap.set({ 'n', 'i' }, '<F2>', '<Cmd>ClaudeSessions answer web<CR>')")
    ends = []
    for meanwhile in ("", "<F2>", "<C-o><F2>"):
        editor.lua("vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'one\ttwo three' })")
        editor.press(f"gg0{keys}ab")
        if meanwhile:
            editor.press(meanwhile)
            editor.shows("web: Run a command")
            eventually(lambda: editor.nvim.request("nvim_get_mode")["mode"] == "n", "its keys")
            editor.press("q")
            editor.hides("web: Run a command")
        eventually(lambda: editor.nvim.request("nvim_get_mode")["mode"][0] in "iR", "the mode")
        ends.append([editor.nvim.request("nvim_get_mode")["mode"]])
        editor.press("cd")
        eventually(lambda: "cd" in editor.lua("return vim.fn.getline(1)"), "what is typed")
        ends[-1].append(editor.lua("return vim.fn.getline(1)"))
        editor.press("<Esc>")
        eventually(lambda: editor.nvim.request("nvim_get_mode")["mode"] == "n", "the end")
    assert ends[1] == ends[2] == ends[0]
