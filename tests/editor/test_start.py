"""A host that is started, stopped and sent messages at any moment: no error, no orphan."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from bellboard.storage.spool import Spool
from rig import editor as editors
from rig.editor import Editor
from rig.fixtures import VERSIONS, Editors
from rig.home import Home
from rig.host.hosting import put
from rig.tmux import Server
from rig.waiting import eventually

CONFIG = {"python": sys.executable}
STATUS = "return require('bellboard.process.talk').status()"
SHOWN = "return vim.tbl_map(function(s) return s.session_id end, require('bellboard').sessions())"
BAD = ("Traceback", "Press ENTER", "Error", "E5108", "error caught", "Async request")
STEPS = int(os.environ.get("BELLBOARD_STEPS", "40"))  # of the random walk
#: Calls that affect the host, and whether one should run afterwards.
ACTS = {
    "require('bellboard').start()": True,
    "require('bellboard').stop()": False,
    "require('bellboard').restart()": True,
    "require('bellboard.process.talk').focused()": None,
    "vim.api.nvim_exec_autocmds('FocusGained', {})": None,
    "require('bellboard.process.talk').notify('mode', 'all')": None,
    "require('bellboard.process.talk').notify('mode', { 1 })": None,
    "require('bellboard.process.talk').notify('snapshot')": None,
    "require('bellboard.process.talk').notify('focus', 'x')": None,
    "require('bellboard.process.talk').notify('evidence', { view = false, viewer = 'x' })": None,
    "require('bellboard.process.talk').notify('evidence', 'x')": None,
    "require('bellboard.process.talk').notify('start', { 1 })": None,
    "require('bellboard.process.talk').ask('stop', { session_id = 's' }, _G.replied)": None,
    "require('bellboard.process.talk').ask('nothing', { 1 }, _G.replied)": None,
}
REPLIED = """
_G.replies = 0
_G.replied = function(reply)
  assert(reply.ok == false and reply.why)
  _G.replies = _G.replies + 1
end
"""


def hosts_of(home: Home) -> list[int]:
    """Return the host processes of this home's Neovims."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            where = (folder / "environ").read_bytes()
        except OSError:
            continue
        is_host = any(word.endswith(b"/bellboard/__main__.py") for word in words)
        if is_host and f"BELLBOARD_HOME={home.bellboard}\0".encode() in where:
            found.append(int(folder.name))
    return found


def is_quiet(editor: Editor) -> None:
    """Return whether there is no prompt and no error on the screen."""
    said = editor.messages()
    assert not [word for word in BAD if word in said], said
    assert not editor.nvim.request("nvim_get_mode")["blocking"]


@pytest.mark.parametrize("seed", range(3))
def test_messages_at_any_moment_are_handled(
    nvim: Editors, home: Home, version: str, seed: int
) -> None:
    """No error message, every question answered, one host or none, and it is healthy."""
    chance = random.Random(seed)
    editor = nvim(version, {**CONFIG, "auto_start": False}, ui=False)
    editor.lua(REPLIED)
    wanted, asked = False, 0
    for _ in range(STEPS):
        act = chance.choice(list(ACTS))
        editor.lua(act)
        wanted = wanted if ACTS[act] is None else bool(ACTS[act])
        asked += "ask(" in act
        due = time.monotonic() + chance.choice((0, 0, 0.005, 0.02, 0.05, 0.1, 0.3))
        eventually(lambda due=due: time.monotonic() >= due)
    eventually(lambda: editor.lua("return _G.replies") == asked, "an answer to every question")
    if wanted:
        eventually(lambda: len(hosts_of(home)) == 1 and editor.lua(STATUS)["running"], "one host")
        put_when_up(home)
        eventually(lambda: editor.lua(SHOWN) == ["s"], "a session")
    else:
        eventually(lambda: not hosts_of(home) and not editor.lua(STATUS)["running"], "no host")
    is_quiet(editor)
    assert "gave_up" not in editor.lua(STATUS)


def put_when_up(home: Home) -> None:
    spool = Spool(home.bellboard)
    eventually(lambda: any((home.bellboard / "hosts").glob("*")), "a host")
    put(spool, "UserPromptSubmit")


