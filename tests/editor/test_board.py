"""The board in use: its keys and the mouse, with a real host behind them."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from editor.test_live import Agent, agent, hosted
from rig import ROOT
from rig.editor import Editor
from rig.fixtures import Editors
from rig.host import asked
from rig.host.sample import QUIET, Host, blocked, dated, house, session
from rig.waiting import eventually

__all__ = ["agent"]  # the fixture

CALM = {**QUIET, "float": {"enabled": False}}
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
    board.press("N")
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
    board.lua("_G.choice = 'Cancel'")
    board.press("x")
    eventually(lambda: str(pid) in (board.lua("return _G.prompt") or ""), "the question")
    board.lua(
        """local told = ...
        require('bellboard.process.talk').ask('stop', told, function(r) _G.reply = r end)""",
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
    """In its own buffer beside the board, without colors."""
    board.press("e")
    board.shows("UserPromptSubmit")
    assert "\x1b" not in "".join(board.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
    board.press("q")
    board.hides("UserPromptSubmit")


def test_repositories_and_sessions_fold_by_key_and_by_mouse(shared: Editors, version: str) -> None:
    """<Tab> and a double click; a folded section shows a summary, and ]] opens it."""
    editor = shared(version, {**QUIET, "float": {"enabled": False}}, columns=80, lines=30)
    Host(editor).push(*house())
    editor.command("execute 'ClaudeSessions board' | only")
    editor.shows("rm -rf build &&")
    editor.press("k<Tab>")
    summary = " Needs you  ▸ 4 sessions  !1 ?1 x1 +1"
    row = editor.shows(summary).lines.index(summary)
    editor.command("set mousetime=60000")  # on a busy machine a double click takes its time
    editor.nvim.api.input_mouse("left", "press", "", 0, row, 2)
    editor.nvim.api.input_mouse("left", "release", "", 0, row, 2)
    editor.nvim.api.input_mouse("left", "press", "", 0, row, 2)
    editor.shows("rm -rf build &&")
    editor.nvim.api.input_mouse("left", "release", "", 0, row, 2)
    editor.press("zR")
    editor.shows("agent     Explore find the limiter")
    editor.shows("tasks     3 of 7 done")
    editor.press("zM")
    editor.shows("dotfiles  ▸ 2 sessions  &1 .1")
    editor.press("gg]]")
    eventually(lambda: "rm -rf" in editor.lua("return vim.fn.getline('.')"), "the first")
    editor.press("]]")
    eventually(lambda: "Which" in editor.lua("return vim.fn.getline('.')"), "the next")
    editor.press("[[")
    eventually(lambda: "rm -rf" in editor.lua("return vim.fn.getline('.')"), "the one before")


def test_the_host_ranks_the_repositories(shared: Editors) -> None:
    """Lua keeps its order; unknown repositories come last, most urgent first."""
    editor = shared(config={**QUIET, "board": {"group": "repository"}}, columns=80, lines=30)
    host = Host(editor)
    host.push(*house(), groups=["acme/web", "dotfiles", "acme/api"])
    editor.command("execute 'ClaudeSessions board' | only")
    lines = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    titles = [line.strip() for line in lines[2:] if re.fullmatch(r" \S+", line)]
    assert titles == ["acme/web", "dotfiles", "acme/api", "acme/infra"]
    host.push(full=False, groups=["acme/api", "acme/web", "dotfiles"])
    host.push(blocked("new", id="new"), full=False)
    lines = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    titles = [line.strip() for line in lines[2:] if re.fullmatch(r" \S+", line)]
    assert titles == ["acme/api", "acme/web", "dotfiles", "new", "acme/infra"]


WIDEST = """
require('bellboard.board.view').update()
local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
return math.max(unpack(vim.tbl_map(vim.api.nvim_strwidth, lines)))
"""


def test_a_row_and_its_details_show_what_is_known(shared: Editors) -> None:
    """Markers are on the row, with the whole branch if there is room; the rest shows unfolded."""
    editor = shared(config=CALM, columns=120, lines=34)
    branch = "feature/a-branch-with-a-long-name-indeed"
    lead = {
        "markers": ["scheduled", "parked"],
        "snoozed_until": time.time() + 600,
        "pull_request": "#12",
        "pull_request_state": "open",
        "pull_request_url": "https://github.example/acme/api/pull/12",
        "mode": "plan",
        "model": "opus",
        "context": 85_000,
        "ports": [3000, 8080],
        "team": ["mate"],
        "prompts": ["write it", "test it"],
        "previous": ["earlier"],
    }
    host = Host(editor)
    host.push(
        session("working", "lead", branch=branch, **WORK, **lead),
        session("idle", "mate", title="the mate", parent="lead", **WORK),
    )
    editor.command("ClaudeSessions board")
    editor.command("only")
    editor.shows(branch)
    editor.shows("m parked scheduled #12")
    editor.press("zR")
    for name, text in {
        "teammate": "the mate, idle",
        "lead": f"api {branch}, working",
        "model": "opus, plan mode, 85k tokens",
        "ports": "3000, 8080",
        "pr": "#12 open https://github.example/acme/api/pull/12",
        "before": "earlier",
    }.items():
        editor.shows(f"     {name:9} {text}")
    picture = editor.shows("     prompt    test it")
    assert picture.text.index("write it") < picture.text.index("test it")
    odd = ("漢字" * 40, "🙂" * 30, "x" * 300, "%{evil}", "a\nb\x1b[31m", "")
    host.push(
        *(
            session("working", f"odd{n}", branch=odd[n - 1], title=odd[n - 2], label=odd[n - 3],
                    detail=word, repository=word, project=odd[n - 4], **{**lead, "team": []})
            for n, word in enumerate(odd)
        )
    )  # fmt: skip
    for columns in (120, 70, 60, 40):
        editor.command(f"set columns={columns}")
        for keys in ("zM", "t", "t", "t"):
            editor.press(keys)
            eventually(lambda: editor.lua(WIDEST) <= columns, "lines that fit")  # noqa: B023
    assert editor.messages() == ""


def test_a_row_names_its_agent_where_there_are_several_kinds(shared: Editors) -> None:
    """With a single kind of agents, no name is needed."""
    editor = shared(config=CALM, columns=120, lines=20)
    host = Host(editor)
    host.push(session("working", "one", agent="claude"), session("idle", "two", agent="claude"))
    editor.command("ClaudeSessions board")
    assert "claude" not in editor.shows("2 sessions").text
    host.push(session("working", "one", agent="claude"), session("idle", "two", agent="codex"))
    editor.shows(" codex ")
    editor.shows(" claude ")


@pytest.mark.parametrize("columns", [60, 110])
def test_a_name_shows_on_every_board(shared: Editors, columns: int) -> None:
    """Titles need a wide board; the name that the user gave does not."""
    editor = shared(config=QUIET, columns=columns, lines=20)
    Host(editor).push(session("working", project="api", branch="main", name="the build"))
    editor.command("ClaudeSessions board")
    editor.shows("the build")


TOLD = """
_G.told = {}
require('bellboard.process.talk').tell = function(evidence) table.insert(_G.told, evidence) end
"""
UNPINNED = {**CALM, "notices": {"labels": {"HEAVY": {"pin": False}}}}
WORK = {"project": "api", "repository": "acme/api", "cwd": "/srv/api"}
SITE = {"project": "web", "repository": "acme/web", "cwd": "/srv/web"}


def six() -> list[dict[str, Any]]:
    """In two repositories; three need you."""
    return [
        session("working", "cache", branch="cache", tool="Edit", **WORK),
        session("idle", "limits", branch="limits", ago=900, **WORK),
        blocked(id="build", branch="main", **WORK),
        session("completed", "css", branch="css", label="HEAVY", **SITE),
        session("working", "login", branch="login", model="fable", **SITE),
        session("error", "assets", branch="assets", detail="overloaded", **SITE),
    ]


def heads(editor: Editor) -> list[str]:
    """The lines of the board's buffer, as far as the branch; headings without their blank."""
    lines = editor.lua("return vim.api.nvim_buf_get_lines(0, 2, -1, false)")
    return [" ".join(line.split()[:3]) for line in lines]


