"""The rig's screen: what each Neovim shows, compared with a file."""

from __future__ import annotations

import pytest

from rig.fixtures import Editors, Screens
from rig.screen import Picture

pytestmark = pytest.mark.screen

FLOAT = """
vim.o.laststatus, vim.o.ruler, vim.o.statusline = 2, false, ' a statusline %#WarningMsg# warned '
vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'hello 世界', 'second line' })
vim.fn.matchadd('ErrorMsg', '世')
local buf = vim.api.nvim_create_buf(false, true)
vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'afloat' })
vim.api.nvim_open_win(buf, false, {
  relative = 'editor', row = 1, col = 20, width = 10, height = 2,
  style = 'minimal', border = 'rounded',
})
"""


def test_a_screen_opens_in_every_neovim(nvim: Editors, screen: Screens, version: str) -> None:
    """Text, wide characters, a float and the statusline are where they are drawn, in color."""
    editor = nvim(version, columns=40, lines=8)
    editor.lua(FLOAT)
    picture = editor.shows("afloat")
    assert picture.groups_of("afloat") == ["NormalFloat"]
    assert picture.groups_of("世") == ["ErrorMsg"]
    assert picture.groups_of("warned") == ["WarningMsg"]
    screen.matches(editor, "rig")


def test_scrolling_keeps_the_screen_true(nvim: Editors, screen: Screens) -> None:
    """The grid follows the editor's own scroll events, up and down."""
    editor = nvim(columns=20, lines=8)
    editor.lua(
        "for n = 1, 99 do vim.api.nvim_buf_set_lines(0, n - 1, -1, false, { tostring(n) }) end"
    )
    editor.press("20<C-e>5<C-y>")
    editor.shows("16\n17\n18\n19\n20\n21")


def test_a_screen_can_be_read_while_the_editor_waits_for_a_key(
    nvim: Editors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt that blocks every request is still visible."""
    editor = nvim(columns=40, lines=8)
    editor.nvim.command('echo "one\\ntwo\\nthree"', async_=True)
    editor.shows("Press ENTER")
    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="waits for a key"):
        patch.setattr("rig.editor.PROMPT", 0.5)
        editor.command("quit")
    editor.press("<CR>")
    assert editor.lua("return vim.fn.mode()") == "n"


def test_a_difference_fails_and_says_what_is_shown(nvim: Editors, tmp_path: object) -> None:
    """A check counts only after it was seen failing."""
    editor = nvim(columns=40, lines=8)
    with pytest.raises(AssertionError, match=r"rig\.txt differs"):
        Screens(rewrite=False).matches(editor, "rig", within=0.1)


def test_groups_are_found_behind_wide_characters() -> None:
    """Columns count cells, text counts characters."""
    picture = Picture((("世", "", "a"),), (("X", "X", "Y"),))
    assert picture.groups_of("a") == ["Y"]
    assert picture.groups_of("世a") == ["X", "Y"]
    assert str(picture) == "+---+\n|世a|\n+---+\n|aab|\n+---+\na X\nb Y\n"
