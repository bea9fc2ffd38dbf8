"""Jumping to a session: its terminal here, its tmux pane, or a message; and back."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.sample import QUIET, TERMINAL, Host, blocked, session
from rig.waiting import eventually, rest

BUFFER = "return vim.api.nvim_get_current_buf()"


CALM = {**QUIET, "float": {"enabled": False}}  # it would count as a window


def mode(editor: Editor) -> Any:
    return editor.nvim.api.get_mode()["mode"]


def test_a_hidden_terminal_is_shown_here_and_entered(shared: Editors, version: str) -> None:
    """Found by tty, not by name or folder; `back` returns to where the first jump began."""
    editor = shared(version, QUIET, ui=False)
    here = editor.lua(BUFFER)
    (one, tty), (two, other) = editor.lua(TERMINAL), editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty), blocked("web", tty=other, ago=60))
    editor.command("ClaudeSessions next")
    assert editor.lua(BUFFER) == one
    eventually(lambda: mode(editor) == "t", "terminal mode")
    editor.lua("require('bellboard').next()")
    assert editor.lua(BUFFER) == two
    editor.lua("require('bellboard').back()")
    assert editor.lua(BUFFER) == here
    eventually(lambda: mode(editor) == "n", "normal mode")


def test_a_terminal_in_another_tab_is_jumped_to(shared: Editors) -> None:
    """A window that already shows the terminal is used."""
    editor = shared(config=CALM, ui=False)
    buf, tty = editor.lua(TERMINAL)
    editor.command(f"tabnew | buffer {buf} | tabfirst")
    Host(editor).push(blocked("api", tty=tty))
    editor.lua("require('bellboard').jump('api')")
    assert editor.lua("return vim.fn.tabpagenr()") == 2
    assert len(editor.lua("return vim.fn.win_findbuf(...)", buf)) == 1


def stays(editor: Editor, expected: str) -> None:
    """Wait for a mode that lasts: what was scheduled meanwhile does not change it."""

    def lasts() -> bool:
        assert mode(editor) == expected
        rest(0.1)
        return bool(mode(editor) == expected)

    eventually(lasts, expected)


#: As toggleterm.nvim does: a terminal is entered in the mode in which it was left.
PERSISTS = """
_G.left = {}
vim.api.nvim_create_autocmd('BufEnter', { pattern = 'term://*', callback = function(event)
  if left[event.buf] == 'nt' then
    vim.schedule(function() vim.cmd('stopinsert') end)
  end
end })
vim.api.nvim_create_autocmd('BufLeave', { pattern = 'term://*', callback = function(event)
  left[event.buf] = vim.api.nvim_get_mode().mode
end })"""


def test_a_terminal_that_its_owner_enters_in_normal_mode_takes_keys(
    shared: Editors, version: str
) -> None:
    """The answer that is typed would be commands; one key leaves the mode, as ever."""
    editor = shared(version, CALM)
    _, tty = editor.lua(TERMINAL)
    editor.lua(PERSISTS)
    Host(editor).push(blocked("api", tty=tty))
    editor.command("nmap gj <Cmd>ClaudeSessions next<CR>")
    for keys in ("gj", "gj", ":ClaudeSessions next<CR>"):
        editor.press(keys)
        stays(editor, "t")
        editor.press("<C-\\><C-n>")
        stays(editor, "nt")
        editor.command("ClaudeSessions back")
        stays(editor, "n")


def test_who_wants_terminals_in_normal_mode_gets_that(shared: Editors, version: str) -> None:
    """A jump does not fight over the mode."""
    editor = shared(version, CALM)
    _, tty = editor.lua(TERMINAL)
    editor.lua("""
      _G.entered = 0
      vim.api.nvim_create_autocmd('TermEnter', { callback = function()
        entered = entered + 1
        vim.cmd.stopinsert()
      end })""")
    Host(editor).push(blocked("api", tty=tty))
    editor.command("ClaudeSessions next")
    stays(editor, "nt")
    assert 1 <= editor.lua("return entered") <= 3


def test_keys_typed_after_a_jump_count(shared: Editors, version: str) -> None:
    """Such keys may leave the terminal before scheduled functions run."""
    editor = shared(version, CALM)
    _, tty = editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty))
    editor.command("nmap gj <Cmd>ClaudeSessions next<CR>")
    editor.press("gj<C-\\><C-n>")
    stays(editor, "nt")


def test_next_cycles_through_sessions_that_need_you(shared: Editors) -> None:
    """Blocked, failed and done, in the order of the board; a count skips ahead."""
    editor = shared(config=QUIET, ui=False)
    names, sessions = {}, []
    for place, status in enumerate(["blocked", "error", "completed", "working"]):
        buf, tty = editor.lua(TERMINAL)
        names[buf] = status
        sessions.append(session(status, tty=tty, ago=100 + place))
    Host(editor).push(*sessions)
    went = []
    for command in ("next", "next", "next", "next", "prev"):
        editor.command(f"ClaudeSessions {command}")
        went.append(names[editor.lua(BUFFER)])
    assert went == ["blocked", "error", "completed", "blocked", "completed"]
    editor.command("2ClaudeSessions next")
    assert names[editor.lua(BUFFER)] == "error"


def test_having_nowhere_to_go_is_reported(shared: Editors) -> None:
    """With a message instead of an error, and with all that is known."""
    editor = shared(config=QUIET, columns=120)
    host = Host(editor)
    editor.lua("require('bellboard').next()")
    editor.shows("no session needs you")
    host.push(blocked("api", pid=4711, tty="/dev/pts/99", cwd="/somewhere"))
    editor.lua("require('bellboard').jump('api')")
    editor.shows("the background process is not running; :ClaudeSessions process start")
    editor.lua("require('bellboard').jump('nobody')")
    editor.shows('no session "nobody"; :ClaudeSessions lists all')


@pytest.mark.parametrize(
    ("switchbuf", "windows", "tabs"),
    [("", 1, 1), ("split", 2, 1), ("useopen,vsplit", 2, 1), ("newtab", 1, 2), ("uselast", 1, 1)],
)
def test_switchbuf_decides_where_a_hidden_terminal_opens(
    shared: Editors, version: str, switchbuf: str, windows: int, tabs: int
) -> None:
    """This window, a new one beside it or a new tab; a window that shows it is reused."""
    editor = shared(version, CALM, ui=False)
    buf, tty = editor.lua(TERMINAL)
    editor.command(f"set switchbuf={switchbuf}")
    Host(editor).push(blocked("api", tty=tty))
    for _ in range(2):
        editor.lua("require('bellboard').jump('api')")
        assert editor.lua(BUFFER) == buf
        assert editor.lua("return { vim.fn.winnr('$'), vim.fn.tabpagenr('$') }") == [windows, tabs]


@pytest.mark.parametrize(
    "kept", ["copen", "help", "30vnew | setlocal buftype=nofile bufhidden=wipe winfixwidth"]
)
def test_a_window_that_is_kept_for_what_it_shows_is_not_used(
    nvim: Editors, version: str, kept: str
) -> None:
    """A terminal opens in the window of the user beside it, or in a new one."""
    editor = nvim(version, CALM, ui=False)
    buf, tty = editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty))
    editor.command(kept)
    beside = editor.lua(BUFFER)
    for _ in range(2):
        editor.lua("require('bellboard').jump('api')")
        assert editor.lua("return vim.fn.win_findbuf(...)", beside)
        assert editor.lua("return vim.fn.win_findbuf(...)", buf) == [
            editor.lua("return vim.api.nvim_get_current_win()")
        ]
        assert editor.lua("return #vim.api.nvim_list_wins()") == 2
        editor.lua("vim.api.nvim_win_close(0, false)")


def test_the_nearest_window_is_used(shared: Editors) -> None:
    """The current window, else one in this tab, else another tab's; never an unfocusable float."""
    editor = shared(config=CALM, ui=False)
    buf, tty = editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty))
    editor.lua(
        "local how = { relative = 'editor', row = 0, col = 0, width = 9, height = 3 }"
        "how.focusable = false vim.api.nvim_open_win(..., false, how)",
        buf,
    )
    window = editor.lua("return vim.api.nvim_get_current_win()")
    editor.lua("require('bellboard').jump('api')")
    assert editor.lua("return vim.api.nvim_get_current_win()") == window
    editor.command(f"tabnew | split | buffer {buf} | wincmd p")
    editor.lua("require('bellboard').jump('api')")
    assert editor.lua("return { vim.fn.tabpagenr(), vim.fn.winnr() }") == [2, 1]


