"""The real CLI edits a file of which a Neovim has unsaved changes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from live.answers.place import answers_on, look, place
from live.xterm import XServer, Xterm
from rig.agents.scenarios import call, say
from rig.editor import Editor
from rig.fetched import claude_code
from rig.waiting import eventually

pytestmark = [pytest.mark.live, pytest.mark.tmux, pytest.mark.timeout(300)]

CODE = 'LIMIT = 1\n\n\ndef main():\n    print("hello")\n'
EDIT = {"file_path": "$CWD/a.py", "old_string": "LIMIT = 1", "new_string": "LIMIT = 2"}
#: The text of each window in diff mode.
SIDES = """
return vim.iter(vim.api.nvim_tabpage_list_wins(0)):filter(function(win)
  return vim.wo[win].diff
end):map(function(win)
  return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)
end):totable()
"""
MINE = [*CODE.replace("hello", "mine").splitlines()]
THEIRS = [*CODE.replace("LIMIT = 1", "LIMIT = 2").splitlines()]


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
def test_a_real_edit_of_a_file_with_unsaved_changes(mode: str, columns: int) -> None:
    """Asked, it is said before; accepted, as soon as it was made. BELLBOARD_PICTURES: a folder."""
    with place(claude_code.VERSION) as made:
        made.api.scenarios["mine"] = (
            call("Read", file_path="$CWD/a.py"),
            call("Edit", **EDIT),
            say("Done."),
        )
        file = made.home.project / "api" / "a.py"
        file.parent.mkdir()
        file.write_text(CODE)
        config = {"float": {"seconds": 0}, "answer": {"key_delay": 0}}
        how = {**look(), "config": config, "columns": columns, "lines": 24}
        editor, desk = Editor("0.12", made.home, "nvim", **how), Desk(columns)
        try:
            answers_on(made)
            editor.command("edit api/a.py | 5s/hello/mine/ | nohlsearch")
            cli = made.start("api", args=("--permission-mode", mode))
            cli.submit("play:mine please")
            if mode == "default":
                editor.shows("1 needs you")  # it says that already before it asks
                editor.shows("api writes api/a.py, which you have changed")
                desk.picture(editor, f"asked-{columns}")
                editor.press(":ClaudeSessions answer<CR>")
                editor.shows("api: Edit a file")
                desk.picture(editor, f"request-{columns}")
                editor.press("gd")
                eventually(lambda: editor.lua(SIDES) == [MINE, THEIRS], "what it would write")
                desk.picture(editor, f"diff-{columns}")
                editor.command("tabclose")
                eventually(lambda: editor.lua("return require('bellboard.answer.keys').can()"))
                editor.press("A")
            editor.shows("api wrote api/a.py, which you have changed")
            desk.picture(editor, f"wrote-{mode}-{columns}")
            assert file.read_text().splitlines() == THEIRS
            editor.press(":ClaudeSessions diff<CR>")
            eventually(lambda: editor.lua(SIDES) == [MINE, THEIRS], "what it wrote")
            desk.picture(editor, f"compared-{mode}-{columns}")
            editor.command("wincmd t | 1 | diffget | write!")
            editor.command("tabclose")
            editor.hides("which you have changed")
            assert file.read_text() == CODE.replace("= 1", "= 2").replace("hello", "mine")
        finally:
            desk.close()
            editor.close()


@pytest.mark.parametrize("version", [claude_code.VERSION, *claude_code.OLD])
def test_it_asks_first_if_that_is_wanted(version: str) -> None:
    """Although edits are accepted, only of that file, and no longer once the changes are saved."""
    with place(version) as made:
        made.api.scenarios["mine"] = (
            call("Read", file_path="$CWD/a.py"),
            call("Write", file_path="$CWD/b.py", content="x\n"),
            call("Edit", **EDIT),
            say("Done."),
        )
        file = made.home.project / "api" / "a.py"
        file.parent.mkdir()
        file.write_text(CODE)
        how = {**look(), "config": {"float": {"seconds": 0}, "ask_unsaved": True}}
        editor = Editor("0.12", made.home, "nvim", **how)
        try:
            answers_on(made)
            editor.command("edit api/a.py | call setline(5, 'mine')")
            cli = made.start("api", args=("--permission-mode", "acceptEdits"))
            cli.submit("play:mine please")
            cli.shows(r"❯ 1\. Yes")
            editor.shows("api writes api/a.py, which you have changed")
            assert made.asked(cli)["title"] == "Edit a file"
            assert (file.read_text(), file.with_name("b.py").read_text()) == (CODE, "x\n")
            cli.answer("Escape")
            editor.command("write")
            cli.submit("play:mine please")
            cli.happens("Stop")
            assert "LIMIT = 2" in file.read_text()
        finally:
            editor.close()


class Desk:
    """Takes pictures, if they are wanted."""

    def __init__(self, columns: int) -> None:
        self.folder, self.columns = os.environ.get("BELLBOARD_PICTURES"), columns
        self.server = XServer() if self.folder else None
        self.terminal: Xterm | None = None

    def picture(self, editor: Editor, name: str) -> None:
        if self.server and self.folder:
            self.terminal = self.terminal or Xterm(
                self.server, editor, self.columns, 24, "xterm-256color", True
            )
            time.sleep(0.7)
            self.server.picture(Path(self.folder) / f"{name}.png", "-trim", "+repage")

    def close(self) -> None:
        if self.terminal:
            self.terminal.close()
        if self.server:
            self.server.close()
