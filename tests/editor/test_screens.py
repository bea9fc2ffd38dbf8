"""The screens of each Neovim, cell by cell, against tests/data/screens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from rig.fixtures import Editors, Screens
from rig.host.sample import QUIET, Host, activity, blocked, clone, house, session

pytestmark = pytest.mark.screen

CALM = {**QUIET, "float": {"enabled": False}}
TEXT = "vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'int main(void)', '{', '}' })"
THREE = [
    blocked(branch="main", detail="rm -rf build && make all"),
    blocked("web", "npm publish", branch="fix/login", ago=70),
    blocked(
        "a-long-name-of-a-project", "x" * 200, branch="a-branch-with-a-long-name-too", ago=7300
    ),
]
ASKED = {"status": "blocked", "kind": "permission", "tool": "Bash", "detail": "make all"}
CLONE = [{**each, **(ASKED if nth < 2 else {})} for nth, each in enumerate(clone())]


@pytest.mark.parametrize(
    ("name", "sessions", "columns", "lines"),
    [
        ("float-one", THREE[:1], 80, 12),
        ("float-three", THREE, 80, 14),
        ("float-narrow", THREE, 40, 14),
        ("float-tiny", THREE, 24, 6),
        ("float-clone", CLONE, 60, 12),
        ("float-many", [blocked(f"p{n}") for n in range(9)], 60, 16),
    ],
)
def test_the_float_lists_what_is_blocked(
    nvim: Editors,
    screen: Screens,
    version: str,
    name: str,
    sessions: list[dict[str, Any]],
    columns: int,
    lines: int,
) -> None:
    """Top right, as wide as needed, and not shown where there is no room.

    Sessions of one clone are told apart by their titles.
    """
    editor = nvim(version, QUIET, columns=columns, lines=lines)
    editor.lua(TEXT)
    Host(editor).push(*sessions)
    screen.matches(editor, name)


def test_the_float_makes_room_for_the_cursor_and_follows_the_size(
    nvim: Editors, screen: Screens, version: str
) -> None:
    """The float leaves the cursor free, follows the screen, and closes without blocked ones."""
    editor = nvim(version, QUIET, columns=60, lines=16)
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { ('x'):rep(58) })")
    host = Host(editor)
    host.push(*THREE[:1])
    editor.press("$")
    screen.matches(editor, "float-cursor")
    editor.command("set lines=12 columns=50")
    editor.shows("1 needs you")
    host.push(session("working"))
    screen.matches(editor, "float-gone")


class Board(NamedTuple):
    """A board that fills a screen, after these keys."""

    sessions: Callable[[], list[dict[str, Any]]]
    columns: int
    lines: int
    keys: str = ""


#: A new case of the board is a row here, and a file that `pytest --update-screens` writes.
BOARDS = {
    "board-60": Board(house, 60, 24),
    "board-60-unfolded": Board(house, 60, 24, "<Tab>"),
    "board-110": Board(house, 110, 24),
    "board-110-unfolded": Board(house, 110, 24, "<Tab>"),
    "board-40": Board(house, 40, 10),
    "board-40-folded": Board(house, 40, 10, "zM"),
    "board-80-folded": Board(house, 80, 16, "zM"),
    "board-activity-60": Board(activity, 60, 16),
    "board-activity-100": Board(activity, 100, 16),
    "board-clone-60": Board(clone, 60, 16),
    "board-clone-80": Board(clone, 80, 16),
    "board-clone-100": Board(clone, 100, 16),
}


@pytest.mark.parametrize("name", BOARDS)
def test_a_board(nvim: Editors, screen: Screens, version: str, name: str) -> None:
    """By repository, folded and unfolded; quiet sessions; several in one clone; at any width."""
    board = BOARDS[name]
    editor = nvim(version, CALM, columns=board.columns, lines=board.lines)
    Host(editor).push(*board.sessions())
    editor.command("execute 'ClaudeSessions board' | only")
    editor.press(board.keys)
    screen.matches(editor, name)


COLUMNS = "vim.o.statuscolumn, vim.o.colorcolumn, vim.o.cursorcolumn = '%s%=%l │ ', '20', true"
WIDEST = """
local widest = 0
for _, text in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
  widest = math.max(widest, vim.api.nvim_strwidth(text))