@pytest.mark.parametrize("keys", ["", "q:", "ix", "ggVG"], ids=["n", "cmdwin", "i", "v"])
def test_a_jump_works_from_any_mode(shared: Editors, version: str, keys: str) -> None:
    """The command-line window is closed first."""
    editor = shared(version, QUIET, ui=False)
    buf, tty = editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty))
    editor.press(keys)
    if keys == "q:":
        eventually(lambda: editor.lua("return vim.fn.getcmdwintype()") == ":", "the window")
    editor.lua("require('bellboard').jump('api')")
    eventually(lambda: editor.lua(BUFFER) == buf, "the terminal")
    eventually(lambda: mode(editor) == "t", "terminal mode")


@pytest.mark.parametrize("keys", ["v", "<C-v>", "gh"])
def test_a_terminal_in_another_window_is_entered_from_visual_mode(
    shared: Editors, version: str, keys: str
) -> None:
    """And that mode does not go on there."""
    editor = shared(version, QUIET, ui=False)
    buf, tty = editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty))
    editor.command(f"split | buffer {buf} | wincmd p")
    editor.press(keys)
    eventually(lambda: mode(editor) != "n", "the mode")
    editor.lua("require('bellboard')._arrive(..., {}, 'api')", tty)
    eventually(lambda: editor.lua(BUFFER) == buf, "the terminal")
    eventually(lambda: mode(editor) == "t", "terminal mode")


