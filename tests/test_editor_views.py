"""One session and many in wide, narrow and tiny windows, cell by cell."""

from __future__ import annotations

import pytest

from rig.fixtures import Editors, Screens
from sample import QUIET, Host, house

pytestmark = pytest.mark.screen

CALM = {**QUIET, "float": {"enabled": False}}


def test_a_preview_over_the_board(nvim: Editors, screen: Screens, version: str) -> None:
    """The preview has the known facts about a session whose terminal cannot be reached."""
    editor = nvim(version, CALM, columns=80, lines=24)
    Host(editor, serves=True).push(*house())
    editor.command("ClaudeSessions board")
    editor.press("]]K")
    editor.shows("neither in tmux nor")
    screen.matches(editor, "preview")


def test_the_help_of_the_board(nvim: Editors, screen: Screens, version: str) -> None:
    """All keys, in a float that has room for them."""
    editor = nvim(version, CALM, columns=60, lines=34)
    Host(editor).push(*house())
    editor.command("ClaudeSessions board")
    editor.press("g?")
    screen.matches(editor, "board-help")


@pytest.mark.parametrize(("columns", "lines"), [(80, 16), (40, 10)], ids=["wide", "tiny"])
def test_a_folded_board(
    nvim: Editors, screen: Screens, version: str, columns: int, lines: int
) -> None:
    """A line for each repository, with a summary."""
    editor = nvim(version, CALM, columns=columns, lines=lines)
    Host(editor).push(*house())
    editor.command("execute 'ClaudeSessions board' | only")
    editor.press("zM")
    screen.matches(editor, f"board-{columns}-folded")


def test_a_board_in_a_tiny_window(nvim: Editors, screen: Screens, version: str) -> None:
    """Columns are dropped before words."""
    editor = nvim(version, CALM, columns=40, lines=10)
    Host(editor).push(*house())
    editor.command("execute 'ClaudeSessions board' | only")
    screen.matches(editor, "board-40")
