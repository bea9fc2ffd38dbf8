"""Each picker as its users configure it, and what must work in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig.editor import Editor
from rig.fetched.cache import Missing
from rig.host.sample import HIDDEN_TERMINAL, Host, blocked, session
from rig.waiting import eventually

BESIDE = (("older", 999), ("newer", 10))  # sessions that come above and below, and when they asked
MAIN = "api +main"  # the row of a session, in a list or in a board


@dataclass(frozen=True)
class Picker:
    """A picker: `setup` is its configuration, `command` opens it."""

    setup: str = ""
    needs: list[str] = field(default_factory=list)
    command: str = "ClaudeSessions pick"
    preview: str | None = ""  # keys that show it; None: it has none
    keys: bool = True  # whether it has those of the board, and finds words that it does not show
    follows: bool = False  # whether its rows are those that there are now


PICKERS = {
    "built-in": Picker(preview=None),
    "snacks": Picker(
        "require('snacks').setup({ picker = { enabled = true } })", ["snacks.nvim"], follows=True
    ),
    "fzf-lua": Picker("require('fzf-lua').register_ui_select()", ["fzf-lua", "fzf"]),
    "mini": Picker(
        "require('mini.pick').setup() vim.ui.select = MiniPick.ui_select",
        ["mini.nvim"],
        preview="<Tab>",
        keys=False,
    ),
    "telescope": Picker(
        "", ["telescope.nvim", "plenary.nvim"], "Telescope bellboard", follows=True
    ),
}


def opened(name: str, editor: Editor, sessions: list[dict[str, Any]]) -> Host:
    """Open the picker with these sessions."""
    host = Host(editor)
    editor.lua(PICKERS[name].setup)
    host.push(*sessions)
    editor.lua(
        "vim.schedule(function() vim.cmd(...) end)".replace("...", repr(PICKERS[name].command))
    )
    return host


HEARD = """
local path = ...
require('bellboard.process.talk').tell = function(line)
  vim.fn.writefile({ vim.json.encode(line) }, path, 'a')
end
"""


def parked(editor: Editor, told: Path) -> str:
    """Park the selected session; return which that was."""
    told.write_text("")
    editor.press("<M-p>")
    return eventually(lambda: re.search(r'"session_id":"(\w+)"', told.read_text()))[1]


def checked(name: str, editor: Editor) -> Iterator[str]:
    """Try everything with a user's keys; yield what worked."""
    command = PICKERS[name].command.split()[0]
    if not editor.lua("return vim.fn.exists(':' .. ...) > 0", command):
        raise Missing(f"there is no :{command} in Neovim {editor.version}")
    told = editor.home.root / "told"
    told.touch()
    tty = editor.lua(HIDDEN_TERMINAL)
    lines = "return table.concat(vim.api.nvim_buf_get_lines(terminal, 0, -1, false))"
    eventually(lambda: "what it asks" in editor.lua(lines))
    editor.lua(HEARD, str(told))
    sessions = [
        blocked("api", "rm -rf build " + "and more " * 40, tty=tty, branch="main"),
        session("working", "web", project="web", title="login"),
    ]
    host = opened(name, editor, sessions)
    picture = editor.shows("* ")
    row = [line for line in picture.lines if re.search(MAIN, line)][-1]  # the float is above it
    assert "2m" in row and "terminal" in row, row
    yield "age and place"
    if (preview := PICKERS[name].preview) is not None:
        editor.press(preview)
        editor.shows("what it asks")
        editor.press(preview)
        yield "preview"
    if PICKERS[name].keys:
        editor.press("<M-p>")
        eventually(lambda: "park" in told.read_text())
        editor.press("<M-d>")
        eventually(lambda: "goto" in told.read_text())
        yield "park and seen"
    if PICKERS[name].follows:
        host.push(*(blocked(where, ago=ago) for where, ago in BESIDE), *sessions)
        for where, _ in BESIDE:
            editor.shows(where)
        eventually(lambda: parked(editor, told) == "api", "the row of api selected")
        host.push(*sessions)
        yield "its row while others come"
    if PICKERS[name].keys:
        editor.press("permission")  # the kind of its question, which no row shows
        editor.hides("thinking")
        eventually(lambda: re.search(MAIN, editor.screen.text), "the row of api")
        yield "search for words that are cut off"
    told.write_text("")
    editor.press("<CR>")
    eventually(lambda: editor.lua("return vim.fn.bufnr() == terminal"))
    assert '"session_id":"api"' in told.read_text()
    yield "jump"
    assert editor.messages() == "", editor.messages()