def test_a_window_with_winfixbuf_is_left_alone(shared: Editors) -> None:
    """The terminal gets a window of its own."""
    editor = shared(config=CALM, ui=False)
    buf, tty = editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty))
    editor.command("set winfixbuf")
    editor.lua("require('bellboard').jump('api')")
    assert editor.lua(BUFFER) == buf
    assert editor.lua("return vim.fn.winnr('$')") == 2


#: Whether the program in a terminal runs.
RUNS = "return vim.fn.jobwait({ vim.bo[...].channel }, 0)[1] == -1"


@pytest.mark.parametrize("option", ["nohidden", "bufhidden=wipe", "bufhidden=unload"])
def test_no_agent_ends_because_its_window_is_needed(
    shared: Editors, version: str, option: str
) -> None:
    """A split opens beside the last window of a running terminal that would end."""
    editor = shared(version, {**CALM, "launch": {"layout": "window"}}, ui=False)
    here = editor.lua(BUFFER)
    (one, tty), (two, other) = editor.lua(TERMINAL), editor.lua(TERMINAL)
    for buf in (one, two) if "bufhidden" in option else ():
        editor.lua("local buf, hides = ... vim.bo[buf].bufhidden = hides", buf, option[10:])
    editor.command(f"set {option}" if option == "nohidden" else "set hidden")
    Host(editor).push(blocked("api", tty=tty), blocked("web", tty=other))
    for act, shown in {"jump('api')": one, "jump('web')": two, "back()": here}.items():
        editor.lua(f"require('bellboard').{act}")
        assert editor.lua(BUFFER) == shown
        assert (editor.lua(RUNS, one), editor.lua(RUNS, two)) == (True, True)
    editor.lua("require('bellboard').jump('web')")
    editor.lua("require('bellboard.jump.launch').terminal({ 'sleep', '600' })")
    assert editor.lua(BUFFER) not in (one, two, here)
    assert (editor.lua(RUNS, one), editor.lua(RUNS, two)) == (True, True)


