"""A change, as a diff in a tab page of its own: what it shows, and what its keys do."""

from __future__ import annotations

from typing import Any

import pytest

from asked import asks, edit, play
from rig.editor import Editor
from rig.fixtures import Editors
from rig.waiting import eventually
from sample import Host
from test_editor_answer import CALM, opened

pytestmark = pytest.mark.editor

FLOAT = """
local at = { relative = 'editor', row = 1, col = 1, width = 5, height = 1 }
vim.api.nvim_open_win(vim.api.nvim_create_buf(false, true), false, at)
"""

CLOSE_FLOATS = (
    "vim.iter(vim.api.nvim_list_wins())"
    ":filter(function(w) return vim.api.nvim_win_get_config(w).relative ~= '' end)"
    ":each(function(w) vim.api.nvim_win_close(w, true) end)"
)


def diffs(session: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a request that asks about two changes of a file, and says something about each."""
    asked = edit(session, path, "    DEBUG = TRUE\n", "  DEBUG = true\n")
    more = {"label": "Everywhere in the file", "warnings": ["a line break added"]}
    asked["parts"] = [{**asked["parts"][0], **more}, dict(asked["parts"][0])]
    return asked


def show_diff(editor: Editor) -> None:
    """Open the diff of a change to a file that does not exist."""
    asking = asks("edit", tool="Edit")
    play(editor, edit(asking, "/nowhere/limits.py", "    DEBUG = TRUE\n", "  DEBUG = true\n"))
    Host(editor).push(asking)
    opened(editor, "edit", "Edit a file")
    editor.press("gd")
    editor.shows("q back")


def test_the_diff_of_a_file_shows_all_that_differs(nvim: Editors, version: str) -> None:
    """Whatever the user's 'diffopt' hides elsewhere; and it says what else is asked."""
    editor = nvim(version, CALM, columns=90, lines=30)
    file = editor.home.project / "limits.py"
    file.write_text("import os\n    DEBUG = TRUE\n")
    asking = asks("edit", tool="Edit")
    play(editor, diffs(asking, str(file)))
    Host(editor).push(asking)
    own = "call writefile(systemlist('diff -iw ' .. v:fname_in .. ' ' .. v:fname_new), v:fname_out)"
    editor.lua("vim.cmd(...)", f"function! Own()\n{own}\nendfunction")
    editor.command("set diffopt+=iwhiteall,icase diffexpr=Own()")
    theirs = editor.nvim.eval("[&diffopt, &diffexpr]")
    opened(editor, "edit", "Edit a file")
    editor.press("gd")
    editor.shows("import os")
    editor.shows("This is only the first of 2 diffs; q shows all that is asked.")
    picture = editor.shows("hidden in it: a line break added")
    assert "Everywhere in the file" in picture.text
    eventually(lambda: editor.lua("return vim.fn.diff_hlID(2, 1)") > 0, "a difference")
    editor.command("tabnext")
    assert editor.nvim.eval("[&diffopt, &diffexpr]") == theirs
    editor.command("tabnext")
    eventually(lambda: editor.lua("return vim.fn.diff_hlID(2, 1)") > 0, "a difference")
    editor.press("q")
    editor.shows("edit: Edit a file")
    assert editor.nvim.eval("[&diffopt, &diffexpr]") == theirs


def test_a_float_of_another_plugin_does_not_keep_it_open(nvim: Editors, version: str) -> None:
    """Neovim 0.10 crashes if the last window but a float is closed in another tab page."""
    editor = nvim(version, CALM, columns=90, lines=30)
    file = editor.home.file("limits.py", "    DEBUG = TRUE\n")
    asking = asks("edit", tool="Edit")
    play(editor, diffs(asking, str(file)))
    Host(editor).push(asking)
    opened(editor, "edit", "Edit a file")
    editor.press("gd")
    editor.shows("This is only the first of 2 diffs")
    editor.lua(FLOAT)
    editor.press("q")
    editor.shows("edit: Edit a file")
    assert editor.lua("return #vim.api.nvim_list_tabpages()") == 1


def test_a_change_on_another_machine_is_not_compared_with_a_file_here(nvim: Editors) -> None:
    """It would show what is not there."""
    editor = nvim(config=CALM, columns=90, lines=30)
    file = editor.home.project / "limits.py"
    file.write_text("import os\n    DEBUG = TRUE\n")
    asking = asks("edit", tool="Edit", machine="dev")
    play(editor, edit(asking, str(file), "    DEBUG = TRUE\n", "  DEBUG = true\n"))
    Host(editor).push(asking)
    opened(editor, "edit", "Edit a file")
    editor.press("gd")
    editor.shows("q back")
    assert "import os" not in editor.screen.text


def test_a_diff_whose_tab_page_is_the_only_one_can_be_closed(nvim: Editors, version: str) -> None:
    """:tabonly closes the view, and the diff goes with it."""
    editor = nvim(version, CALM, columns=90, lines=30)
    show_diff(editor)
    editor.command("tabonly")
    editor.hides("q back")
    assert editor.lua("return { #vim.api.nvim_list_wins(), vim.wo.diff }") == [1, False]
    assert editor.messages().strip() == ""


def test_a_diff_whose_view_was_closed_without_a_word_can_be_closed(nvim: Editors) -> None:
    """Plugins close floats from autocommands, and then Neovim reports no more."""
    editor = nvim(config=CALM, columns=90, lines=30)
    show_diff(editor)
    editor.command(f"noautocmd lua {CLOSE_FLOATS}")
    editor.press("1")
    editor.press("q")
    editor.hides("q back")
    assert editor.messages().strip() == ""


def test_a_diff_can_be_opened_again_from_itself(nvim: Editors) -> None:
    """The one before is closed, and the new one stays."""
    editor = nvim(config=CALM, columns=90, lines=30)
    file = editor.home.project / "limits.py"
    file.write_text("import os\n    DEBUG = TRUE\n")
    asking = asks("edit", tool="Edit")
    play(editor, edit(asking, str(file), "    DEBUG = TRUE\n", "  DEBUG = true\n"))
    Host(editor).push(asking)
    opened(editor, "edit", "Edit a file")
    for _ in range(2):
        editor.press("gd")
        editor.shows("import os")
        editor.shows("q back")
    editor.lua("vim.wait(50)")
    assert editor.lua("return #vim.api.nvim_list_tabpages()") == 2
    editor.press("q")
    editor.shows("edit: Edit a file")


@pytest.mark.parametrize("before", ["q:", ":let g:typed = 1"])
def test_a_request_that_arrives_in_a_command_line_waits(nvim: Editors, before: str) -> None:
    """No window can be opened there, and the rest of the command would go to it."""
    editor = nvim(config=CALM, columns=90, lines=30)
    asking = asks("edit", tool="Edit")
    play(editor, edit(asking, "/srv/a.py", "a\n", "b\n"))
    Host(editor).push(asking)
    editor.lua("""
      local host = require('bellboard.process.talk')
      local ask = host.ask
      host.ask = function(what, given, done)
        _G.reply = function() ask(what, given, done) end
      end
    """)
    editor.command("ClaudeSessions answer edit")
    editor.press(before)
    eventually(lambda: editor.nvim.eval("getcmdwintype() != '' || mode() == 'c'"), "it")
    editor.lua("_G.reply()")
    editor.lua("vim.wait(50)")
    editor.press(":quit<CR>" if before == "q:" else "<CR>")
    editor.shows("edit: Edit a file")
    assert editor.messages().strip() == ""


@pytest.mark.parametrize("copied", ["<C-w>T", "<C-w>j<C-w>T"])
def test_no_copy_of_a_diff_outlives_it(nvim: Editors, version: str, copied: str) -> None:
    """Neither of its two sides nor of what is below them; the request is shown again."""
    editor = nvim(version, CALM, columns=130, lines=30)
    show_diff(editor)
    editor.press(copied)
    editor.shows("edit: Edit a file")
    eventually(lambda: editor.nvim.eval("tabpagenr('$')") == 1, "closed")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 3
    assert editor.messages().strip() == ""
