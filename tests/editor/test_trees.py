"""Plugins that open and enter a window of their own as soon as another one opens."""

from __future__ import annotations

from typing import Any

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.sample import QUIET, Host, blocked

CALM = {**QUIET, "float": {"enabled": False}}
#: As `autocmd BufWinEnter * silent! NERDTreeMirror`, of the manual of NERDTree.
TREE = """
_G.tree = vim.api.nvim_create_buf(false, true)
vim.api.nvim_create_autocmd('BufWinEnter', { callback = function()
  if vim.fn.bufwinid(tree) == -1 then
    vim.cmd('topleft vertical 31split | buffer ' .. tree .. ' | setlocal number nowinfixbuf')
  end
end })"""
#: Whether each window of this tab page has the focus, line numbers, and a fixed buffer.
SHOWN = """
local shown = {}
for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  local buf = vim.api.nvim_win_get_buf(win)
  shown[buf == tree and 'tree' or 'ours'] = {
    win == vim.api.nvim_get_current_win(), vim.wo[win].number, vim.wo[win].winfixbuf,
  }
end
return shown"""
LAUNCH = "require('bellboard.jump.launch').terminal({ 'cat' })"


def shown(editor: Editor) -> Any:
    """Return the windows; nothing has failed."""
    assert editor.messages() == ""
    return editor.lua(SHOWN)


def test_a_tree_beside_the_board_stays_a_tree(nvim: Editors, version: str) -> None:
    """The board gets the focus and its own options."""
    editor = nvim(version, CALM, columns=100)
    Host(editor).push(blocked())
    editor.lua(TREE)
    editor.command("ClaudeSessions board")
    editor.shows("rm -rf build")
    assert shown(editor)["tree"] == [False, True, False]
    board = editor.lua("return { vim.bo.filetype, vim.wo.number, vim.wo.winfixbuf }")
    assert board == ["bellboard", False, True]