@pytest.mark.parametrize("what", ["nohidden | put ='text'", "setlocal winfixbuf"])
def test_back_shows_the_buffer_even_if_the_window_must_keep_its_own(
    shared: Editors, version: str, what: str
) -> None:
    """The way back leads to a window of its own."""
    editor = shared(version, CALM, ui=False)
    here = editor.lua(BUFFER)
    tty = editor.lua(TERMINAL)[1]
    Host(editor).push(blocked("api", tty=tty))
    editor.lua("require('bellboard').jump('api')")
    editor.command("hide enew")
    editor.command(f"set {what}" if what.startswith("no") else what)
    editor.lua("require('bellboard').back()")
    assert editor.lua(BUFFER) == here
    assert editor.lua("return vim.fn.winnr('$')") == 2


def test_a_jump_from_a_float_lands_in_a_normal_window(shared: Editors, version: str) -> None:
    """The one that was left for the float; the float keeps its buffer."""
    editor = shared(version, CALM, ui=False)
    buf, tty = editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty))
    editor.command("split | wincmd w")
    window = editor.lua("return vim.api.nvim_get_current_win()")
    editor.lua(
        "vim.api.nvim_open_win(vim.api.nvim_create_buf(false, true), true,"
        "{ relative = 'editor', row = 1, col = 1, width = 9, height = 3 })"
    )
    editor.lua("require('bellboard').jump('api')")
    assert editor.lua("return vim.api.nvim_get_current_win()") == window
    assert editor.lua(BUFFER) == buf


@pytest.mark.parametrize("keys", ["<CR>", ":ClaudeSessions next<CR>"], ids=["enter", "next"])
def test_a_board_in_a_float_closes_at_a_jump(shared: Editors, version: str, keys: str) -> None:
    """The board would cover the terminal."""
    editor = shared(version, {**CALM, "board": {"layout": "float"}})
    buf, tty = editor.lua(TERMINAL)
    editor.command(f"split | buffer {buf} | wincmd p")
    Host(editor).push(blocked("api", tty=tty))
    editor.command("ClaudeSessions board")
    editor.shows("Agent sessions")
    editor.press(keys)
    eventually(lambda: editor.lua(BUFFER) == buf, "the terminal")
    editor.hides("Agent sessions")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 2


def test_back_returns_to_where_the_last_jumps_started(shared: Editors) -> None:
    """Not to where one started that is over: the user has gone on from there."""
    editor = shared(config=CALM, ui=False)
    (_, tty), (_, other) = editor.lua(TERMINAL), editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty), blocked("web", tty=other))
    editor.lua("require('bellboard').jump('api')")
    editor.command("edit later")
    later = editor.lua(BUFFER)
    editor.lua("require('bellboard').jump('web') require('bellboard').jump('api')")
    editor.lua("require('bellboard').back()")
    assert editor.lua(BUFFER) == later


def test_back_restores_the_view_and_the_alternate_file(shared: Editors, version: str) -> None:
    """The text does not move, and CTRL-^ still goes to the other file."""
    editor = shared(version, CALM)
    _, tty = editor.lua(TERMINAL)
    editor.command("edit other | edit text | call setline(1, range(1, 300)) | set nomodified")
    editor.command("normal! 100Gzt5j")
    seen = "return { vim.fn.winsaveview(), vim.fn.bufname('#') }"
    before = editor.lua(seen)
    Host(editor).push(blocked("api", tty=tty))
    editor.command("ClaudeSessions next")
    stays(editor, "t")
    editor.command("ClaudeSessions back")
    stays(editor, "n")
    assert editor.lua(seen) == before
    assert before[1] == "other"