@pytest.mark.parametrize("auto", [True, False])
def test_counts_stand_once_on_the_screen_and_always_in_the_same_order(
    shared: Editors, auto: bool
) -> None:
    """In the statusline, else on the board; a filtered board counts what it lists.

    The order does not depend on what waits longest: counts would change their places.
    """
    config = {**QUIET, "statusline": {"auto": auto}, "float": {"enabled": False}}
    editor = shared(config=config, columns=80, lines=24)
    editor.command("set laststatus=3")
    asks = session("blocked", "web", ago=900, kind="question", detail="Which?", project="web")
    Host(editor, "require('bellboard.start').attach()").push(blocked("api", ago=100), asks)
    editor.command("ClaudeSessions board")
    editor.shows("!1 ?1 15m" if auto else "!1 ?1   g? help")
    editor.shows("2 sessions")
    assert editor.screen.text.count("!1 ?1") == 1
    editor.press("fapi<CR>")
    editor.shows("!1   g? help")


def test_the_user_chooses_what_the_board_lists(shared: Editors, version: str) -> None:
    """By default, sessions that need you are on top; the header shows any other choice."""
    editor = shared(version, UNPINNED, columns=100, lines=24)
    Host(editor).push(*six(), groups=["acme/web", "acme/api"])
    editor.command("execute 'ClaudeSessions board' | only")
    on_top = ["Needs you", "! acme/api main", "x acme/web assets", "+ acme/web css"]
    rest = ["acme/web", "* login working", "acme/api", "* cache Edit", ". limits idle"]
    assert heads(editor) == [*on_top, *rest]
    editor.press("fs:work")
    editor.shows("2 of 6 sessions · filter: s:work")
    assert heads(editor) == ["acme/web", "* login working", "acme/api", "* cache Edit"]
    editor.press(" !cache<CR>")
    editor.shows("1 of 6 sessions in acme/web · filter: s:work !cache")
    editor.press("f zzz")
    editor.shows("No session matches")
    editor.press("<Esc>")
    editor.shows("1 of 6 sessions in acme/web · filter: s:work !cache")
    for words, found in {"agent:fable": "login", "l:heavy": "css", "overlo": "assets"}.items():
        editor.press(f"f<C-u>{words}<CR>")
        editor.shows(f"1 of 6 sessions in acme/web · filter: {words}")
        editor.shows(found)
    editor.press("Ft")
    editor.shows("6 sessions · by repository")
    assert heads(editor)[:3] == ["acme/web", "x assets overloaded", "+ css completed"]
    editor.press("tS")
    editor.shows("6 sessions · flat · sorted by recent")
    editor.press("S")
    editor.shows("6 sessions · flat · sorted by name")
    names = ["! acme/api main", "* acme/api cache", ". acme/api limits"]
    assert sorted(heads(editor)[:3]) == sorted(names)
    editor.lua("vim.fn.getcwd = function() return '/srv/web/src' end")
    editor.press("tS.")
    editor.shows("3 of 6 sessions in acme/web · only /srv/web/src")
    editor.press("F")
    editor.hides("only")
    host = Host(editor)
    host.push(*six(), groups=["acme/web", "acme/api"])
    editor.lua("vim.g.bellboard = { auto_start = false } require('bellboard.config').read()")
    host.push(*six())
    assert heads(editor)[:3] == ["Pinned", "+ acme/web css", "Needs you"]


