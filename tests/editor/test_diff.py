"""A change as a diff in a tab page: Neovim's own diff mode, with no keys of ours."""

from __future__ import annotations

from typing import Any

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import CALM, asks, edit, opened, play
from rig.host.sample import Host
from rig.waiting import eventually

#: The text of the buffers in the tab page, and the group of their second lines.
SIDES = """
return vim.tbl_map(function(win)
  return vim.api.nvim_win_call(win, function()
    local group = vim.fn.synIDattr(vim.fn.diff_hlID(2, 1), 'name')
    local ours = vim.wo.winhighlight:match(group .. ':(%w+)')
    return { vim.fn.getline(1, '$'), ours or group }
  end)
end, vim.api.nvim_tabpage_list_wins(0))
"""


def show_diff(editor: Editor, **more: Any) -> None:
    """Open the diff of a change to a file that has another line as well."""
    file = editor.home.file("limits.py", "import os\n    DEBUG = TRUE\n")
    asking = asks("edit", tool="Edit", **more)
    play(editor, edit(asking, str(file), "    DEBUG = TRUE\n", "  DEBUG = True\n  more = 1\n"))
    Host(editor).push(asking)
    opened(editor, "edit", "Edit a file")
    editor.press("gd")
    eventually(lambda: editor.lua("return vim.wo.diff"), "a diff")


def test_the_diff_of_a_file_is_a_tab_page_as_neovim_makes_it(shared: Editors, version: str) -> None:
    """Keys are the user's, 'diffopt' is unchanged; the request is behind the diff, and answers."""
    editor = shared(version, CALM, columns=130, lines=30)
    editor.command("set diffopt+=icase")
    theirs = editor.nvim.eval("[&diffopt, &diffexpr]")
    show_diff(editor)
    assert editor.nvim.eval("[&diffopt, &diffexpr]") == theirs
    sides = [lines for lines, _ in editor.lua(SIDES)]
    assert sides == [
        ["import os", "    DEBUG = TRUE"],
        ["import os", "  DEBUG = True", "  more = 1"],
    ]
    assert editor.nvim.eval("map(['A', 'q', '<CR>'], {_, key -> maparg(key, 'n')})") == [""] * 3
    editor.press("A")
    editor.command("$tabnew | tabprevious | tabclose")
    editor.shows("edit: Edit a file")
    assert editor.lua("return answers") == []
    editor.press("A")
    eventually(lambda: editor.lua("return #answers") == 1, "the answer")
    eventually(lambda: editor.messages().endswith("bellboard: edit: answered"), "the message")


def test_a_red_line_is_a_deleted_line(shared: Editors) -> None:
    """Neovim would show it as one that is added, as the other window does not have it."""
    editor = shared(config=CALM, columns=130, lines=30)
    file = editor.home.file("limits.py", "import os\nDEBUG = 1\nlast = 1\n")
    asking = asks("edit", tool="Edit")
    play(editor, edit(asking, str(file), "DEBUG = 1\n", ""))
    Host(editor).push(asking)
    opened(editor, "edit", "Edit a file")
    rows = "return vim.iter(vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, { details = true }))"
    groups = rows + ":map(function(m) return m[4].line_hl_group end):totable()"
    assert editor.lua(groups) == ["Removed"]
    editor.press("gd")
    eventually(lambda: editor.lua("return vim.wo.diff"), "a diff")
    (before, group), (after, _) = editor.lua(SIDES)
    assert (len(before), len(after), group) == (3, 2, "DiffDelete")


def test_a_change_on_another_machine_is_not_compared_with_a_file_here(shared: Editors) -> None:
    """The diff would show changes that do not exist."""
    editor = shared(config=CALM, columns=90, lines=30)
    show_diff(editor, machine="dev")
    assert "import os" not in editor.screen.text


def test_what_replaces_the_request_leaves_the_diff_to_the_user(shared: Editors) -> None:
    """The user closes the diff, and returns to the window before."""
    editor = shared(config=CALM, columns=90, lines=30)
    show_diff(editor)
    play(editor)
    Host(editor).push()
    eventually(lambda: "The session has ended" in editor.messages(), "its end")
    assert editor.lua("return vim.wo.diff")
    editor.command("tabclose")
    assert editor.lua("return { #vim.api.nvim_list_wins(), vim.wo.diff }") == [1, False]