def test_back_leaves_a_window_as_the_user_has_left_it(shared: Editors, version: str) -> None:
    """A window may still show the buffer of the jump's start: the user has gone on there."""
    editor = shared(version, CALM)
    buf, tty = editor.lua(TERMINAL)
    editor.command(f"vertical sbuffer {buf} | wincmd p | edit other")
    editor.command("edit text | call setline(1, range(1, 300)) | set nomodified")
    Host(editor).push(blocked("api", tty=tty))
    editor.command("ClaudeSessions next")
    stays(editor, "t")
    editor.command("stopinsert")
    editor.command("wincmd p | edit third | buffer text")
    editor.command("normal! 200Gzt5j")
    seen = "return { vim.fn.winsaveview(), vim.fn.bufname('#') }"
    before = editor.lua(seen)
    editor.command("wincmd p | ClaudeSessions back")
    stays(editor, "n")
    assert editor.lua(seen) == before
    assert before[1] == "third"


def test_back_brings_every_window_back(shared: Editors, version: str) -> None:
    """Windows that got terminals because the jump started in a help or a sidebar are included."""
    editor = shared(version, CALM)
    (one, tty), (two, other) = editor.lua(TERMINAL), editor.lua(TERMINAL)
    Host(editor).push(blocked("api", tty=tty, ago=9), blocked("web", tty=other, ago=8))
    editor.command("edit other | edit text | call setline(1, range(1, 300)) | set nomodified")
    editor.command("normal! 200Gzt5j")
    editor.command("help")
    seen = """return vim.tbl_map(function(win)
      return vim.api.nvim_win_call(win, function()
        local view = vim.fn.winsaveview()
        return { win, vim.fn.bufname(), view.topline, view.lnum, vim.fn.bufname('#') }
      end)
    end, vim.api.nvim_list_wins())"""
    here, before = editor.lua("return vim.api.nvim_get_current_win()"), editor.lua(seen)
    for buf in (one, two):
        editor.command("ClaudeSessions next")
        stays(editor, "t")
        assert editor.lua(BUFFER) == buf
        assert editor.lua("return vim.api.nvim_get_current_win()") != here
    editor.command("ClaudeSessions back")
    stays(editor, "n")
    assert editor.lua("return vim.api.nvim_get_current_win()") == here
    assert editor.lua(seen) == before
    editor.command("ClaudeSessions next")
    stays(editor, "t")
    editor.command("buffer other | ClaudeSessions back")
    assert [place[1] for place in editor.lua(seen)][1:] == ["other"]


def test_a_jump_is_reported_only_after_it_has_landed(nvim: Editors) -> None:
    """Landing marks the session as seen; a failed jump does not."""
    editor = nvim(config=QUIET, ui=False)
    tty = editor.lua(TERMINAL)[1]
    Host(editor).push(session("completed", "here", tty=tty), session("completed", "lost"))
    editor.lua("""
      _G.told = {}
      require('bellboard.process.talk').tell = function(evidence)
        if evidence['goto'] then table.insert(told, evidence['goto'].session_id) end
      end""")
    editor.lua("vim.notify = function() end require('bellboard').jump('lost')")
    editor.lua("require('bellboard').jump('here')")
    assert editor.lua("return told") == ["here"]


def test_next_prefers_what_it_has_not_led_to(shared: Editors) -> None:
    """The most urgent, which waits longest; also if it came meanwhile, or asks again."""
    editor = shared(config=QUIET, ui=False)
    terminals = {name: editor.lua(TERMINAL) for name in ("a", "b", "c", "new")}
    host = Host(editor)

    now = time.time()
    waits = {"a": 400, "b": 300, "c": 200, "new": 500}

    def push(*names: str, **again: int) -> None:
        waits.update(again)
        host.push(
            *(
                session(
                    "blocked" if name == "new" else "completed",
                    name,
                    tty=terminals[name][1],
                    since=now - waits[name],
                )
                for name in names
            )
        )

    def goes(verb: str = "next") -> str:
        editor.command(f"ClaudeSessions {verb}")
        here = editor.lua(BUFFER)
        return next(name for name, (buf, _) in terminals.items() if buf == here)

    push("a", "b", "c")
    assert [goes(), goes()] == ["a", "b"]
    push("a", "b", "c", "new")
    assert [goes(), goes(), goes()] == ["new", "c", "new"]
    push("a", "b", "c", "new", a=250)
    assert [goes(), goes(), goes("prev")] == ["a", "c", "a"]