def test_keys_act_on_all_marked_or_selected_sessions(nvim: Editors, version: str) -> None:
    """On a heading they act on its sessions; a key for one session says so."""
    editor = nvim(version, UNPINNED, lua=NOTED, columns=100, lines=24)
    Host(editor).push(*six(), groups=["acme/web", "acme/api"])
    editor.lua(TOLD)
    editor.command("execute 'ClaudeSessions board' | only")

    def told(*expected: dict[str, Any]) -> None:
        eventually(lambda: editor.lua("return _G.told") == [*expected], str(expected))
        editor.lua("_G.told = {}")

    editor.press("mm")
    editor.shows("2 marked")
    editor.shows(">! acme/api main")
    editor.press("p")
    told(*({"park": {"session_id": sid, "parked": True}} for sid in ("build", "assets")))
    editor.hides("marked")
    editor.lua("_G.word = 'ONEOFF'")
    editor.press("ggjjjVjl")
    told(*({"label": {"session_id": sid, "label": "ONEOFF"}} for sid in ("build", "assets")))
    editor.press("ggjjd")
    told(*({"goto": {"session_id": sid}} for sid in ("build", "assets", "css")))
    editor.press("ggd")
    eventually(lambda: "no session on this line" in editor.lua("return _G.noted[#_G.noted]"))
    editor.press("jjr")
    eventually(lambda: "acts on one session" in editor.lua("return _G.noted[#_G.noted]"))
    editor.press("m")
    editor.shows("3 marked")
    editor.press("M")
    editor.hides("marked")
    assert editor.lua("return _G.told") == []


PLACE = """
local view = vim.fn.winsaveview()
return { view.lnum - view.topline, (vim.fn.getline('.'):gsub('%s+', ' ')) }
"""