end
return widest
"""


def test_the_board_has_no_column_of_the_users_text(
    nvim: Editors, screen: Screens, version: str
) -> None:
    """Rows fit, also beside a column that the user sets for the board alone."""
    config = {**QUIET, "float": {"enabled": False}}
    editor = nvim(version, config, columns=60, lines=24, lua=COLUMNS)
    host = Host(editor)
    host.push(*house())
    editor.command("execute 'ClaudeSessions board' | only")
    screen.matches(editor, "board-60")
    assert editor.lua("return { vim.wo.colorcolumn, vim.wo.cursorcolumn }") == ["", False]
    assert 50 < editor.lua(WIDEST) <= 60
    editor.command("setlocal statuscolumn=12345678")
    editor.shows("12345678")
    host.push(*house())
    assert editor.lua(WIDEST) <= 52


def test_the_board_is_updated_in_place(nvim: Editors) -> None:
    """The cursor stays with its session; only changed lines are written."""
    editor = nvim(config=QUIET, columns=100)
    host = Host(editor)
    ranks = ["acme/api", "acme/web", "acme/infra", "dotfiles"]
    host.push(*house(), groups=ranks)
    editor.command("ClaudeSessions board")
    editor.lua("vim.fn.search('login redirect')")
    editor.lua("""
      _G.writes = {}
      vim.api.nvim_buf_attach(0, false, { on_lines = function(_, buf, _, first, _, last)
        vim.list_extend(writes, vim.api.nvim_buf_get_lines(buf, first, last, false))
      end })""")
    host.push(*house(), groups=ranks)
    assert editor.lua("return writes") == []
    first, *rest = house()
    host.push({**first, "detail": "make all", "agents": [], "background": []}, *rest, groups=ranks)
    assert "login redirect" in editor.lua("return vim.fn.getline('.')")
    written = " ".join(editor.lua("return writes"))
    assert "add rate limits" in written
    assert "login redirect" not in written
    assert "tidy css" not in written


def test_a_place_that_fits_is_shown_in_full(nvim: Editors) -> None:
    """In 80 columns, of which a row leaves many blank."""
    editor = nvim(config=QUIET, columns=80, lines=16)
    Host(editor).push(
        session("working", "a", project="web", pane="%1234567", tmux="/tmp/tmux-0/default")
    )
    editor.command("ClaudeSessions board")
    editor.shows("tmux %1234567")


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


def test_a_preview_without_a_session_says_what_to_do(nvim: Editors, version: str) -> None:
    """On the first row of the board, which names none."""
    editor = nvim(version, QUIET, columns=80, lines=24)
    Host(editor).push(*house())
    editor.command("ClaudeSessions board")
    editor.press("ggP")
    editor.shows("Put the cursor on a session.")
    editor.press("3j")
    editor.hides("Put the cursor on a session.")


def test_the_first_run_says_what_to_do(nvim: Editors, screen: Screens, version: str) -> None:
    """Without sessions, the picker and the board show the next step."""
    editor = nvim(version, {**QUIET, "claude": "sh"}, columns=80, lines=16)
    host = Host(editor)
    host.push()
    editor.command("ClaudeSessions")
    screen.matches(editor, "first-run")
    editor.lua("require('bellboard').setup({ claude = 'no-such-cli' })")
    host.push()
    editor.shows("There is no no-such-cli on PATH.")
    editor.shows("1  Start an agent, or:       :ClaudeSessions new --agent NAME")


def test_a_stale_board_says_so(nvim: Editors, screen: Screens, version: str) -> None:
    """While outdated, the content is grey and the board says why."""
    editor = nvim(version, QUIET, columns=80, lines=16)
    host = Host(editor)
    host.push(*house())
    editor.lua("vim.g.bellboard = { python = '/no/such/python', float = { enabled = false } }")
    editor.lua("require('bellboard').setup({}) vim.notify = function() end")
    host.stops()
    editor.command("ClaudeSessions board")
    editor.shows("outdated")
    screen.matches(editor, "stale")
