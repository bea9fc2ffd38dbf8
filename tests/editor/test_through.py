"""Programs behind an ssh in a terminal of Neovim: on the board with nothing installed there."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Iterator

import pytest

from bellboard.system import processes
from editor.test_live import STATUSLINE, hosted
from editor.test_outward import asks, nvim_argv
from editor.test_own_reports import becomes, msg, rows
from rig.editor import Editor
from rig.fixtures import Editors
from rig.machines.ssh import PROGRAM, Machine, set_followed
from rig.shell import Shell
from rig.waiting import eventually

PROMPT = r"\033]133;A\007"


@pytest.fixture
def dev() -> Iterator[Machine]:
    machine = Machine("dev")
    try:
        yield machine
    finally:
        machine.close()


class Login:
    """A shell on another machine, in a hidden terminal of Neovim."""

    def __init__(self, editor: Editor, argv: list[str]) -> None:
        self.editor = editor
        self.buffer, self.channel, self.pid = editor.lua(
            """
            vim.cmd.file('here')
            vim.cmd.terminal((...))
            local buf = vim.api.nvim_get_current_buf()
            vim.cmd.buffer('here')
            local channel = vim.bo[buf].channel
            return { buf, channel, vim.fn.jobpid(channel) }""",
            " ".join(argv),
        )
        self.types("stty -echo; PS1=; echo re''ady")
        eventually(lambda: "ready" in self.shown, "a shell there")

    @property
    def shown(self) -> str:
        lines = self.editor.lua("return vim.api.nvim_buf_get_lines(..., 0, -1, false)", self.buffer)
        return "\n".join(lines)

    def types(self, text: str) -> None:
        self.editor.lua("vim.fn.chansend(...)", self.channel, f"{text}\n")

    def reports(self, body: str) -> None:
        self.types(rf"printf '\033]7501;{body}\007'")

    @property
    def ssh(self) -> int:
        """Return the process of ssh."""
        there = (self.pid, *processes.descendants(self.pid))
        return next(pid for pid in there if processes.argv_of(pid)[0].endswith("ssh"))


def login(editor: Editor, machine: Machine) -> Login:
    return Login(editor, [machine.ssh[0], "-tt", *machine.ssh[1:], "sh"])


def says(there: Shell, session: str, event: str, **payload: str) -> None:
    """Let the hooks of an agent over there report something now."""
    there.emitted(there.now - time.time(), session, event, **payload)


def named(editor: Editor) -> dict[str, str]:
    """Return the status of each row, by its project and title."""
    return {f"{x['words']['project']} {x['words']['title']}": x["status"] for x in rows(editor)}


def test_an_agent_over_ssh_is_on_the_board(nvim: Editors, dev: Machine, version: str) -> None:
    """Its row says through what; it ends with `clear`, the next prompt there, or the ssh."""
    editor = hosted(nvim(version, {}, lua=STATUSLINE))
    shell = login(editor, dev)
    shell.reports("state=working:app=terraform:" + msg("planning"))
    row = becomes(editor, "working")
    assert ("ssh dev", "terraform", "planning") == (
        *(row["words"]["project"], row["agent"], row["detail"]),
    )
    assert not {"cwd", "branch", "repository"} & row.keys(), "of a folder over there"
    shell.reports("state=blocked:kind=permission:app=terraform:" + msg("Apply?"))
    becomes(editor, "blocked")
    editor.shows("ssh dev: Apply?")
    editor.command("ClaudeSessions next")
    eventually(lambda: editor.lua("return vim.api.nvim_get_current_buf()") == shell.buffer)
    editor.command("buffer here")
    shell.reports("state=clear")
    eventually(lambda: rows(editor) == [], "its end")
    shell.reports("state=working:app=make")
    becomes(editor, "working")
    shell.types(f"printf '{PROMPT}'")
    eventually(lambda: rows(editor) == [], "its end at a prompt")
    shell.reports("state=error:app=make:" + msg("no rule"))
    becomes(editor, "error")
    shell.types(f"printf '{PROMPT}'")
    editor.command("ClaudeSessions next")
    eventually(lambda: rows(editor) == [], "nothing: it was seen, and is over")
    editor.command("buffer here")
    shell.reports("state=working:app=make")
    becomes(editor, "working")
    os.kill(shell.ssh, signal.SIGKILL)
    eventually(lambda: rows(editor) == [], "its end with ssh")


@pytest.mark.parametrize("what", ["watch", "nvim"])
def test_another_board_over_ssh_is_on_ours(
    nvim: Editors, dev: Machine, version: str, what: str
) -> None:
    """Each of its sessions once, until it ends; and once if a link follows that machine, too."""
    there = Shell(dev.home)
    there.spool.prepare()
    asks(there, "api")
    there.emitted(9, "web", "SessionStart", cwd="/w/web")
    there.emitted(8, "web", "UserPromptSubmit", prompt="do it")
    editor = hosted(nvim(version, {}, lua=STATUSLINE))
    shell = login(editor, dev)
    argv = [str(PROGRAM), "watch"] if what == "watch" else nvim_argv(there, version)
    shell.types(shlex.join(argv))
    shown = {"ssh dev api do it": "blocked", "ssh dev web do it": "working"}
    eventually(lambda: named(editor) == shown, "the sessions over there", within=20)
    agents = {(x["agent"], x.get("kind"), x.get("cwd")) for x in rows(editor)}
    assert agents == {("claude", "permission", None), ("claude", None, None)}
    editor.shows("ssh dev: Bash rm -rf build")
    says(there, "web", "Stop", last_assistant_message="Done.")
    eventually(
        lambda: named(editor) == {**shown, "ssh dev web do it": "completed"}, "its end of work"
    )
    set_followed(editor.home.bellboard, {"dev": dev.ssh})
    linked = {"dev:api ": "blocked", "dev:web ": "completed"}
    eventually(lambda: named(editor) == linked, "one row for each", within=20)
    says(there, "web", "UserPromptSubmit", prompt="more")
    linked["dev:web "] = "working"
    eventually(lambda: named(editor) == linked, "one row for each")
    set_followed(editor.home.bellboard, {})
    eventually(lambda: not linked.keys() & named(editor).keys(), "the end of the link")
    says(there, "web", "Stop", last_assistant_message="Done.")
    eventually(lambda: named(editor) == {"ssh dev web more": "completed"}, "what is said now")
    shell.types("q" if what == "watch" else "\x1c\x0e:qa!\r")
    eventually(lambda: named(editor) == {}, "their end")
