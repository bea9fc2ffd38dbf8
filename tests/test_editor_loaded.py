"""The plugin is loaded again while something of it is open."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asked import asks, edit, play
from rig.editor import Editor
from rig.fixtures import Editors
from rig.waiting import eventually
from sample import QUIET, RELOAD, Host, blocked, session

pytestmark = pytest.mark.editor

CALM = {**QUIET, "float": {"enabled": False}, "answer": {"ready": 0}}
WINDOWS = "return #vim.api.nvim_list_wins()"
PRESSES = """
return #vim.tbl_filter(function(map)
  return map.lhs:find('RightMouse') ~= nil
end, vim.api.nvim_get_keymap('n'))"""


def test_a_float_ends_with_the_modules_that_opened_it(nvim: Editors, version: str) -> None:
    """There is one, and none once nothing is blocked; the mouse is the user's again."""
    editor = nvim(version, QUIET)
    Host(editor).push(blocked())
    editor.shows("1 needs you")
    editor.lua(RELOAD)
    editor.hides("1 needs you")
    host = Host(editor)
    host.push(blocked())
    editor.shows("1 needs you")
    assert editor.lua(WINDOWS) == 2
    host.push(session("working"))
    editor.hides("1 needs you")
    assert [editor.lua(WINDOWS), editor.lua(PRESSES)] == [1, 0]
    assert editor.messages().strip() == ""


def board(editor: Editor) -> None:
    editor.command("ClaudeSessions board")
    editor.shows("g? help")


def lone_board(editor: Editor) -> None:
    board(editor)
    editor.command("only")


def request(editor: Editor) -> None:
    editor.command("ClaudeSessions answer api")
    editor.shows("A   Yes, this once")


def diff(editor: Editor) -> None:
    request(editor)
    editor.press("gd")
    eventually(lambda: editor.lua("return vim.fn.tabpagenr('$')") == 2, "the diff")


def picker(editor: Editor) -> None:
    editor.command("ClaudeSessions pick")
    editor.shows("Agent sessions")
    eventually(lambda: editor.nvim.api.get_mode()["mode"] == "i", "Insert mode")


@pytest.mark.parametrize("opens", [board, lone_board, request, diff, picker])
def test_a_view_closes_if_its_keys_are_loaded_again(
    nvim: Editors, version: str, opens: Callable[[Editor], None]
) -> None:
    """They would act on sessions as they were then. The view can be opened again."""
    editor = nvim(version, CALM, columns=90, lines=30)
    api = asks("api")
    file = editor.home.file("limits.py", "    return 5\n")
    for _ in range(2):
        host = Host(editor)
        play(editor, edit(api, str(file), "    return 5\n", "    return 10\n"))
        host.push(api)
        opens(editor)
        editor.lua(RELOAD)
        Host(editor)
        eventually(lambda: editor.lua(WINDOWS) == 1, "its end")
        assert editor.lua("return { vim.bo.buftype, vim.wo.winfixbuf }") == ["", False]
        eventually(lambda: editor.nvim.api.get_mode()["mode"] == "n", "Normal mode")
    assert editor.messages().strip() == ""
