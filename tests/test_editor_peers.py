"""Other plugins, the real ones: lualine finds the component by its name."""

from __future__ import annotations

import pytest

from rig.fixtures import Editors
from sample import QUIET, Host, blocked, session

pytestmark = pytest.mark.editor


def test_lualine_shows_the_component(nvim: Editors) -> None:
    """{ 'bellboard' } in a section; our news redraw it at once."""
    editor = nvim(config=QUIET, peers=["neovim-lualine"], columns=100)
    host = Host(editor)
    editor.lua(
        "require('lualine').setup({ options = { icons_enabled = false, refresh = "
        "{ statusline = 100000 } }, sections = { lualine_x = { 'bellboard' } } })"
    )
    host.push(blocked(), session("working"))
    picture = editor.shows("!1 api: rm -rf build 2m  *1")
    assert picture.groups_of("!1") == ["DiagnosticError"]
    host.push(session("completed"))
    editor.shows("+1")
