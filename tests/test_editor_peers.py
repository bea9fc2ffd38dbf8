"""Other plugins, the real ones: lualine finds the component by its name."""

from __future__ import annotations

from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from sample import QUIET, Host, blocked, session

pytestmark = pytest.mark.editor


def test_lualine_shows_the_component(nvim: Editors) -> None:
    """{ 'bellboard' } in a section; our news redraw it at once."""
    editor = nvim(config=QUIET, peers=["neovim-lualine"], lua="vim.o.tgc = true", columns=100)
    host = Host(editor)
    editor.lua(
        "require('lualine').setup({ options = { icons_enabled = false, refresh = "
        "{ statusline = 100000 } }, sections = { lualine_x = { 'bellboard' } } })"
    )
    host.push(blocked(), session("working"))
    picture = editor.shows("!1 api: rm -rf build 2m  *1")
    assert picture.groups_of("!1") == ["lualine_x_bellboard_BellboardBlocked_normal"]
    assert picture.groups_of("api: rm -rf build 2m") == ["lualine_c_normal"]
    ours = "lualine_x_bellboard_BellboardBlocked_normal"
    assert colour(editor, ours, "fg") == colour(editor, "BellboardBlocked", "fg")
    assert colour(editor, ours, "bg") == colour(editor, "lualine_c_normal", "bg")
    host.push(session("completed"))
    editor.shows("+1")


def colour(editor: Editor, group: str, part: str) -> Any:
    """A group's colour, links followed."""
    return editor.lua("return vim.api.nvim_get_hl(0, { name = ..., link = false })", group).get(
        part
    )