def test_nothing_moves_under_the_cursor(shared: Editors) -> None:
    """While it is in the board, its row stays on its line of the screen."""
    editor = shared(config=CALM, columns=100, lines=12)
    host = Host(editor)
    all_six, ranks = six(), ["acme/web", "acme/api"]
    host.push(*all_six, groups=ranks)
    editor.command("execute 'ClaudeSessions board' | only")
    editor.lua("vim.fn.search('limits')")
    place, line = editor.lua(PLACE)
    for n in (2, 3, 5):  # one after another, the sections above lose a line
        all_six[n] = {**all_six[n], "status": "idle", "kind": None}
        host.push(*all_six, groups=ranks)
        assert editor.lua(PLACE) == [place, line]
    host.push(*(blocked(id=f"new{n}", **SITE) for n in range(9)), full=False)
    assert editor.lua(PLACE) == [place, line]
    asks = {"status": "blocked", "kind": "permission", "tool": "Bash"}
    host.push({**all_six[1], **asks}, full=False)
    place_now, line = editor.lua(PLACE)
    assert (place_now, line.split()[:2]) == (place, ["!", "limits"])
    editor.press("gg")
    host.push({**all_six[0]}, full=False)
    assert "! acme/api limits" in heads(editor)


def test_the_board_survives(nvim: Editors, version: str, tmp_path: Path) -> None:
    """:bdelete, :bwipeout, :only, :edit, a session file, and q in the last window."""
    editor = nvim(version, CALM, columns=80, lines=24)
    host = Host(editor)
    host.push(*six())
    for command in ("bdelete", "bwipeout", "edit", "wincmd p | only"):
        editor.command("ClaudeSessions board")
        editor.shows("6 sessions")
        editor.command(command)
    editor.command("ClaudeSessions board")
    editor.press("f!limits<CR>")
    editor.shows("5 of 6 sessions")
    editor.command(f"mksession {tmp_path / 'session.vim'}")
    editor.press("q")
    editor.hides("sessions")
    editor.command(f"source {tmp_path / 'session.vim'}")
    editor.shows("5 of 6 sessions · filter: !limits")
    editor.lua("vim.fn.win_gotoid(vim.fn.win_findbuf(vim.fn.bufnr('bellboard://board'))[1])")
    editor.press("FP")
    host.push(*six())
    editor.shows("6 sessions")
    editor.command("only")
    editor.press("q")
    eventually(lambda: editor.lua("return vim.bo.filetype") == "", "no board")
    assert editor.lua("return { vim.fn.winnr('$'), vim.wo.cursorline, vim.wo.winfixbuf }") == [
        1,
        False,
        False,
    ]
    assert editor.messages() == ""


@pytest.mark.parametrize("end", ["quit", "bunload"])
def test_the_board_opens_again_after_it_was_lost(shared: Editors, version: str, end: str) -> None:
    """:noautocmd and an autocommand of somebody else that fails keep its end from us."""
    editor = shared(version, QUIET, columns=100, lines=30)
    host = Host(editor)
    host.push(*house())
    for _ in range(2):
        editor.command("ClaudeSessions board")
        editor.shows("g? help")
        editor.command(f"noautocmd {end}")
        editor.hides("g? help")
        host.push(*house())
    editor.command("ClaudeSessions board")
    editor.shows("g? help")
    assert editor.messages() == ""


def test_a_board_that_was_restored_too_early_is_replaced(shared: Editors, version: str) -> None:
    """By a session file that was read before the plugin was loaded: an empty buffer of its name."""
    editor = shared(version, CALM, columns=80, lines=24)
    Host(editor).push(*six())
    editor.command("noautocmd edit bellboard://board | split | enew")
    editor.command("ClaudeSessions board")
    editor.shows("6 sessions")
    editor.press("q")
    editor.hides("6 sessions")
    assert editor.lua("return { vim.fn.winnr('$'), vim.bo.filetype }") == [1, ""]
    assert editor.messages() == ""


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
    """g? lists the mapped keys: the defaults as changed by the user."""
    editor = nvim(config=QUIET, lua=OWN_KEYS, columns=80, lines=40)
    Host(editor).push(*house())
    editor.command("ClaudeSessions board")
    keys = editor.lua(
        "return vim.tbl_map(function(x) return type(x) == 'string' and x or false end, "
        "require('bellboard.config').get().board.keys)"
    )
    names = editor.lua(
        "return vim.tbl_map(function(key) return key[2] end, require('bellboard.keys').board)"
    )
    assert {name for name in keys.values() if name} == {*names}
    mapped = {m["lhs"] for m in editor.nvim.api.buf_get_keymap(0, "n")} - {"<2-LeftMouse>"}
    assert {"x": False}.items() <= keys.items()
    assert mapped == {*keys} - {"x"}
    section = MANUAL[MANUAL.index("*bellboard-board*") : MANUAL.index("*bellboard-options*")]
    assert [key for key in mapped - {"<C-K>", "gy"} if f" {key} " not in section] == []
    editor.press("egy")
    eventually(lambda: editor.lua("return { vim.g.mine, _G.got }") == [1, "api"], "both mappings")
    editor.press("g?")
    for text in ("yank the session id", "this help", "show what it asks", "<C-K>     stop its"):
        editor.shows(text)
    editor.press("q")
    editor.hides("this help")