def test_back_opens_the_board_again(shared: Editors, version: str) -> None:
    """A float closes at a jump; a split does not, and is gone back to."""
    editor = shared(version, {**CALM, "board": {"layout": "float"}})
    tty = editor.lua(TERMINAL)[1]
    Host(editor).push(blocked("api", tty=tty), blocked("web", ago=60))
    here = "return vim.bo.filetype .. vim.fn.line('.')"
    for keys in ("<CR>", ":ClaudeSessions next<CR>"):
        editor.command("ClaudeSessions board")
        editor.shows("Agent sessions")
        before = editor.lua(here)
        editor.press(keys)
        stays(editor, "t")
        editor.hides("Agent sessions")
        editor.command("ClaudeSessions back")
        editor.shows("Agent sessions")
        assert editor.lua(here) == before
        editor.press("q")
        editor.hides("Agent sessions")
    editor.lua("require('bellboard').setup({ board = { layout = 'split' } })")
    editor.command("ClaudeSessions board")
    editor.press("<CR>")
    stays(editor, "t")
    editor.command("ClaudeSessions back")
    assert editor.lua(here) == before


def test_parked_sessions_are_skipped(shared: Editors) -> None:
    editor = shared(config=QUIET, columns=100)
    Host(editor).push(blocked("api", markers=["parked"]))
    editor.command("ClaudeSessions next")
    editor.shows("no session needs you")


def test_the_maps_take_a_count(shared: Editors) -> None:
    """2<Plug>(bellboard-next) goes to the second one."""
    editor = shared(config=QUIET, ui=False)
    terminals = [editor.lua(TERMINAL) for _ in range(3)]
    Host(editor).push(
        *(blocked(f"p{n}", tty=tty, ago=300 - n) for n, (_, tty) in enumerate(terminals))
    )
    editor.lua("vim.keymap.set('n', 'gn', '<Plug>(bellboard-next)')")
    editor.press("2gn")
    eventually(lambda: editor.lua(BUFFER) == terminals[1][0], "the second terminal")


def test_next_goes_among_those_of_an_agent(shared: Editors) -> None:
    """Any filter of the board works; completion offers the agents."""
    editor = shared(config=QUIET, ui=False)
    terminals = [editor.lua(TERMINAL) for _ in range(3)]
    agents = ("claude", "codex", "codex")
    told = zip(agents, terminals, strict=True)
    Host(editor).push(
        *(blocked(f"p{n}", tty=tty, ago=300 - n, agent=a) for n, (a, (_, tty)) in enumerate(told))
    )
    for command, place in {"next agent:codex": 1, "2next agent:codex": 2, "next p0": 0}.items():
        count, verb = ("2", command[1:]) if command[0] == "2" else ("", command)
        editor.lua("require('bellboard').back()")
        editor.lua("pcall(vim.api.nvim_buf_set_lines, 0, 0, -1, false, { 'one', 'two' })")
        editor.command(f"{count}ClaudeSessions {verb}")
        eventually(lambda place=place: editor.lua(BUFFER) == terminals[place][0], command)
    editor.command("ClaudeSessions next agent:amp")
    assert "no session that matches agent:amp needs you" in editor.messages()
    offered = editor.lua("return vim.fn.getcompletion('ClaudeSessions next agent:co', 'cmdline')")
    assert offered == ["agent:codex"]


@pytest.mark.parametrize("socket", ["/tmp/tmux-1/default", "/tmp/a,b/default"])
def test_the_socket_of_our_tmux_may_have_a_comma(shared: Editors, socket: str) -> None:
    """Only the process and the session after the socket have none."""
    editor = shared(config=QUIET, ui=False)
    tty = editor.lua(TERMINAL)[1]
    editor.lua("vim.env.TMUX, vim.env.TMUX_PANE = ..., '%1'", f"{socket},123,0")
    there = editor.lua("return require('bellboard')._arrive(..., {}, 'api')", tty)
    assert there == {"shown": True, "tmux": socket, "pane": "%1"}
