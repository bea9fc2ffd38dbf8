"""Programs that only their own reports show (OSC 7501), from a terminal of Neovim to the board."""

from __future__ import annotations

import contextlib
import os
import signal
from base64 import b64encode
from typing import Any

import pytest

from bellboard.system import processes
from editor.test_live import STATUSLINE, Agent, hosted
from editor.test_reports import BEL, QUERY, Program, osc, status
from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.waiting import eventually

SESSIONS = "return require('bellboard').sessions()"


def msg(text: str) -> str:
    return "msg=" + b64encode(text.encode()).decode()


def rows(editor: Editor) -> list[Any]:
    return list(editor.lua(SESSIONS))


def becomes(editor: Editor, wanted: str) -> Any:
    """Wait until the only session has that status; return it."""
    eventually(lambda: [row["status"] for row in rows(editor)] == [wanted], wanted)
    return rows(editor)[0]


def test_an_unknown_program_is_on_the_board(nvim: Editors, version: str) -> None:
    """No hook and no file knows it; what it asks is in the float, and one goes to its terminal."""
    editor = hosted(nvim(version, {}, lua=STATUSLINE))
    program = Program(editor)
    assert program.asks().startswith(QUERY)
    program.say(status("state=idle:app=terraform"))
    becomes(editor, "idle")
    program.say(status("state=working:app=terraform:progress=40:" + msg("planning")))
    shown = becomes(editor, "working")
    eventually(lambda: rows(editor)[0]["words"]["progress"] == "40%")
    assert ("terraform", "planning", "says so itself") == (
        *(shown["agent"], shown["detail"], shown["source"]),
    )
    editor.shows("*1")
    program.say(status("state=working:id=lint"))
    eventually(lambda: rows(editor)[0]["words"]["members"] == "1 task")
    program.say(status("state=blocked:app=terraform:kind=permission:" + msg("Apply 3 to add?")))
    assert becomes(editor, "blocked")["kind"] == "permission"
    editor.shows("Apply 3 to add?")
    editor.command("ClaudeSessions next")
    eventually(lambda: editor.lua("return vim.api.nvim_get_current_buf()") == program.buffer)
    editor.command("buffer here")
    program.say(status("state=working:app=terraform"))
    becomes(editor, "working")
    program.say(status("state=done:app=terraform:" + msg("3 added")))
    becomes(editor, "completed")
    editor.shows("+1")
    os.kill(program.pid, signal.SIGKILL)
    eventually(lambda: not rows(editor)[0].get("pid"), "its end")
    editor.command("ClaudeSessions next")
    eventually(lambda: editor.lua("return vim.api.nvim_get_current_buf()") == program.buffer)
    eventually(lambda: rows(editor) == [], "nothing: it was seen, and is over")
    assert editor.messages() == "project has completed: 3 added"


def test_what_was_reported_before_the_background_process_runs_is_shown(
    nvim: Editors, version: str
) -> None:
    editor = nvim(version, {"auto_start": False})
    programs = [Program(editor, name) for name in ("a", "b")]
    for program in programs:
        program.say(status("state=working:app=make"))
        program.say(status("state=blocked:app=make:" + msg("Go on?")))
    editor.command("ClaudeSessions process start")
    eventually(lambda: [row["status"] for row in rows(editor)] == ["blocked"] * 2, "two that ask")
    editor.command("ClaudeSessions process restart")
    programs[0].say(status("state=done:app=make"))
    wanted = ["blocked", "completed"]
    eventually(lambda: [row["status"] for row in rows(editor)] == wanted, "one that asks")


def test_work_that_is_killed_is_gone(nvim: Editors, version: str) -> None:
    editor = hosted(nvim(version, {}))
    program = Program(editor)
    program.say(status("state=working:app=make"))
    becomes(editor, "working")
    os.kill(program.pid, signal.SIGKILL)
    eventually(lambda: rows(editor) == [], "no session")


def test_work_ends_at_the_next_prompt_of_its_shell(nvim: Editors, version: str) -> None:
    editor = hosted(nvim(version, {}))
    program = Program(editor)
    program.say(status("state=working"))
    assert becomes(editor, "working")["agent"].startswith("python")
    program.say(osc("133;A"))
    eventually(lambda: rows(editor) == [], "no session")


@pytest.mark.parametrize("how", ["qa!", "kill"])
def test_what_is_done_ends_with_its_neovim(nvim: Editors, version: str, how: str) -> None:
    """Nobody can look at it any more, so it does not call for ever."""
    editor, other = (hosted(nvim(version, {})) for _ in range(2))
    program = Program(editor)
    program.say(status("state=working:app=make"), status("state=done:app=make"))
    becomes(other, "completed")
    os.kill(program.pid, signal.SIGKILL)
    eventually(lambda: not processes.is_alive(program.pid), "its end")
    if how == "kill":
        os.kill(editor.pid, signal.SIGKILL)
    else:
        with contextlib.suppress(EOFError):
            editor.command("qa!")
    eventually(lambda: rows(other) == [], "no session")


def test_two_programs_are_two_rows(nvim: Editors, version: str) -> None:
    """A program that floods does not delay the other."""
    editor = hosted(nvim(version, {}))
    loud, quiet = Program(editor, "loud"), Program(editor, "quiet")
    quiet.say(status("state=working:app=quiet"))
    for n in range(50):
        loud.say(*(status(f"state=working:app=loud:{msg(f'{n} {k}')}") for k in range(100)))
    quiet.say(status("state=done:app=quiet"))
    by_agent = lambda: {row["agent"]: row["status"] for row in rows(editor)}  # noqa: E731
    eventually(lambda: by_agent() == {"loud": "working", "quiet": "completed"})


def test_text_of_a_program_cannot_draw(nvim: Editors, version: str) -> None:
    """Its name for itself cannot, either."""
    editor = hosted(nvim(version, {}, lua=STATUSLINE))
    program = Program(editor)
    program.say(status("state=blocked:app=%{system}:" + msg("%#Error#a\u202eb%{1+1}\u200b")))
    shown = becomes(editor, "blocked")
    assert shown["detail"] == "%#Error#a b%{1+1}"
    editor.shows("%#Error#a b%{1+1}")
    assert shown["agent"].startswith("python")


def test_a_report_is_only_compared_where_hooks_know_the_session(
    nvim: Editors, home: Home, version: str
) -> None:
    """A tool may write one to the terminal: it hides no question."""
    editor = hosted(nvim(version, {}))
    program = Program(editor)
    agent = Agent(home)
    agent.process.kill()
    agent.process.wait()
    agent.pid = program.pid
    agent.emit("UserPromptSubmit", prompt="build it", prompt_id="1")
    bash = {"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}, "prompt_id": "1"}
    agent.emit("PreToolUse", **bash, tool_use_id="t1")
    agent.emit("PermissionRequest", **bash)
    becomes(editor, "blocked")
    program.say(status("state=done:app=claude-code", BEL))
    eventually(lambda: rows(editor)[0].get("own_report", {}).get("status") == "done")
    assert "blocked" == becomes(editor, "blocked")["status"]
