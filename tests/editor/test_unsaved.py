"""An agent changes a file while a buffer has unsaved changes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.system.processes import is_alive
from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import asks, edit, opened, play
from rig.host.sample import QUIET, Host, session
from rig.waiting import eventually

BEFORE, THEIRS = "one\ntwo\nthree\nfour\n", "one\ntheirs\nthree\nfour\n"
MINE = ["one", "two", "three", "mine"]
#: The text of each window of the tab page, and whether it is a file's.
SIDES = """
return vim.tbl_map(function(win)
  local buf = vim.api.nvim_win_get_buf(win)
  return { vim.bo[buf].buftype == '', vim.api.nvim_buf_get_lines(buf, 0, -1, false) }
end, vim.tbl_filter(function(win) return vim.wo[win].diff end, vim.api.nvim_tabpage_list_wins(0)))
"""


def begin(editor: Editor, change: bool = True) -> tuple[Host, Path]:
    """Open a file, with an unsaved change, and push a session that does nothing."""
    file = editor.home.file("src/a.py", BEFORE)
    editor.command("edit! src/a.py")
    editor.command("call setline(4, 'mine')" if change else "echo")
    host = Host(editor)
    host.push(working())
    return host, file


def working(**more: Any) -> dict[str, Any]:
    return session("working", "api", project="api", **more)


WRITES, WROTE = (f"api {word} src/a.py, which you have changed" for word in ("writes", "wrote"))


def test_the_float_says_so_until_it_is_no_longer_so(nvim: Editors, version: str) -> None:
    """At once, before the agent writes and after; `:write!` or `:edit!` ends it, a denial too."""
    editor = nvim(version, {**QUIET, "float": {"seconds": 0.3}}, columns=60)
    host, file = begin(editor)
    host.push(working(writes=[str(file)]))
    editor.shows(WRITES)
    host.push(working())
    editor.hides(WRITES)
    host.push(working(writes=[str(file)]))
    editor.shows(WRITES)
    file.write_text(THEIRS)
    host.push(working(edited={str(file): time.time()}))
    editor.shows(WROTE)
    assert editor.lua("return require('bellboard.float').status()") == "shown (1 change)"
    editor.hides("unsaved changes")  # it becomes a line
    editor.shows(WROTE)
    editor.command("write!")
    editor.hides(WROTE)
    editor.command("call setline(1, 'later')")
    host.push(working(edited={str(file): time.time() - 60}))
    assert editor.lua("return require('bellboard.unsaved').list()") == []
    assert "bellboard" not in editor.messages()


def test_it_is_said_as_soon_as_a_file_is_changed_that_an_agent_asks_to_write(nvim: Editors) -> None:
    """By whatever name, and of no other file."""
    editor = nvim(config=QUIET, columns=90)
    host, file = begin(editor, change=False)
    link = editor.home.project / "link"
    link.symlink_to(file.parent)
    host.push(working(writes=[str(file)]))
    editor.command("edit other | call setline(1, 'x') | edit link/a.py")
    assert editor.lua("return require('bellboard.unsaved').list()") == []
    editor.press("Amine<Esc>")
    editor.shows(WRITES)
    editor.press("u")
    editor.hides("which you have changed")


@pytest.fixture
def editor(nvim: Editors, version: str) -> Iterator[Editor]:
    return nvim(version, {**QUIET, "answer": {"key_delay": 0}}, columns=130, lines=30)


def test_unsaved_changes_are_compared_with_what_was_written(editor: Editor) -> None:
    """In their own buffer, so that they can be merged, without a question of Neovim's."""
    host, file = begin(editor)
    file.write_text(THEIRS)
    host.push(working(edited={str(file): time.time()}))
    editor.shows(WROTE)
    editor.command("edit other")
    editor.press(":ClaudeSessions diff<CR>")
    eventually(lambda: editor.lua(SIDES), "a diff")
    assert editor.lua(SIDES) == [[True, MINE], [False, THEIRS.split()]]
    editor.hides(WROTE)  # it would cover the diff
    editor.command("windo diffupdate | wincmd t | 2 | diffget | write!")
    assert file.read_text() == "one\ntheirs\nthree\nmine\n"
    assert "W12" not in editor.messages()


def test_unsaved_changes_are_compared_with_what_a_request_would_write(editor: Editor) -> None:
    """The request says in one line that they are there."""
    host, file = begin(editor)
    asking = asks("api", tool="Edit", writes=[str(file)])
    play(editor, edit(asking, str(file), "two\n", "theirs\n"))
    host.push(asking)
    editor.shows(WRITES)
    opened(editor, "api", "Edit a file")
    assert editor.screen.text.count(WRITES) == 2
    for command in ("normal gd", "ClaudeSessions diff"):
        editor.press("gd") if command == "normal gd" else editor.command(command)
        eventually(lambda: editor.lua(SIDES), "a diff")
        assert editor.lua(SIDES) == [[True, MINE], [False, THEIRS.split()]]
        editor.command("tabclose")


def test_without_such_a_file_the_command_says_so(nvim: Editors) -> None:
    editor = nvim(config=QUIET)
    begin(editor)
    editor.command("ClaudeSessions diff")
    eventually(lambda: "no agent changes a file with unsaved changes" in editor.messages())


def test_files_with_unsaved_changes_are_listed_for_hooks_if_that_is_wanted(nvim: Editors) -> None:
    """By all their names, until they are saved or the option is off; by default, nowhere."""
    plain, editor = nvim(config={}), nvim(config={"ask_unsaved": True})
    file = editor.home.file("a b.py", BEFORE)
    link = editor.home.project / "link.py"
    link.symlink_to(file)

    def listed() -> list[str]:
        """Return what the lists say; as hooks do, leave out that of a host which has ended."""
        lists = sorted((editor.home.bellboard / "hosts").glob("[1-9]*.unsaved"))
        lists = [path for path in lists if is_alive(int(path.stem))]
        return [line for path in lists for line in path.read_text().splitlines()]

    for each in (plain, editor):
        eventually(
            lambda each=each: each.lua("return require('bellboard.process.talk').status().heard")
        )
        each.command("edit link.py | call setline(1, 'mine')")
    names = sorted(f'"{path}"' for path in (file, link))
    eventually(lambda: listed() == names, "both names")
    editor.lua("require('bellboard').setup({ ask_unsaved = false })")
    eventually(lambda: listed() == [], "none")
    editor.lua("require('bellboard').setup({ ask_unsaved = true })")
    eventually(lambda: listed() == names, "both names")
    editor.command("write")
    eventually(lambda: listed() == [], "none")
    editor.command("call setline(1, 'more')")
    eventually(listed, "a file")
    editor.press(":qall!<CR>")
    eventually(lambda: listed() == [], "none")
