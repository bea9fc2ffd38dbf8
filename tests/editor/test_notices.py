"""Notifications on display: the float in one of several Neovims, vim.notify, bell, callbacks."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from bellboard.core.notices import Policy, policy_of
from bellboard.storage.spool import Spool
from editor.test_live import STATUSLINE, hosted
from rig.editor import Editor, command
from rig.fixtures import Editors
from rig.home import Home
from rig.host.hosting import begins, opened
from rig.host.ringing import Desktop
from rig.host.sample import QUIET, TERMINAL, Host, blocked, session
from rig.screen import Display
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually

Open = Callable[..., Editor]
LADDER = {"notify": False, "desktop": 0, "command": False}
NOTICES: dict[str, Any] = {"desktop": "notify-send", "blocked": LADDER}
#: A vim.notify that records its arguments.
KEEP = """
_G.notified = {}
vim.notify = function(text, level, opts)
  opts = opts or {}
  table.insert(notified, { text, level, opts.id or '', opts.key or '' })
end
"""


@pytest.fixture
def open_(nvim: Editors) -> Open:
    """Start a Neovim with its host, a statusline and these notice settings."""

    def one(version: str = "0.12", lua: str = "", **config: Any) -> Editor:
        return hosted(nvim(version, {"notices": NOTICES, **config}, lua=STATUSLINE + lua))

    return one


def becomes(spool: Spool, sid: str, status: str) -> None:
    spool.write({"t": time.time(), "set": {"session_id": sid, "status": status}})


def asks(spool: Spool, *sids: str) -> None:
    for sid in sids:
        begins(spool, sid)
        becomes(spool, sid, "blocked")


def viewers(spool: Spool, sid: str) -> list[str]:
    """Return the viewers of a session."""
    with opened(spool.home) as shared:
        session = shared.board.sessions.get(sid)
        return sorted(session.viewers) if session else []


# The float and the desktop


def test_of_three_neovims_one_shows_the_float_and_one_notifies(
    home: Home, open_: Open, spool: Spool, version: str
) -> None:
    """All show it in the statusline; the float follows the focus and outlives its Neovim."""
    desktop = Desktop(home)
    editors = [open_(version) for _ in range(3)]
    asks(spool, "api")
    for editor in editors:
        editor.shows("!1 api: set by hand")
    editors[2].shows("1 needs you")
    desktop.shows("api needs you")
    for editor in editors[:2]:
        editor.hides("needs you")
    front = editors[2].lua("return vim.v.servername")
    why = editors[0].lua("return require('bellboard.float').status()")
    assert why == f"not shown: another Neovim had the focus last: {front}"
    editors[0].command("doautocmd FocusGained")
    editors[0].shows("1 needs you")
    editors[2].hides("needs you")
    editors[0].close()
    editors[2].shows("1 needs you")
    becomes(spool, "api", "working")
    for editor in editors[1:]:
        editor.shows("*1")
        editor.hides("needs you")
    asks(spool, "web")
    desktop.shows("api needs you", "web needs you")


def test_a_session_in_view_is_not_in_the_float(open_: Open, spool: Spool, version: str) -> None:
    """In view: the terminal in the current window while Neovim has focus."""
    editor = open_(version)
    _, tty = editor.lua(TERMINAL)
    started = {"hook_event_name": "UserPromptSubmit", "session_id": "api", "cwd": "/srv/api"}
    spool.write({"t": time.time(), "hook": {**started, "prompt": "go"}, "origin": {"tty": tty}})
    becomes(spool, "api", "blocked")
    editor.shows("1 needs you")
    editor.lua("require('bellboard').jump('api')")
    editor.hides("needs you")
    viewer = f"nvim {editor.lua('return vim.v.servername')}"
    eventually(lambda: viewers(spool, "api") == [viewer], "a viewer")
    editor.command("doautocmd FocusLost")
    eventually(lambda: viewers(spool, "api") == [], "no viewer")
    editor.command("doautocmd FocusGained")
    eventually(lambda: len(viewers(spool, "api")) == 1, "a viewer again")
    editor.lua("require('bellboard').back()")
    editor.shows("1 needs you")
    eventually(lambda: viewers(spool, "api") == [], "no viewer")


def test_a_neovim_without_a_screen_looks_at_nothing(
    nvim: Editors, spool: Spool, version: str
) -> None:
    """The last user interface was detached or closed, while Neovim goes on."""
    editor = hosted(nvim(version, {"notices": NOTICES}, ui=False))
    _, tty = editor.lua(TERMINAL)
    started = {"hook_event_name": "UserPromptSubmit", "session_id": "api", "cwd": "/srv/api"}
    spool.write({"t": time.time(), "hook": {**started, "prompt": "go"}, "origin": {"tty": tty}})
    eventually(lambda: editor.lua("return require('bellboard').session('api') ~= nil"), "it")
    editor.lua("require('bellboard').jump('api')")
    for _ in range(2):
        with closing(Display(editor.socket, 80, 24)):
            eventually(lambda: len(viewers(spool, "api")) == 1, "a viewer")
        eventually(lambda: viewers(spool, "api") == [], "no viewer")


def test_each_neovim_reports_its_own_view(open_: Open, spool: Spool) -> None:
    """One Neovim looks away while the other still looks; a closed one no longer looks."""
    editors = [open_() for _ in range(2)]
    for n, editor in enumerate(editors):
        _, tty = editor.lua(TERMINAL)
        hook = {"hook_event_name": "UserPromptSubmit", "session_id": f"s{n}", "cwd": f"/srv/s{n}"}
        spool.write({"t": time.time(), "hook": {**hook, "prompt": "go"}, "origin": {"tty": tty}})
        editor.shows(f"*{n + 1}")
        editor.lua("require('bellboard').jump(...)", f"s{n}")
        eventually(lambda n=n: len(viewers(spool, f"s{n}")) == 1, "a view")
    editors[0].lua("require('bellboard').back()")
    eventually(lambda: viewers(spool, "s0") == [], "it looks away")
    assert len(viewers(spool, "s1")) == 1
    editors[1].close()
    eventually(lambda: viewers(spool, "s1") == [], "a closed one looks at nothing")


# What people say


def test_snooze_park_and_label(open_: Open, spool: Spool, version: str) -> None:
    """By command, for the named session or for all in the float."""
    editor = open_(version)
    asks(spool, "api", "web")
    editor.shows("2 need you")
    editor.command("ClaudeSessions snooze 5 api")
    editor.shows("1 needs you")
    editor.command("ClaudeSessions snooze 0 api")
    editor.shows("2 need you")
    editor.command("ClaudeSessions park web")
    editor.shows("1 needs you")
    editor.command("ClaudeSessions park web")
    editor.shows("2 need you")
    editor.command("ClaudeSessions label IMPORTANT web")
    editor.shows("[IMPORTANT]")
    editor.command("ClaudeSessions snooze")
    editor.hides("need you")
    editor.hides("needs you")  # there may be one left for a moment
    assert editor.lua("return require('bellboard').calling()") == []


def test_the_mode_is_shared_by_all_neovims(open_: Open, spool: Spool) -> None:
    one, two = open_(), open_()
    one.command("ClaudeSessions mode quiet")
    for editor in (one, two):
        eventually(lambda e=editor: e.lua("return require('bellboard').mode()") == "quiet")
    two.lua("require('bellboard').mode('all')")
    eventually(lambda: one.lua("return require('bellboard').mode()") == "all")


def test_arguments_are_completed(nvim: Editors) -> None:
    """Labels after label, sessions otherwise."""
    editor = nvim(config=QUIET, ui=False)
    Host(editor).push(blocked("api"), blocked("web"))
    complete = "return vim.fn.getcompletion('ClaudeSessions ' .. ..., 'cmdline')"
    assert editor.lua(complete, "label ") == ["HEAVY", "IMPORTANT", "ONEOFF"]
    assert editor.lua(complete, "label HEAVY ") == ["api", "web"]
    assert editor.lua(complete, "snooze 15 a") == ["api"]
    assert editor.lua(complete, "park w") == ["web"]
    assert editor.lua(complete, "mode q") == ["quiet"]


def test_a_label_can_pin_its_session(nvim: Editors) -> None:
    """The session comes before others of its status, after more urgent ones."""
    editor = nvim(config=QUIET, ui=False)
    pinned = session("working", "pinned", ago=5, label="HEAVY")
    Host(editor).push(session("working", ago=500), pinned, blocked("api"))
    ids = "return vim.tbl_map(function(s) return s.session_id end, require('bellboard').sessions())"
    assert editor.lua(ids) == ["api", "pinned", "working"]


def test_past_notifications_can_be_listed(home: Home, open_: Open, spool: Spool) -> None:
    """When, where, and their text; <CR> goes to the session, q closes the window."""
    desktop = Desktop(home)
    editor = open_()
    _, tty = editor.lua(TERMINAL)
    started = {"hook_event_name": "UserPromptSubmit", "session_id": "api", "cwd": "/srv/api"}
    spool.write({"t": time.time(), "hook": {**started, "prompt": "go"}, "origin": {"tty": tty}})
    becomes(spool, "api", "blocked")
    desktop.shows("api needs you")
    editor.command("ClaudeSessions notices")
    editor.shows("desktop  api needs you: permission: set by hand")
    editor.press("q")
    editor.hides("desktop  api")
    editor.command("ClaudeSessions notices")
    editor.shows("desktop  api")
    editor.press("<CR>")
    eventually(lambda: editor.lua("return vim.bo.buftype") == "terminal", "the session")
    editor.hides("desktop  api")


# vim.notify and the bell


def line(channel: str = "notify", sid: str = "api", **more: Any) -> dict[str, Any]:
    """Return a notice as the host sends it to Lua."""
    told = {"channel": channel, "session_id": sid, "status": "blocked"}
    return {**told, "title": f"{sid} needs you", "text": "Bash: rm -rf build", **more}


def test_only_the_neovim_in_front_shows_a_notification(
    nvim: Editors, open_: Open, spool: Spool, version: str
) -> None:
    """The other stays silent, even if it gets focus later."""
    ladder = {"notify": 0, "desktop": False, "command": False}
    one, two = (open_(version, lua=KEEP, notices={"blocked": ladder}) for _ in range(2))
    asks(spool, "first")
    two.shows("1 needs you")  # so both know who is in front
    one.hides("needs you")
    asks(spool, "api")
    of = "return vim.tbl_filter(function(n) return n[3] == 'bellboard.%s' end, notified)"
    [notice] = eventually(lambda: two.lua(of % "api"), "the notice")
    assert notice[:2] == ["api needs you: permission: set by hand", 3]
    one.command("doautocmd FocusGained")
    one.shows("2 need you")
    asks(spool, "web")
    [notice] = eventually(lambda: one.lua(of % "web"), "the next notice")
    assert "web needs you" in notice[0]
    assert (one.lua(of % "api"), two.lua(of % "web")) == ([], [])


@pytest.mark.tmux
def test_a_suspended_neovim_leaves_notifications_to_another(
    home: Home, open_: Open, tmux: Server, spool: Spool, version: str
) -> None:
    """After CTRL-Z it is not in front; after `fg` it is again."""
    ladder = {"notify": 0, "desktop": False, "command": False}
    notices = {"blocked": ladder}
    one = open_(version, lua=KEEP, notices=notices)
    argv = command(version, home, "two", config={"notices": notices})
    pane = tmux.open(["bash", "--norc", "-i"], env=home.env)
    pane.type(shlex.join(argv))
    pane.press("Enter")
    asks(spool, "first")
    pane.shows("1 needs you")
    one.hides("needs you")
    pane.press("C-z")
    one.shows("1 needs you")
    pane.press("f", "g", "Enter")
    one.hides("needs you")
    pane.shows("1 needs you")


def test_a_notification_replaces_the_previous_one_of_its_session(nvim: Editors) -> None:
    """By its id in snacks.nvim, by its key in fidget.nvim."""
    editor = nvim(config=QUIET, ui=False)
    editor.lua(KEEP)
    host = Host(editor)
    for sid in ("api", "web", "api"):
        host.push(blocked("api"), notices=[line(sid=sid)])
    ids = ["bellboard.api", "bellboard.web", "bellboard.api"]
    assert [n[2:] for n in editor.lua("return notified")] == [[each, each] for each in ids]


def test_a_vim_notify_that_fails_stops_no_other_notification(nvim: Editors, version: str) -> None:
    """Another plugin owns that function."""
    editor = nvim(version, QUIET, ui=False)
    editor.lua("""
      vim.notify = function() error('boom') end
      _G.bells = 0
      require('bellboard.outer_terminal').send = function() bells = bells + 1 end
    """)
    Host(editor).push(blocked("api"), notices=[line(), {**line(), "channel": "bell"}])
    assert editor.lua("return bells") == 1


@pytest.mark.tmux
def test_the_bell_rings_in_the_terminal(home: Home, tmux: Server, version: str) -> None:
    """tmux marks the window, as for every bell."""
    argv = command(version, home, "bell", config={**QUIET})
    other = tmux.open(["sleep", "60"])
    pane = tmux.open(argv, env=home.env)
    address = home.root / "bell.sock"
    eventually(address.exists, "Neovim")
    pane.shows("NVIM")
    notice = json.dumps(line("bell"))
    code = f"luaeval('require(\"bellboard.notify\").show(vim.json.decode(_A))', {notice!r})"
    ask = [argv[0], "--server", str(address), "--remote-expr", code]
    subprocess.run(ask, env=home.env, check=True, capture_output=True, timeout=PATIENCE)
    eventually(lambda: pane.ask("#{window_bell_flag}") == "1", "a bell")
    assert other.ask("#{window_bell_flag}") == "0"


# Callbacks


def test_a_callback_command_runs_once_per_machine(home: Home, open_: Open, spool: Spool) -> None:
    """With two Neovims that have it; it gets from, to, session, project."""
    desktop = Desktop(home)
    on = {"completed": [str(desktop.program), "a word"]}
    quiet = {"mode": "quiet"}
    editors = [open_(on=on, notices=quiet) for _ in range(2)]
    begins(spool, "api")
    for editor in editors:
        editor.shows("*1")
    becomes(spool, "api", "completed")
    for editor in editors:
        editor.shows("+1")
    eventually(lambda: len(desktop.notices) == 1, "the command")
    begins(spool, "web")
    becomes(spool, "web", "completed")
    eventually(lambda: len(desktop.notices) == 2, "the command for the next")
    assert sorted(desktop.notices) == [
        ["a word", "working", "completed", "api", "api"],
        ["a word", "working", "completed", "web", "web"],
    ]


# Two halves of one policy


#: What a user hears of, in a file and in a list.
HEARD = """
_G.heard = {}
local function options(gap)
  local function hear(t) table.insert(heard, t.to) end
  return { notices = { min_interval = gap }, on_transition = hear }
