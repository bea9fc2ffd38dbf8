"""The board in use: its keys and the mouse, with a real host behind them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.waiting import eventually
from sample import QUIET, Host, blocked, house, session
from test_editor_live import Agent, agent, hosted

__all__ = ["agent"]  # the fixture

pytestmark = pytest.mark.editor

ROOT = Path(__file__).resolve().parents[1]
MANUAL = (ROOT / "doc/bellboard.txt").read_text()
SESSION = "return require('bellboard').session('live')"
NOTED = """
_G.noted = {}
vim.notify = function(text) table.insert(_G.noted, text) end
vim.ui.select = function(items, opts, on_choice)
  local words = vim.tbl_map(opts.format_item or tostring, items)
  _G.prompt, _G.words = opts.prompt, words
  for place, word in ipairs(words) do
    if word == _G.choice then
      return on_choice(items[place])
    end
  end
  on_choice(nil)
end
vim.ui.input = function(_, on_input) on_input(_G.word) end
"""


def becomes(editor: Editor, **wanted: Any) -> None:
    """Wait until the session has these values."""

    def look() -> bool:
        found = editor.lua(SESSION) or {}
        assert {key: found.get(key) for key in wanted} == wanted
        return True

    eventually(look)


@pytest.fixture
def board(nvim: Editors, agent: Agent) -> Editor:
    """Open the board with one working session, and put the cursor on it."""
    editor = hosted(nvim(config={}, lua=NOTED, columns=100, lines=30))
    agent.emit("UserPromptSubmit", prompt="build it", prompt_id="1")
    eventually(lambda: (editor.lua(SESSION) or {}).get("pid"), "the session")
    editor.command("ClaudeSessions board")
    editor.shows("1 session ")
    return editor


def test_the_keys_change_a_session_through_the_host(board: Editor, agent: Agent) -> None:
    """Park, label, name, correct, snooze, seen: evidence like any other, for every Neovim."""
    board.press("p")
    eventually(lambda: "parked" in board.lua(SESSION)["markers"], "parked")
    board.press("p")
    eventually(lambda: "parked" not in board.lua(SESSION)["markers"], "not parked")
    board.lua("_G.word = 'HEAVY'")
    board.press("l")
    becomes(board, label="HEAVY")
    board.lua("_G.word = 'the build'")
    board.press("r")
    becomes(board, name="the build")
    board.shows("the build")
    board.lua("_G.choice = 'an hour'")
    board.press("s")
    eventually(lambda: board.lua(SESSION).get("snoozed_until", 0) > 0, "snoozed")
    agent.emit("Stop", prompt_id="1", last_assistant_message="built")
    becomes(board, status="completed")
    board.press("d")
    becomes(board, status="idle")
    board.lua("_G.choice = 'working'")
    board.press("c")
    becomes(board, status="working")
    board.press('"ay')
    eventually(lambda: board.lua("return vim.fn.getreg('a')") == "live", "a yank")


def test_stop_ends_the_process_that_was_shown_and_no_other(board: Editor, agent: Agent) -> None:
    """After asking; the outcome is shown, and a reused process id is left alone."""
    pid = agent.process.pid
    board.lua("_G.choice = 'Leave it'")
    board.press("x")
    eventually(lambda: str(pid) in (board.lua("return _G.prompt") or ""), "the question")
    board.lua(
        """local told = ...
        require('bellboard.host').ask('stop', told, function(r) _G.reply = r end)""",
        {"session_id": "live", "pid": 1},
    )
    reply = eventually(lambda: board.lua("return _G.reply"), "a reply")
    assert reply == {"ok": False, "why": "it no longer runs as process 1"}
    assert agent.process.poll() is None
    eventually(lambda: board.lua(SESSION).get("pid") == pid, "its process")
    board.lua("_G.choice = 'Stop it'")

    def stopped() -> bool:
        board.press("x")  # again until its start time is known
        return eventually(lambda: agent.process.poll() is not None, "its end", within=2)

    eventually(stopped)
    said = f"bellboard: project: process {pid} has ended"
    eventually(lambda: said in board.lua("return _G.noted"), said)


def test_explain_shows_the_log(board: Editor) -> None:
    """In a buffer of its own, without colors, beside the board."""
    board.press("e")
    board.shows("UserPromptSubmit")
    assert "\x1b" not in "".join(board.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
    board.press("q")
    board.hides("UserPromptSubmit")


def test_repositories_and_sessions_fold_by_key_and_by_mouse(nvim: Editors, version: str) -> None:
    """<Tab> and a double click; a folded repository shows a summary."""
    editor = nvim(version, {**QUIET, "float": {"enabled": False}}, columns=80, lines=30)
    Host(editor).push(*house())
    editor.command("ClaudeSessions board | only")
    editor.shows("rm -rf build && make all")
    editor.press("k<Tab>")
    picture = editor.shows("acme/api  ▸ 2 sessions  !1 *1")
    row = picture.lines.index(" acme/api  ▸ 2 sessions  !1 *1")
    editor.command("set mousetime=60000")  # a double click may be slow on a busy machine
    editor.nvim.api.input_mouse("left", "press", "", 0, row, 2)
    editor.nvim.api.input_mouse("left", "release", "", 0, row, 2)
    editor.nvim.api.input_mouse("left", "press", "", 0, row, 2)
    editor.shows("rm -rf build && make all")
    editor.nvim.api.input_mouse("left", "release", "", 0, row, 2)
    editor.press("zM")
    editor.shows("acme/web  ▸ 2 sessions  ?1 +1")
    editor.press("zR")
    editor.shows("agent     Explore find the limiter")
    editor.shows("tasks     3 of 7 done")
    editor.press("zRgg]]")
    eventually(lambda: "rm -rf" in editor.lua("return vim.fn.getline('.')"), "the first")
    editor.press("]]")
    eventually(lambda: "Which" in editor.lua("return vim.fn.getline('.')"), "the next")
    editor.press("[[")
    eventually(lambda: "rm -rf" in editor.lua("return vim.fn.getline('.')"), "the one before")


def test_the_host_ranks_the_repositories(nvim: Editors) -> None:
    """Lua keeps its order; unknown repositories come last, most urgent first."""
    editor = nvim(config=QUIET, columns=80, lines=30)
    host = Host(editor)
    host.push(*house(), groups=["acme/web", "dotfiles", "acme/api"])
    editor.command("ClaudeSessions board | only")
    lines = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    titles = [line.strip() for line in lines[2:] if re.fullmatch(r" \S+", line)]
    assert titles == ["acme/web", "dotfiles", "acme/api", "acme/infra"]
    host.push(full=False, groups=["acme/api", "acme/web", "dotfiles"])
    host.push(blocked("new", id="new"), full=False)
    lines = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    titles = [line.strip() for line in lines[2:] if re.fullmatch(r" \S+", line)]
    assert titles == ["acme/api", "acme/web", "dotfiles", "new", "acme/infra"]


@pytest.mark.parametrize("columns", [60, 110])
def test_a_name_shows_on_every_board(nvim: Editors, columns: int) -> None:
    """Titles need a wide board; the name that the user gave does not."""
    editor = nvim(config=QUIET, columns=columns, lines=20)
    Host(editor).push(session("working", project="api", branch="main", name="the build"))
    editor.command("ClaudeSessions board")
    editor.shows("the build")


#: A user's own keys, and a mapping that a FileType autocommand makes.
OWN_KEYS = """
vim.g.bellboard = { auto_start = false, board = { keys = {
  x = false, ['<c-k>'] = 'stop', gy = function(session) _G.got = session.session_id end,
} } }
vim.api.nvim_create_autocmd('FileType', { pattern = 'bellboard', callback = function(event)
  vim.keymap.set('n', 'e', '<Cmd>let g:mine = 1<CR>', { buffer = event.buf })
end })
"""


def test_every_key_is_in_its_help_and_in_the_manual(nvim: Editors) -> None:
    """g? lists what is mapped: the defaults as changed by the user."""
    editor = nvim(config=QUIET, lua=OWN_KEYS, columns=80, lines=40)
    Host(editor).push(*house())
    editor.command("ClaudeSessions board")
    keys = editor.lua(
        "return vim.tbl_map(function(deed) return type(deed) == 'string' and deed or false end, "
        "require('bellboard.config').get().board.keys)"
    )
    deeds = editor.lua(
        "return vim.tbl_map(function(deed) return deed[1] end, "
        "require('bellboard.action.keys').list)"
    )
    assert {name for name in keys.values() if name} == {*deeds}
    mapped = {m["lhs"] for m in editor.nvim.api.buf_get_keymap(0, "n")} - {"<2-LeftMouse>"}
    assert {"x": False}.items() <= keys.items()
    assert mapped == {*keys} - {"x"}
    section = MANUAL[MANUAL.index("*bellboard-board*") : MANUAL.index("*bellboard-options*")]
    assert [key for key in mapped - {"<C-K>", "gy"} if f" {key} " not in section] == []
    editor.press("egy")
    eventually(lambda: editor.lua("return { vim.g.mine, _G.got }") == [1, "api"], "both mappings")
    editor.press("g?")
    for text in ("yank the session id", "this help", "answer: yes, no", "<C-K>     stop its"):
        editor.shows(text)
    editor.press("q")
    editor.hides("this help")


def test_q_closes_the_board_in_the_last_window_too(nvim: Editors) -> None:
    """It shows the buffer from before, or an empty one; no error."""
    editor = nvim(config=QUIET, ui=False)
    Host(editor).push(*house())
    editor.command("edit before | ClaudeSessions board | only")
    editor.press("q")
    eventually(lambda: editor.lua("return vim.bo.filetype") == "", "no board")
    assert editor.lua("return vim.fn.winnr('$')") == 1
    assert editor.messages() == ""
