"""Plugins that manage plugins, buffers and sessions: a refused `:qa` leaves no trace in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rig.editor import Editor
from rig.host.sample import HIDDEN_TERMINAL, Host, session
from rig.waiting import eventually


@dataclass(frozen=True)
class Beside:
    """`setup` is its configuration, `opens` a command; `saved` is where its session file is."""

    setup: str = ""
    needs: list[str] = field(default_factory=list)
    opens: str = ""
    shows: str = ""
    saved: str = ""


FOLDER = "vim.fn.stdpath('state') .. '/sessions/'"
LAZY = """
require('lazy').setup({ spec = {}, performance = { rtp = { reset = false } },
  rocks = { enabled = false }, install = { missing = false } })
"""
BESIDE = {
    "nothing": Beside(),
    "lazy": Beside(LAZY, ["lazy.nvim"], "Lazy", "lazy.nvim"),
    "bufferline": Beside(
        "vim.o.termguicolors = true require('bufferline').setup({ options = { "
        "show_buffer_icons = false, always_show_bufferline = true } })",
        ["bufferline.nvim"],
        shows="one.txt",
    ),
    "auto-session": Beside(
        f"require('auto-session').setup({{ root_dir = {FOLDER} }})",
        ["auto-session"],
        saved="**/sessions/*",
    ),
    "persistence": Beside(
        f"require('persistence').setup({{ dir = {FOLDER} }})",
        ["persistence.nvim"],
        saved="**/sessions/*",
    ),
}
#: Windows, buffers, where the user is and was, and what a session file would have.
SEEN = """
local file = vim.fn.tempname()
vim.cmd.mksession(file)
return {
  vim.fn.execute('ls!'):gsub('line %d+', ''),
  vim.api.nvim_list_wins(),
  vim.fn.win_getid(),
  vim.fn.win_getid(vim.fn.winnr('#')),
  vim.fn.bufnr('#'),
  #vim.fn.getjumplist()[1],
  vim.fn.readfile(file),
}
"""
OURS = re.compile("at work|bellboard|quit again")


def begun(name: str, editor: Editor) -> tuple[Host, str]:
    """Have two files open, and the terminal of an agent hidden; return its device."""
    beside = BESIDE[name]
    editor.lua(beside.setup)
    editor.command("edit one.txt | write | edit two.txt | write | split one.txt")
    tty = editor.lua(HIDDEN_TERMINAL)
    editor.command("edit one.txt")
    if beside.opens:
        editor.command(beside.opens)
    editor.shows(beside.shows)
    return Host(editor), tty


def still(editor: Editor) -> list[str]:
    """Return the screen above the statusline once it rests: lazy.nvim draws what its tasks do."""
    seen: list[list[str]] = []

    def rests() -> bool:
        seen.append(editor.screen.lines[:-2])
        return len(seen) > 3 and seen[-4:] == [seen[-1]] * 4

    eventually(rests, "a screen that rests", pause=0.2)
    return seen[-1]


def ended(name: str, editor: Editor) -> Iterator[str]:
    """Neovim quits, and a session file has the files of the user and nothing of ours."""
    eventually(lambda: editor.process.poll() is not None, "the end of Neovim")
    if saved := BESIDE[name].saved:
        files = [path for path in editor.home.root.glob(saved) if path.is_file()]
        (text,) = (path.read_text() for path in files)
        assert "one.txt" in text and "two.txt" in text and not OURS.search(text), text
        yield "saved"


def refused(name: str, editor: Editor) -> Iterator[str]:
    """It is refused once, names the agents, and leaves all as it was."""
    host, tty = begun(name, editor)
    shown = still(editor)
    before = editor.lua(SEEN)
    for command, says in {"wa": "", "xa": "E948", "qa": '"qa is at work: quit again'}.items():
        host.push(session("working", command, project=command, tty=tty))  # one not named so far
        editor.press(f":{command}<CR>")
        if says:
            editor.shows(says)
            editor.press("<CR>")
            editor.hides("Press ENTER")
        eventually(lambda: editor.screen.lines[:-2] == shown, "the same screen")
        assert editor.lua(SEEN) == before
        yield f":{command}"
    editor.press(":qa<CR>")
    yield from ended(name, editor)
    yield "again"


def forced(name: str, editor: Editor) -> Iterator[str]:
    """`:qa!` is not refused."""
    host, tty = begun(name, editor)
    host.push(session("working", project="api", tty=tty))
    editor.press(":qa!<CR>")
    yield from ended(name, editor)
    yield ":qa!"