@pytest.mark.parametrize("then", ["stop", "restart", "restart stop", "stop start", "restart start"])
def test_requests_right_after_the_start_are_handled(
    nvim: Editors, home: Home, version: str, then: str
) -> None:
    """Before the Python side has its event loop: the last request counts."""
    editor = nvim(version, {**CONFIG, "auto_start": False}, ui=False)
    for verb in ["start", "stop", "start", *then.split()]:
        editor.lua(f"require('bellboard').{verb}()")
    editor.lua("require('bellboard.process.talk').focused()")
    count = 0 if then.endswith("stop") else 1
    eventually(lambda: len(hosts_of(home)) == count, f"{count} hosts")
    if count:
        put_when_up(home)
        eventually(lambda: editor.lua(SHOWN) == ["s"], "a session")
    assert editor.messages() == ""


@pytest.mark.tmux
def test_starting_in_tmux_with_focus_events_shows_nothing(
    home: Home, tmux: Server, version: str
) -> None:
    """With the options that our help recommends, only an empty buffer is shown."""
    other = tmux.open(["sleep", "600"])
    tmux.run("set-option", "-g", "focus-events", "on")
    tmux.attach("test")
    for n in range(3):
        argv = editors.command(version, home, f"tmux{n}", config=CONFIG)
        started = tmux.open(argv, env={"TERM": "tmux-256color"})

        def is_up(pane: str = started.id) -> bool:
            for where in (other.id, pane):
                tmux.run("select-window", "-t", where)
            return any((home.bellboard / "hosts").glob("*"))

        eventually(is_up, "its host")
        started.type(":echo 'all' 'well'\r")
        text = started.shows("all well|Press ENTER")
        assert not [word for word in BAD if word in text], text
        started.close()
        eventually(lambda: not hosts_of(home), "its end")
        for left in (home.bellboard / "hosts").iterdir():
            left.unlink()


def test_a_restart_reads_the_options_again(nvim: Editors, home: Home) -> None:
    """`vim.g.bellboard` as it is now, not as it was at the first start."""
    editor = nvim(config=CONFIG, ui=False)
    mode = "return vim.tbl_get(require('bellboard').health(), 'notices', 'mode')"
    eventually(lambda: editor.lua(mode) == "normal", "a host")
    editor.lua("vim.g.bellboard = vim.tbl_extend('force', vim.g.bellboard, ...)", quiet())
    editor.command("ClaudeSessions process restart")
    eventually(lambda: editor.lua(mode) == "quiet", "its mode")
    assert editor.messages() == ""


def quiet() -> dict[str, object]:
    return {"notices": {"mode": "quiet"}}


def test_options_that_cannot_be_sent_are_left_out(nvim: Editors, home: Home) -> None:
    """A function among them kept all options from the host, which then never worked."""
    lua = (
        "vim.g.bellboard = nil require('bellboard').setup({ python = '%s', host = { x = print } })"
    )
    editor = nvim(config={}, lua="", ui=False)
    editor.lua("require('bellboard').stop()")
    editor.lua(lua % sys.executable)
    editor.lua("require('bellboard').restart()")
    eventually(lambda: hosts_of(home), "a host")
    put_when_up(home)
    eventually(lambda: editor.lua(SHOWN) == ["s"], "a session")


def test_a_suspended_host_can_be_stopped(nvim: Editors, home: Home) -> None:
    """And the next one starts."""
    editor = nvim(VERSIONS[-1], CONFIG, ui=False)
    (pid,) = eventually(
        lambda: found if len(found := hosts_of(home)) == 1 else [],
        "a host, and nothing that it is just starting",
    )
    put_when_up(home)
    eventually(lambda: editor.lua(SHOWN) == ["s"], "a session")
    os.kill(pid, signal.SIGSTOP)
    editor.lua("require('bellboard').restart()")
    eventually(lambda: hosts_of(home) and pid not in hosts_of(home), "another host")
    eventually(lambda: not editor.lua("return require('bellboard').stale()"), "its news")
