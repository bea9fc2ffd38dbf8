"""Answering the real CLI with yes or no from a real Neovim."""

from __future__ import annotations

from typing import Any

import pytest

from rig import ROOT
from rig.agents.agent import Agent, Launch
from rig.editor import Editor
from rig.fixtures import Agents, Editors
from rig.home import Home
from rig.machines.loopback import Watch
from rig.tmux import Server
from rig.waiting import eventually

EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest"),
    *("Notification", "Stop", "SessionEnd"),
)
TERMINAL = """
local command, cwd = ...
vim.cmd.enew()
local start = vim.fn.has('nvim-0.11') == 1 and vim.fn.jobstart or vim.fn.termopen
_G.agent = start(command, { cwd = cwd, term = start == vim.fn.jobstart or nil })
_G.terminal = vim.api.nvim_get_current_buf()
vim.cmd.tabnew()
return vim.fn.jobpid(_G.agent)
"""
SCREEN = "return table.concat(vim.api.nvim_buf_get_lines(_G.terminal, 0, -1, false), '\\n')"
SESSION = "return require('bellboard').sessions()[1]"
#: Collects messages, so that none needs Enter.
NOTED = "_G.noted = {} vim.notify = function(text) table.insert(_G.noted, text) end"


def settings() -> dict[str, Any]:
    """Return settings with our hooks, as installed."""

    def hook(event: str) -> dict[str, Any]:
        command = f'"{ROOT}/hooks/emit" {event} "$PPID"'
        return {"hooks": [{"type": "command", "command": command}]}

    return {"hooks": {event: [hook(event)] for event in EVENTS}}


def opened(nvim: Editors, version: str = "0.12") -> Editor:
    config = {"float": {"enabled": False}, "answer": {"key_delay": 0}}
    editor = nvim(version, config, lua=NOTED, columns=110, lines=45)
    new = editor.home.bellboard / "spool" / "new"
    eventually(lambda: new.is_dir() and editor.lua("return require('bellboard').health().version"))
    return editor


class Inside:
    """The CLI in a terminal of an editor that shows something else."""

    def __init__(self, editor: Editor, launch: Launch, watch: Watch) -> None:
        self.editor, self.launch = editor, launch
        watch.follow(editor.lua(TERMINAL, launch.command, str(launch.cwd)))
        self.shows("? for shortcuts")

    def shows(self, text: str) -> None:
        def look() -> bool:
            shown = str(self.editor.lua(SCREEN))
            assert text in shown, f"no {text!r} in this terminal:\n{shown}"
            return True

        eventually(look)

    def submit(self, prompt: str) -> None:
        self.editor.lua("vim.fn.chansend(_G.agent, ...)", prompt)
        self.shows(prompt)
        self.editor.lua("vim.fn.chansend(_G.agent, '\\r')")


def asks(editor: Editor) -> dict[str, Any]:
    """Wait until the editor knows the question, its terminal, and the hook's report."""

    def look() -> Any:
        found = editor.lua(SESSION) or {}
        # The session file may say first that it waits, without what it asks.
        known = [found.get(key) for key in ("tty", "detail", "request")]
        assert found.get("status") == "blocked" and all(known), found
        # A question is reported once more when it is shown; until then an answer may be too early.
        assert not found["request"].endswith("PreToolUse"), found
        return found

    return dict(eventually(look))


def is_answered(editor: Editor) -> None:
    """Wait until the editor knows that the question is answered; else show our messages."""

    def look() -> bool:
        assert editor.lua(SESSION)["status"] != "blocked", editor.lua("return _G.noted")
        return True

    eventually(look)


def answered(editor: Editor, text: str, keys: str, named: str = "") -> None:
    """Press keys in the view of a request, once it shows that text."""
    editor.command(f"ClaudeSessions answer {named}")

    def look() -> bool:
        picture = editor.screen.text
        assert text in picture, f"no {text!r}; {editor.lua('return _G.noted')}\n{picture}"
        return True

    eventually(look)
    editor.press(keys)


@pytest.mark.parametrize("where", ["this editor", "another editor", "tmux"])
def test_yes_and_no_arrive_where_the_agent_runs(
    nvim: Editors, claude: Agents, watch: Watch, tmux: Server, version: str, where: str
) -> None:
    """Yes runs the command, no does not; without going there, and no other pane gets a key."""
    agent: Agent | Inside
    other, editor = tmux.open(["cat"], session="other"), opened(nvim, version)
    if where == "tmux":
        agent = claude(settings=settings())
    else:
        there = editor if where == "this editor" else opened(nvim)
        agent = Inside(there, claude.prepare(settings=settings()), watch)
    made = agent.launch.cwd / "made.txt"
    for key in "SA":
        agent.submit("play:perm please")
        asked = asks(editor)
        agent.shows("4. No")
        assert (asked["detail"], made.exists()) == ("touch made.txt", False)
        answered(editor, "Yes, this once", key, asked["session_id"])
        is_answered(editor)
        agent.shows("Touched" if key == "A" else "Interrupted")
    assert made.exists()
    assert other.text().strip() == ""
    assert editor.lua("return vim.api.nvim_get_current_buf() ~= _G.terminal")
    assert "not answered" not in str(editor.lua("return _G.noted"))


def test_a_question_answered_meanwhile_gets_no_key(
    nvim: Editors, claude: Agents, home: Home
) -> None:
    """Answered while the user was reading: nothing is typed, and the view says why."""
    agent = claude(settings=settings())
    editor = opened(nvim)
    agent.submit("play:perms please")
    first = asks(editor)
    answered(editor, "touch a1.txt", "")
    # Answered by hand; the next question, which was not shown here, is asked at once.
    agent.answer("Enter", dialog=r"touch a1\.txt\s+\u254c")
    agent.shows(r"touch a2\.txt\s+\u254c")
    eventually(lambda: (editor.lua(SESSION) or {}).get("detail") == "touch a2.txt", "the next")
    editor.shows("No longer asked: you answered in the terminal first.")
    editor.press("A")
    # The host refuses an answer to a question that is no longer open, too.
    old = {key: first[key] for key in ("session_id", "request")} | {"choice": "allow"}
    ask = "require('bellboard.process.talk').ask('answer', ..., function(r) _G.reply = r end)"
    editor.lua(ask, old)
    reply = eventually(lambda: editor.lua("return _G.reply"), "a reply")
    assert reply == {"ok": False, "why": "you answered in the terminal first"}
    agent.shows(r"touch a2\.txt\s+\u254c")
    assert not (home.project / "a2.txt").exists()


def test_a_question_is_answered_with_an_option(nvim: Editors, claude: Agents, watch: Watch) -> None:
    """Chosen by its number in the view, and sent with another key."""
    editor = opened(nvim)
    agent = Inside(editor, claude.prepare(settings=settings()), watch)
    agent.submit("play:ask please")
    asks(editor)
    answered(editor, "Blue", "2")
    editor.shows("(x)")
    editor.press("A")
    is_answered(editor)
    assert editor.lua("return vim.api.nvim_get_current_buf() ~= _G.terminal")
