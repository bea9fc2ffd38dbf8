"""Neovim is quit while agents work in its terminals."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.sample import HIDDEN_TERMINAL, QUIET, Host, blocked, session
from rig.waiting import eventually

#: Windows, buffers and where the user is and was.
PLACE = """
return { vim.fn.execute('ls!'):gsub('line %d+', ''), vim.fn.winlayout(), vim.fn.win_getid(),
  vim.fn.win_getid(vim.fn.winnr('#')), vim.fn.bufnr('#'), #vim.api.nvim_list_wins(),
  vim.o.eventignore, vim.fn.jobwait({ vim.bo[terminal].channel }, 0) }
"""
NAMED = "api is at work: quit again to end it"
E162 = f'E162: No write since last change for buffer "{NAMED}"'
ASKED = f'Save changes to "{NAMED}"?'


class Quit(NamedTuple):
    """The screen `says` that after `keys`, and shows `after` once the keys `then` were pressed."""

    keys: str
    says: str = ""
    then: str = ""
    after: str = ""
    ends: bool = False  # Neovim then
    first: str = "echo"
    since: str = "0.10"  # the Neovim that has it


QUITS = {
    "all": Quit(":qa<CR>", E162, "<CR>"),
    "last window": Quit(":q<CR>", E162, "<CR>", first="only"),
    "last window, which has the agent": Quit("ZZ", E162, "<CR>", first="only | buffer terminal"),
    "forced": Quit(":qa!<CR>", ends=True),
    "last window, forced": Quit(":q!<CR>", ends=True, first="only"),
    "asked, and cancelled": Quit(":confirm qa<CR>", ASKED, "c"),
    "asked, and saved": Quit(":qa<CR>", ASKED, "y", first="set confirm"),
    "asked, and not saved": Quit(":qa<CR>", ASKED, "n", ends=True, first="set confirm"),
    "saved by itself": Quit(":qa<CR>", E162, "<CR>", first="set autowriteall"),
    "in a function": Quit(":call execute('try | qall | catch | endtry')<CR>", NAMED),
    "another file has changed": Quit(
        ":qa<CR>", 'buffer "two"', "<CR>:write<CR>:qa<CR>", ends=True, first="call setline(1, 'x')"
    ),
    "saving all": Quit(":wqa<CR>", "E948: Job still running", "<CR>", "bellboard: api is at work"),
    "restart": Quit(":restart<CR>", NAMED, since="0.12"),
}


def begin(editor: Editor) -> tuple[Host, str]:
    """Open two windows with the second of two files, and hide the terminal of an agent."""
    editor.lua("vim.o.shortmess = vim.o.shortmess .. 'FW'")
    editor.command("edit one | edit two | split")
    tty = editor.lua(HIDDEN_TERMINAL.replace("vim.cmd.file('here')", "").replace("'here'", "'two'"))
    editor.lua("vim.api.nvim_buf_set_name(terminal, 'terminal')")
    return Host(editor), tty


@pytest.mark.parametrize("quit", QUITS.values(), ids=QUITS)
def test_quitting_is_refused_once(nvim: Editors, version: str, quit: Quit) -> None:
    """While an agent works here: in Neovim's words, which name it, and nothing else changes."""
    if float(version) < float(quit.since):
        pytest.skip(f"Neovim {version} has no {quit.keys}")
    editor = nvim(version, QUIET, columns=120)
    host, tty = begin(editor)
    host.push(session("working", project="api", tty=tty))
    editor.command(quit.first)
    before = editor.lua(PLACE)
    editor.press(quit.keys)
    if quit.says:
        editor.shows(quit.says)
        editor.press(quit.then)
    if not quit.ends:
        editor.shows(quit.after)
        editor.hides("ENTER")
        assert editor.lua(PLACE) == before
        editor.press(":qa<CR>")
    eventually(lambda: editor.process.poll() is not None, "the end of Neovim")


def test_closing_a_window_is_not_refused(nvim: Editors) -> None:
    """Nor does `:quit` leave anything behind."""
    editor = nvim(config=QUIET)
    host, tty = begin(editor)
    host.push(session("working", project="api", tty=tty))
    buffers = editor.lua("return vim.api.nvim_list_bufs()")
    editor.press(":quit<CR>")
    eventually(lambda: len(editor.lua("return vim.api.nvim_list_wins()")) == 1, "one window")
    assert editor.lua("return vim.api.nvim_list_bufs()") == buffers
    assert editor.messages() == ""


def working(*projects: str) -> list[dict[str, Any]]:
    return [session("working", name, project=name) for name in projects]


#: The sessions in a terminal here → what is said of them when Neovim would quit.
NAMES = {
    "at work": (working("api"), NAMED),
    "asking": ([blocked("web")], "web asks: quit again to end it"),
    "both": ([*working("api"), blocked("web")], "web asks, api is at work: quit again to end them"),
    "many": (
        working(*"abcde"),
        "a is at work, b is at work, c is at work, 2 more: quit again to end them",
    ),
    "at rest": ([session(s) for s in ("idle", "completed", "error", "background", "unknown")], ""),
}


@pytest.mark.parametrize(("sessions", "says"), NAMES.values(), ids=NAMES)
def test_agents_at_work_and_asking_are_named(
    shared: Editors, sessions: list[dict[str, Any]], says: str
) -> None:
    """Those that would end with this Neovim, and no others."""
    editor = shared(config=QUIET, columns=120)
    host, tty = begin(editor)
    elsewhere = session("working", "elsewhere", project="elsewhere", tty="/dev/pts/none")
    # Of other ids than in the other cases: those that were named can be ended.
    here = [{**each, "tty": tty, "session_id": says + each["session_id"]} for each in sessions]
    host.push(elsewhere, *here)
    assert editor.lua(CALLED) == says
    eventually(lambda: says in editor.messages(), "it is said even if Neovim did not look")


#: What Neovim would call the buffer that keeps it from quitting.
CALLED = """
vim.cmd('doautocmd ExitPre')
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[buf].buftype == 'acwrite' then
    return vim.fs.basename(vim.api.nvim_buf_get_name(buf))
  end
end
return ''
"""


UNKNOWN = {
    "it has ended": lambda editor, host: editor.lua(
        "vim.fn.jobstop(vim.bo[terminal].channel) vim.fn.jobwait({ vim.bo[terminal].channel })"
    ),
    "what it does is outdated": lambda editor, host: host.stops(),
    "the user wants none": lambda editor, host: editor.lua(
        "require('bellboard').setup({ refuse_quit = false })"
    ),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_nothing_is_refused_if(shared: Editors, case: str) -> None:
    """The terminal's program has ended, the sessions are outdated, or `refuse_quit` is false."""
    editor = shared(config=QUIET, columns=120)
    host, tty = begin(editor)
    host.push(session("working", case, project="api", tty=tty))
    UNKNOWN[case](editor, host)
    assert editor.lua(CALLED) == ""
