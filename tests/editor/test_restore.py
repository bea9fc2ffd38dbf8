"""`:ClaudeSessions restore`: the list, its keys, and where sessions are opened."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.ruins import Ruins
from rig.waiting import eventually

OPTIONS: Final[dict[str, Any]] = {"python": sys.executable, "answer": {"key_delay": 0}}


@pytest.fixture
def ruins(home: Home) -> Iterator[Ruins]:
    made = Ruins(home)
    yield made
    made.server.close()


def says(editor: Editor, text: str) -> None:
    def look() -> bool:
        assert text in (said := editor.messages()), said
        return True

    eventually(look)


def test_what_was_in_tmux_comes_into_tmux_and_the_rest_here(
    nvim: Editors, version: str, ruins: Ruins
) -> None:
    """The list says where, and why one cannot be; each gets a tab page of its own."""
    ruins.session("one", "work", 1, "edit")
    ruins.session("two")
    ruins.session("three")
    ruins.session("four", "work", 2, "", transcript_path="/no such file")
    editor = nvim(version, OPTIONS, columns=80)
    editor.command("ClaudeSessions restore")
    rows = editor.shows("4 sessions went down").text.splitlines()
    shown = [row.partition("│")[2].strip("│ ") for row in rows]
    assert [
        "1m  project  here            do two",
        "1m  project  here            do three",
        "1m  project  tmux work:edit  do one",
        "1m  project  tmux work:2     do four",
        "not restored: its transcript is gone: /no such file",
    ] == [row for row in shown if row.startswith(("1m", "not"))]
    editor.shows("y restore all 3 · n not now · x offer no more")
    assert not ruins.told()
    editor.press("y")
    says(editor, "restored: 2 here, 1 in tmux")
    folder = ruins.home.project
    wanted = sorted(f"{folder}: --resume {sid}" for sid in ("one", "two", "three"))
    eventually(lambda: sorted(row.partition(" --settings")[0] for row in ruins.told()) == wanted)
    assert ["work:0.0 edit"] == ruins.windows()
    names = "vim.tbl_map(vim.api.nvim_buf_get_name, vim.fn.tabpagebuflist(...))"
    assert [True, True] == [":" in editor.lua(f"return {names}", n)[0] for n in (2, 3)]
    assert ["four"] == ruins.ids()


def test_a_long_name_leaves_room_for_what_was_done(nvim: Editors, ruins: Ruins) -> None:
    cwd = ruins.home.project / "a-very-long-name-of-a-repository-of-many-parts"
    cwd.mkdir()
    ruins.session("one", "a-session-with-a-long-name", 1, "and-a-window", cwd=str(cwd))
    editor = nvim(config=OPTIONS, columns=60)
    editor.command("ClaudeSessions restore")
    editor.shows("a-very-long-…  tmux a-session-w…  do one")


def test_not_now_leaves_them_and_no_more_dismisses_them(
    nvim: Editors, version: str, ruins: Ruins
) -> None:
    """Without anything to restore, it says so."""
    ruins.session("one")
    editor = nvim(version, OPTIONS, columns=80)
    editor.command("ClaudeSessions restore")
    editor.shows("y restore it · n not now")
    editor.press("n")
    editor.hides("not now")
    assert ["one"] == ruins.ids()
    editor.command("ClaudeSessions restore")
    editor.shows("offer no more")
    editor.press("x")
    says(editor, "1 session no longer offered")
    editor.command("ClaudeSessions restore one")
    says(editor, "one: did not go down, or was restored since")
    editor.command("ClaudeSessions restore")
    says(editor, "nothing to restore")
    assert not ruins.told()
