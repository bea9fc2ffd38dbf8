"""End to end: a real hook, the spool, a real host, and what a real Neovim shows."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from bellboard.storage.spool import Spool
from rig import ROOT
from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.host.hosting import put
from rig.waiting import PATIENCE, eventually

STATUSLINE = (
    "vim.o.laststatus, vim.o.ruler = 3, false "
    "vim.o.statusline = \"%=%{%v:lua.require'bellboard'.statusline()%} \""
)
JOB = "return vim.fn.jobpid(require('bellboard.process.talk').status().channel)"


class Agent:
    """A process that runs the hook as the CLI does, without a terminal."""

    def __init__(self, home: Home) -> None:
        self.home = home
        sleep = shutil.which("sleep")
        self.process = subprocess.Popen(
            ["claude", "600"], executable=sleep, stdin=subprocess.DEVNULL
        )
        self.pid = self.process.pid

    def emit(self, event: str, **fields: Any) -> None:
        payload = {"session_id": "live", "cwd": str(self.home.project), "hook_event_name": event}
        attended = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
        subprocess.run(
            [str(ROOT / "hooks/emit"), event, str(self.pid)],
            input=json.dumps({**payload, **fields}).encode(),
            env={**self.home.env, **attended},
            check=True,
        )


@pytest.fixture
def agent(home: Home) -> Any:
    made = Agent(home)
    yield made
    made.process.kill()
    made.process.wait()


def hosted(editor: Editor) -> Editor:
    """Wait until the host has made its spool and sent a message."""
    new = editor.home.bellboard / "spool" / "new"
    eventually(lambda: new.is_dir() and editor.lua("return require('bellboard').health().version"))
    return editor


def test_a_permission_is_on_the_screen_of_every_neovim(
    nvim: Editors, agent: Agent, version: str
) -> None:
    """Two Neovims show it, the newer one in a float; both show the answer."""
    editors = [hosted(nvim(version, {}, lua=STATUSLINE)) for _ in range(2)]
    agent.emit("UserPromptSubmit", prompt="build it", prompt_id="1")
    bash = {"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}, "prompt_id": "1"}
    agent.emit("PreToolUse", **bash, tool_use_id="t1")
    for editor in editors:
        editor.shows("*1")
    agent.emit("PermissionRequest", **bash)
    for editor in editors:
        editor.shows("!1 project: rm -rf build")
    editors[1].shows("1 needs you")
    editors[0].hides("needs you")
    agent.emit("PostToolUse", **bash, tool_use_id="t1", tool_response={})
    agent.emit("Stop", prompt_id="1", last_assistant_message="built")
    for editor in editors:
        editor.shows("+1")
        editor.hides("needs you")


@pytest.mark.parametrize("by", ["a signal", "a cut file"])
def test_events_during_a_crash_are_caught_up_with(
    nvim: Editors, agent: Agent, home: Home, by: str
) -> None:
    """The host is killed: hook events from that time are processed without notifications.

    SQLite maps board.db-shm, so whoever cuts that file kills all that have it open.
    """
    editor = hosted(nvim(config={}, lua=STATUSLINE))
    agent.emit("UserPromptSubmit", prompt="go", prompt_id="1")
    editor.shows("*1")
    if by == "a signal":
        os.kill(editor.lua(JOB), signal.SIGKILL)
    else:
        os.truncate(home.bellboard / "board.db-shm", 0)
    agent.emit("Stop", prompt_id="1", last_assistant_message="done")
    editor.shows("+1")
    assert editor.messages() == ""


def test_little_is_kept_for_a_suspended_neovim(nvim: Editors, home: Home) -> None:
    """After days, Neovim gets the board as it is then; callbacks run meanwhile."""
    ran = home.root / "ran"
    editor = hosted(nvim(config={"on": {"completed": ["touch", str(ran)]}}, ui=False))
    pid, spool = editor.lua(JOB), Spool(home.bellboard)
    host = psutil.Process(pid)
    before = host.memory_info().rss
    os.kill(editor.pid, signal.SIGSTOP)
    try:
        for n in range(200):
            for session in range(100):
                put(spool, "UserPromptSubmit", f"s{session}", prompt=f"{n} " * 60)
            eventually(lambda: not list(spool.new.iterdir()), "an empty spool")
            if "Neovim has stopped reading" in spool.hosts.notes_of(pid).get("publish", ""):
                break
        else:
            pytest.fail("it never stops sending")
        put(spool, "Stop", "s1")
        eventually(ran.exists, "the callback")
        assert host.memory_info().rss < before + (16 << 20)
    finally:
        os.kill(editor.pid, signal.SIGCONT)
    status = "return (require('bellboard').session('s1') or {}).status"
    eventually(lambda: editor.lua(status) == "completed", "the end")
    eventually(lambda: "publish" not in spool.hosts.notes_of(pid), "no note")


def test_the_host_ends_with_its_neovim(nvim: Editors, version: str) -> None:
    """Whether by :qa, which leaves no job behind, or by kill -9."""
    editor = hosted(nvim(version, {}, ui=False))
    host = Path(f"/proc/{editor.lua(JOB)}")
    editor.nvim.command("qall!", async_=True)
    editor.process.wait(PATIENCE)
    eventually(lambda: not host.exists(), "the end of the host")
    editor = hosted(nvim(version, {}, ui=False))
    host = Path(f"/proc/{editor.lua(JOB)}")
    editor.process.kill()
    editor.process.wait(PATIENCE)
    eventually(lambda: not host.exists(), "the end of the host")
