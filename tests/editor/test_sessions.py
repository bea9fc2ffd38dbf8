"""Session files (:mksession): what becomes of our windows in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import CALM, asks, edit, opened, play
from rig.host.sample import Host
from rig.waiting import eventually

#: The names of all buffers that are listed or shown.
NAMES = """
return vim.tbl_map(function(buf)
  return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ':t')
end, vim.tbl_filter(function(buf)
  return vim.bo[buf].buflisted or #vim.fn.win_findbuf(buf) > 0
end, vim.api.nvim_list_bufs()))
"""


def opens(editor: Editor, view: str) -> None:
    """Show a view, or several."""
    asking = asks("edit", tool="Edit")
    play(editor, edit(asking, "/nowhere/limits.py", "    DEBUG = TRUE\n", "  DEBUG = true\n"))
    Host(editor).push(asking)
    if view == "notices":
        editor.lua("require('bellboard.notify').history({})")
        editor.shows("No notifications yet.")
    elif view == "preview":
        editor.press(":ClaudeSessions board<CR>P")
        eventually(lambda: editor.lua("return vim.fn.bufwinid('bellboard://preview')") > 0, "it")
    else:
        opened(editor, "edit", "Edit a file")
        if "diff" in view:
            editor.press("gd")
            eventually(lambda: editor.lua("return vim.wo.diff"), "a diff")


@pytest.mark.parametrize("view", ["notices", "preview", "diff", "split", "split diff"])
@pytest.mark.parametrize("is_late", [False, True], ids=["loaded", "late"])
def test_a_session_file_restores_no_dead_window(
    nvim: Editors, version: str, tmp_path: Path, view: str, is_late: bool
) -> None:
    """Only the board is restored, also if this plugin is loaded later."""
    file = tmp_path / "session.vim"
    answer = {"key_delay": 0, "layout": "split" if "split" in view else "float"}
    editor = nvim(version, {**CALM, "answer": answer}, columns=130, lines=40)
    editor.command("edit one")
    opens(editor, view)
    editor.command(f"mksession {file}")
    editor.close()
    editor = nvim(version, CALM, columns=130, lines=40)
    if is_late:
        editor.command("autocmd! SessionLoadPost")
        editor.command("autocmd! BufReadCmd bellboard://board")
    editor.command(f"source {file}")
    if is_late:
        editor.lua("vim.g.loaded_bellboard = nil")
        editor.command("runtime plugin/bellboard.lua")
    left = ["board", "one"] if view == "preview" else ["one"]
    eventually(lambda: sorted(editor.lua(NAMES)) == left, "only these")
    windows = editor.lua("return { #vim.api.nvim_list_wins(), vim.fn.tabpagenr('$') }")
    assert windows == [len(left), 1]
    if view == "preview":
        editor.shows("No sessions")
    assert editor.messages() == ""