def test_the_prompt_for_a_name_offers_your_own(shared: Editors) -> None:
    """The title of the session may have changed since."""
    editor = shared(config=QUIET, columns=80, lines=24)
    mine = {"project": "text", "name": "mine", "title": "of the CLI"}
    Host(editor).push(session("working", "a", **mine))
    editor.command("ClaudeSessions board")
    editor.shows("* mine")
    editor.press("N")
    editor.shows("Name: mine")


def test_a_prompt_names_the_session_and_does_not_stay(shared: Editors, version: str) -> None:
    """The prompt shows the title apart from the project. To leave a menu is to cancel it."""
    editor = shared(version, QUIET, columns=80, lines=24)
    Host(editor).push(session("working", "a", project="text", title="please play", pid=4711))
    editor.command("ClaudeSessions board")
    editor.shows("* please play  working")
    editor.press("N")
    editor.shows("Name: ")
    editor.press("<C-u>my name<CR>")
    editor.hides("Name: ")
    for key, prompt in {
        "s": 'Snooze text "please play" for',
        "x": 'Stop process 4711 (text "please play")?',
    }.items():
        editor.press(key)
        editor.shows(prompt)
        editor.press("<CR>")
    editor.press("s")
    editor.shows("Snooze text")
    editor.press("<C-w>p")
    editor.hides("Snooze text")


@pytest.mark.parametrize("command", ["only | bdelete", "silent! %bdelete", "silent! %bwipeout!"])
def test_a_window_that_was_the_boards_is_the_users_again(
    nvim: Editors, version: str, command: str
) -> None:
    """The window takes any file, and leaves room for the float."""
    editor = nvim(version, {**CALM, "float": {"seconds": 0}}, columns=80, lines=24)
    host = Host(editor)
    editor.command("edit one")
    editor.command("ClaudeSessions board")
    editor.command(command)
    editor.command("edit two")
    assert editor.lua("return { vim.fn.bufname(), vim.fn.winnr('$') }") == ["two", 1]
    host.push(blocked())
    editor.shows("1 needs you")


#: Receives pushes, each one with another number.
UPDATES = """
local from, count, texts = ...
for seq = from, from + count - 1 do
  require('bellboard')._push((texts[seq % #texts + 1]:gsub('"seq":0', '"seq":' .. seq)))
end
"""


def memory(editor: Editor) -> tuple[float, float]:
    """Return the memory of Lua, and of the whole process, in kB."""
    lua = editor.lua("collectgarbage() collectgarbage() return collectgarbage('count')")
    return lua, psutil.Process(editor.pid).memory_info().rss / 1024


@pytest.mark.parametrize(("opens", "shows"), [("answer api", "make all"), ("pick", "Filter:")])
def test_updates_leave_nothing_in_memory(shared: Editors, opens: str, shows: str) -> None:
    """500, after the first 250: with board, preview, float, statusline, and request or picker."""
    config = {**QUIET, "board": {"preview": True}}
    editor = shared(config=config, columns=100, lines=40)
    host, api = Host(editor), asked.asks("api")
    asked.play(editor, asked.command(api, "make all"))
    host.push(api)
    editor.command("ClaudeSessions board")
    editor.press(f":ClaudeSessions {opens}<CR>")
    editor.shows(shows)
    other = {"tool": "Edit", "project": "web"}
    texts, now = [], time.time()
    for n in range(2):
        changed = dated(session("working", "web", detail=f"file{n}.py", **other), now)
        head = {"v": 2, "version": "0.1.0", "seq": 0, "full": False, "now": now}
        texts.append(json.dumps({**head, "sessions": [changed]}, separators=(",", ":")))
    after = []
    for batch in range(3):
        for nth in range(0, 250, 5):  # Neovim keeps what its screen has not read yet
            editor.lua(UPDATES, host.seq + 1 + batch * 250 + nth, 5, texts)
            time.sleep(0.01)
        time.sleep(0.5)  # Neovim frees what it keeps for its screen once that has read it
        after.append(memory(editor))
    assert after[-1][0] - after[0][0] < 100  # 4 kB for each would be 2,000
    assert after[-1][1] - after[0][1] < 1000
    assert editor.messages() == ""