end
function _G.change(gap) require('bellboard').setup(options(gap)) end
change(10)
"""


@pytest.mark.parametrize("how", ["alone", "with another", "killed"])
def test_a_transition_during_a_restart_is_heard_once(
    nvim: Editors, open_: Open, spool: Spool, how: str
) -> None:
    """By `setup()` at run time, which restarts the background process, or after a crash."""
    editor = open_(lua=HEARD)
    if how == "with another":
        open_()
    begins(spool, "api")
    eventually(lambda: editor.lua("return heard") == ["working"], "the first")
    told = ["working"]
    for n in range(4):  # five crashes in a row are the last
        told.append("blocked" if n % 2 == 0 else "completed")
        if how == "killed":
            channel = editor.lua("return require('bellboard.process.talk').status().channel")
            os.kill(editor.lua("return vim.fn.jobpid(...)", channel), signal.SIGKILL)
        else:
            editor.lua("change(...)", n + 1)
        time.sleep(0.2 * n)  # at another moment of it each time
        becomes(spool, "api", told[-1])
        eventually(lambda: editor.lua("return heard") == told, f"{told}")
    editor.command("Bellboard process restart")
    begins(spool, "web")
    eventually(lambda: editor.lua("return heard") == [*told, "working"], "the last one")


def test_lua_and_python_have_the_same_defaults(nvim: Editors) -> None:
    """A host without an editor does what the help says."""
    editor = nvim(config=QUIET, ui=False)
    assert policy_of(editor.lua("return require('bellboard.config').get().notices")) == Policy()


HOSTILE = "\x1b]0;owned\x07%{system('id')} #(id) $(id) `id` <b>\u202e%#Error# \r\n--now"


def test_hostile_text_stays_text(nvim: Editors, version: str) -> None:
    """In the float, the statusline and notifications: no escape sequence, item or line."""
    editor = nvim(version, QUIET, columns=120)
    editor.lua(KEEP)
    hostile = blocked(HOSTILE, HOSTILE, branch=HOSTILE, label=HOSTILE, tool=HOSTILE, id="api")
    Host(editor).push(hostile, notices=[line(title=HOSTILE, text=HOSTILE)])
    editor.shows("1 needs you")
    picture = editor.shows("%{system('id')}").text
    assert not [c for c in picture if c in "\x1b\x07\u202e"]
    (told,) = editor.lua("return notified")
    assert not [c for c in told[0] if c < " " or c == "\u202e"]
    shown = editor.nvim.api.eval_statusline(editor.lua("return vim.o.statusline"), {})["str"]
    assert "%{syst" in shown
