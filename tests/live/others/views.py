"""The views to look at: statuslines, the float and the board, each set up in an editor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from live.others.pickers import PICKERS, checked, opened
from live.others.quitting import BESIDE, forced, refused
from live.others.terminals import KEEPERS, kept
from rig.editor import Editor
from rig.host.sample import Host, blocked, house, machines

TEXT = "vim.cmd('edit! lua/api.lua') vim.api.nvim_buf_set_lines(0, 0, -1, false, { ... })"
CODE = ("local M = {}", "", "-- What the limiter allows.", "M.most = 30", "", "return M")
OWN = """
local options = { statusline = { auto = true } }
vim.g.bellboard = vim.tbl_deep_extend('force', vim.g.bellboard, options)
require('bellboard').setup()
require('bellboard')._attach()
_G.own = vim.go.statusline
"""
PLAIN = """
_G.plain = function()
  return ' %f %m%=' .. require('bellboard').statusline() .. ' %l:%c '
end
vim.o.statusline = '%!v:lua.plain()'
"""
HEIRLINE = """
local bells = {
  provider = function() return require('bellboard').statusline() end,
  update = { 'User', pattern = 'BellboardUpdate', callback = vim.schedule_wrap(function()
    vim.cmd.redrawstatus()
  end) },
}
require('heirline').setup({ statusline = { { provider = ' %f %m%=' }, bells, { provider = ' ' } } })
"""
MINI = """
local bar = 'MiniStatuslineFileinfo'
local function active()
  local bells = require('bellboard').statusline({ on = bar })
  return MiniStatusline.combine_groups({
    { hl = 'MiniStatuslineFilename', strings = { '%f%m' } },
    '%=',
    { hl = bar, strings = { bells } },
  })
end
require('mini.statusline').setup({ use_icons = false, content = { active = active } })
"""
LUALINE = """
require('lualine').setup({
  options = { icons_enabled = false },
  sections = { lualine_x = { 'bellboard', 'filetype' } },
})
"""
#: name → the plugins it needs, and Lua
STATUSLINES: dict[str, tuple[list[str], str]] = {
    "default": ([], "vim.o.statusline = own"),
    "expression": ([], PLAIN),
    "lualine": (["lualine.nvim"], LUALINE),
    "heirline": (["heirline.nvim"], HEIRLINE),
    "mini": (["mini.nvim"], MINI),
    "by-hand": (
        [],
        "vim.o.statusline = \" %f %m%=%{%v:lua.require'bellboard'.statusline()%} \"",
    ),
}


def statusline(name: str) -> Callable[[Editor], None]:
    def show(editor: Editor) -> None:
        editor.lua(OWN)
        host = Host(editor)
        editor.lua("vim.o.laststatus = 2")
        editor.lua(STATUSLINES[name][1])
        editor.lua(TEXT, *CODE)
        editor.command("botright 6split")
        host.push(*house())

    return show


def floating(editor: Editor) -> None:
    editor.lua("vim.g.bellboard.float = { seconds = ... }", 0)
    editor.lua(TEXT, *CODE)
    Host(editor).push(*house(), blocked("infra", "terraform destroy", label="HEAVY", ago=3700))


def board(*sessions: dict[str, Any]) -> Callable[[Editor], None]:
    def show(editor: Editor) -> None:
        Host(editor).push(*sessions)
        editor.command("ClaudeSessions board | only")

    return show


def picking(name: str) -> Callable[[Editor], None]:
    def show(editor: Editor) -> None:
        opened(name, editor, house())

    return show


#: name → the plugins it needs, and what sets it up
VIEWS: dict[str, tuple[list[str], Callable[[Editor], Any]]] = {
    **{f"status-{name}": (needs, statusline(name)) for name, (needs, _) in STATUSLINES.items()},
    "float": ([], floating),
    "board": ([], board(*house())),
    "board-machines": ([], board(*machines(), *house())),
    **{f"pick-{name}": (picker.needs, picking(name)) for name, picker in PICKERS.items()},
}


Check = Callable[[str, Editor], Iterator[str]]


def checking(check: Check, name: str) -> Callable[[Editor], Iterator[str]]:
    return lambda editor: check(name, editor)


#: name → the plugins it needs, and what tries it
CHECKS: dict[str, tuple[list[str], Callable[[Editor], Iterator[str]]]] = {
    **{f"pick-{name}": (x.needs, checking(checked, name)) for name, x in PICKERS.items()},
    **{f"terminal-{name}": (x.needs, checking(kept, name)) for name, x in KEEPERS.items()},
    **{f"quit-{name}": (x.needs, checking(refused, name)) for name, x in BESIDE.items()},
    **{f"quit!-{name}": (x.needs, checking(forced, name)) for name, x in BESIDE.items()},
}
