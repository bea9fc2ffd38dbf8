"""One session and many in wide, narrow and tiny windows, cell by cell."""

from __future__ import annotations

import pytest

from rig.fixtures import Editors, Screens
from sample import QUIET, Host, blocked, house, session

pytestmark = pytest.mark.screen

#: What a terminal shows: a colour, a link, and sequences that have no place in a preview.
HOSTILE = (
    "a \x1b[1;38;5;208mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"
    " \x1b[2J\x1b(Band\x1b]52;c;QQ==\x07 \x1b[48;5;999mend\x1b[m"
)
CALM = {**QUIET, "float": {"enabled": False}}
ONE_EACH = {
    "blocked": blocked(detail="rm -rf build && make all"),
    "question": blocked("web", "Which database?", kind="question", tool=None),
    "error": session("error", project="infra", detail="overloaded"),
    "completed": session("completed", project="web", last_message="Removed 214 unused rules"),
    "unknown": session("unknown", project="api"),
    "working": session("working", project="api", tool="Edit", detail="src/cache.py"),
    "background": session("background", project="docs", background=[{"id": "s", "type": "shell"}]),
    "idle": session("idle", project="dotfiles"),
}


@pytest.mark.parametrize("status", ONE_EACH)
def test_the_statusline_of_every_status(
    nvim: Editors, screen: Screens, version: str, status: str
) -> None:
    """Its icon in its color; for a blocked one also who, what and since when."""
    editor = nvim(version, CALM, columns=50, lines=3)
    Host(editor).push(ONE_EACH[status])
    screen.matches(editor, f"status-{status}")


def test_a_preview_over_the_board(nvim: Editors, screen: Screens, version: str) -> None:
    """What is known of a session whose terminal cannot be reached."""
    editor = nvim(version, CALM, columns=80, lines=24)
    Host(editor).push(*house())
    editor.command("ClaudeSessions board")
    editor.press("]]K")
    screen.matches(editor, "preview")
    assert editor.lua("return { require('bellboard.sgr').parse(...) }", [HOSTILE]) == [
        ["a red link and end"],
        [{"row": 0, "from": 2, "to": 5, "group": "BellboardSgr1"}],
    ]
    assert editor.lua("return vim.api.nvim_get_hl(0, { name = 'BellboardSgr1' })")["ctermfg"] == 208


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
