"""Actions in Neovim on a session of another machine; mostly with given replies."""

from __future__ import annotations

import time
from typing import Any

from bellboard.storage.spool import Spool
from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.host.asked import command
from rig.host.keeper import LinkKeeper
from rig.host.sample import HIDDEN_TERMINAL, QUIET, Host, far
from rig.waiting import eventually

#: Plays the host: replies to each request as given, and keeps what was asked and said.
PLAYED = """
_G.replies, _G.asked, _G.said, _G.told = ..., {}, {}, {}
local host = require('bellboard.process.talk')
host.ask = function(what, request, done)
  table.insert(asked, { what, request })
  vim.schedule(function() done(replies[what]) end)
end
host.tell = function(evidence)
  table.insert(told, (next(evidence)))
  return true
end
vim.notify = function(text) table.insert(said, text) end
"""
SID = "dev/claude/api-blocked"
HERE = "return vim.api.nvim_get_current_buf()"


def test_a_label_is_kept_by_the_machine_and_a_failure_is_reported(
    nvim: Editors, home: Home
) -> None:
    """With a real host, beside which another one keeps the link."""
    keeper = LinkKeeper(home)
    row = {"session_id": "s1", "status": "blocked", "agent": "claude", "project": "api"}
    Spool(home.bellboard).write({"t": time.time(), "far": {"machine": "dev", "row": row}})
    editor = nvim(config={"float": {"enabled": False}})
    listed = "return #require('bellboard').sessions()"
    try:
        eventually(lambda: editor.lua(listed) == 1, "the session")
        editor.lua("_G.said = {} vim.notify = function(text) table.insert(said, text) end")
        editor.command("ClaudeSessions label HEAVY dev/claude/s1")
        eventually(lambda: keeper.asked, "the label")
        assert keeper.asked == [{"do": "label", "session_id": "s1", "label": "HEAVY"}]
        keeper.replies["park"] = {"ok": False, "why": "the link is down: no route"}
        editor.command("ClaudeSessions park dev/claude/s1")
        failed = "bellboard: park failed: the link is down: no route"
        eventually(lambda: failed in editor.lua("return said"), "what failed")
        assert not [*(home.bellboard / "spool/bad").iterdir()]
    finally:
        keeper.close()


def played(nvim: Editors, **replies: Any) -> Editor:
    """Return an editor with one far session, whose host replies so."""
    editor = nvim(config={**QUIET, "float": {"enabled": False}})
    Host(editor).push(far("dev", "blocked", "api", far_pid=4711, detail="make"))
    editor.lua(PLAYED, replies)
    return editor


def jump(editor: Editor) -> None:
    editor.lua("require('bellboard').jump(...)", SID)


def asked(editor: Editor, count: int) -> list[Any]:
    """Wait until so much was asked and done; return what."""
    eventually(lambda: len(editor.lua("return asked")) == count)
    return list(editor.lua("return asked"))


def test_a_jump_shows_the_terminal_here_that_shows_the_machine(nvim: Editors) -> None:
    """And goes back to where it began."""
    editor = played(nvim)
    tty = editor.lua(HIDDEN_TERMINAL)
    terminal = editor.lua("return terminal")
    editor.lua("replies['goto'] = ...", {"ok": True, "tty": tty})
    before = editor.lua(HERE)
    jump(editor)
    eventually(lambda: editor.lua(HERE) == terminal, "the terminal")
    [(what, request)] = asked(editor, 1)
    assert (what, request["session_id"]) == ("goto", SID)
    assert editor.lua("return told") == ["goto"]
    editor.command("ClaudeSessions back")
    assert editor.lua(HERE) == before


def test_going_back_hides_the_terminal_that_a_jump_opened_beside_a_help(nvim: Editors) -> None:
    """With the option here, the terminal opened in the window of a file."""
    editor = played(nvim, goto={"ok": True, "command": ["sh", "-c", "echo far; exec sleep 600"]})
    editor.lua("require('bellboard').setup({ launch = { layout = 'window' } })")
    editor.command("edit text | help")
    jump(editor)
    eventually(lambda: editor.lua("return vim.bo.buftype") == "terminal", "the terminal")
    editor.command("ClaudeSessions back")
    shown = "return vim.tbl_map(vim.fn.bufname, vim.fn.tabpagebuflist())"
    assert "text" in editor.lua(shown)


def test_a_jump_opens_one_terminal_and_shows_it_again(nvim: Editors) -> None:
    """While its program runs."""
    command = ["sh", "-c", "echo the far pane; exec sleep 600"]
    editor = played(nvim, goto={"ok": True, "command": command})
    before = editor.lua(HERE)
    jump(editor)
    editor.shows("the far pane")
    opened = editor.lua(HERE)
    editor.command("ClaudeSessions back")
    assert editor.lua(HERE) == before
    jump(editor)
    eventually(lambda: editor.lua(HERE) == opened, "the same terminal")
    editor.lua("vim.fn.jobstop(vim.bo[...].channel)", opened)
    jump(editor)
    eventually(lambda: editor.lua(HERE) not in (opened, before), "another terminal")


def test_a_request_says_on_which_machine_it_is_asked(nvim: Editors) -> None:
    """A command may be harmless on one and not on another."""
    editor = nvim(config={**QUIET, "float": {"enabled": False}}, columns=100)
    session = far("dev", "blocked", "api", branch="main", kind="permission", request="r-1")
    Host(editor).push(session)
    editor.lua(PLAYED, {"request": {"ok": True, "request": command(session, "rm -rf build")}})
    editor.lua("require('bellboard.answer').to(...)", SID)
    editor.shows("on dev · acme/api · main")
    editor.shows("rm -rf build")


def test_a_member_that_may_only_read_is_offered_nothing_that_it_may_not_do(
    nvim: Editors,
) -> None:
    """But why; its machine refuses the rest."""
    editor = nvim(config={**QUIET, "float": {"enabled": False}})
    session = far("dev", "blocked", "api", far_pid=4711, detail="make", request="r", kind="x")
    Host(editor).push(session)
    looks = {"complete": False, "choices": [], "why": "you may look", "way": "look"}
    looks["ways"] = [{"name": "look", "words": "read only"}]
    asked_there = {**command(session, "rm -rf build"), **looks}
    editor.lua(PLAYED, {"request": {"ok": True, "request": asked_there}})
    editor.command(f"ClaudeSessions answer {SID}")
    editor.shows("Cannot be answered here: you may look.")
    editor.shows("read only")
    for hint in ("go terminal", "snooze", "Yes"):
        editor.hides(hint)


def test_the_reason_is_shown_if_a_machine_cannot_be_asked(nvim: Editors) -> None:
    down = {"ok": False, "why": "the link is down: ssh: no route"}
    editor = played(nvim, goto=down, preview=down)
    jump(editor)
    said = eventually(lambda: editor.lua("return said"))
    assert "dev:api: the link is down: ssh: no route" in said[0]
    editor.lua(
        "require('bellboard.preview').lines(require('bellboard').sessions()[1],"
        " function(lines) _G.shown = lines end)"
    )
    lines = eventually(lambda: editor.lua("return shown"))
    assert lines[-1] == "the link is down: ssh: no route"


def test_a_preview_and_a_stop_are_asked_of_the_machine(nvim: Editors) -> None:
    """The process is the one over there."""
    rows = {"ok": True, "rows": ["❯ make", "red"]}
    editor = played(nvim, preview=rows, stop={"ok": True, "text": "process 4711 has ended"})
    editor.lua(
        "require('bellboard.preview').lines(require('bellboard').sessions()[1],"
        " function(lines) _G.shown = lines end)"
    )
    lines = eventually(lambda: editor.lua("return shown"))
    assert lines == ["❯ make", "red"]
    editor.lua(
        "vim.ui.select = function(_, opts, done) _G.prompt = opts.prompt done('Stop it') end"
    )
    editor.lua("require('bellboard.board.keys').run('stop', require('bellboard').sessions())")
    assert asked(editor, 2)[1] == ["stop", {"session_id": SID, "pid": 4711}]
    assert editor.lua("return prompt").startswith("Stop process 4711 (dev:api")
