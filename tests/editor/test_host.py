"""The host process: started once, restarted if it dies, abandoned after repeated crashes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rig import ROOT
from rig.editor import Editor
from rig.fixtures import Editors
from rig.waiting import PATIENCE, at_best, eventually

COUNT = "return #require('bellboard').sessions()"
#: Loads the plugin again, as :Lazy reload does.
RELOAD = """
for name in pairs(package.loaded) do
  if name:find('^bellboard') then package.loaded[name] = nil end
end
vim.g.loaded_bellboard = nil
vim.cmd('runtime plugin/bellboard.lua')
"""
STATUS = "return require('bellboard.process.talk').status()"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def config(how: str, notes: Path, **more: Any) -> dict[str, Any]:
    script = Path(__file__).with_name("small_host.py")
    return {"python": [sys.executable, str(script), how, str(notes)], **more}


def told(notes: Path, name: str) -> list[Any]:
    """Return the messages of that name that the hosts have received."""
    lines = notes.read_text().split("\n")[:-1] if notes.exists() else []
    return [
        line[1] if len(line) > 1 else None for line in map(json.loads, lines) if line[0] == name
    ]


def says(editor: Editor, text: str) -> str:
    """Wait for a message; return all."""
    return eventually(lambda: editor.messages() if text in editor.messages() else "", text)


def running(editor: Editor) -> Editor:
    eventually(lambda: editor.lua(COUNT) == 1, "a session from the host")
    return editor


def test_it_starts_by_itself_and_introduces_the_editor(
    nvim: Editors, notes: Path, version: str
) -> None:
    """After VimEnter; the first message says which editor it is."""
    editor = running(nvim(version, config("well", notes), ui=False))
    (hello,) = told(notes, "start")
    assert hello["server"] == editor.lua("return vim.v.servername")
    assert hello["pid"] == editor.pid
    assert hello["options"] == {}


def test_auto_start_false_waits_for_the_first_command(nvim: Editors, notes: Path) -> None:
    editor = nvim(config=config("well", notes, auto_start=False), ui=False)
    assert not notes.exists()
    editor.command("ClaudeSessions board")
    running(editor)


#: Asks twice, and keeps what a user would be told.
ASKED = """
_G.heard = {}
for _, what in ipairs({ 'answer', 'request' }) do
  require('bellboard.process.talk').ask(what, {}, function(reply)
    heard[what] = require('bellboard.answer.request').outcome(reply)
  end)
end
"""


def test_an_answer_may_have_been_sent_by_a_host_that_is_killed(nvim: Editors, notes: Path) -> None:
    """All other requests to the host were not carried out."""
    editor = running(nvim(config=config("once", notes), ui=False))
    editor.lua(ASKED)
    (pid,) = told(notes, "born")
    os.kill(pid, signal.SIGKILL)
    ended = "the background process has ended"
    expected = {"answer": f"{ended}; it may have been sent", "request": f"not answered: {ended}"}
    eventually(lambda: len(editor.lua("return heard")) == 2, "both replies")
    assert editor.lua("return heard") == expected


def test_a_killed_host_is_restarted(nvim: Editors, notes: Path, version: str) -> None:
    """kill -9: new process, new snapshot; until then the old one is shown as stale."""
    editor = running(nvim(version, config("once", notes), ui=False))
    (pid,) = told(notes, "born")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: editor.lua("return require('bellboard').stale()"), "stale")
    assert editor.lua(COUNT) == 1
    notes.with_suffix(".go").touch()
    eventually(lambda: len(told(notes, "start")) == 2, "a second host")
    eventually(lambda: not editor.lua("return require('bellboard').stale()"), "fresh")
    assert editor.lua(STATUS)["restarts"] == 1
    assert editor.messages() == ""


#: Asks, when much was answered before; each that is refused asks again.
ASK = """
_G.refused = 0
local host = require('bellboard.process.talk')
for nth = 1, 50 do
  host.ask('request', { session_id = 'x' }, function() end)
  host._reply(nth, { ok = true })
end
for nth = 1, 8 do
  host.ask('request', { session_id = 'x' }, function()
    refused = refused + 1
    host.ask('request', { session_id = 'x' }, function(reply)
      refused = refused + (reply.ok and 0 or 1)
    end)
  end)
end
return require('bellboard.process.talk').status().channel
"""


def test_all_that_was_asked_of_a_host_that_dies_is_refused(
    nvim: Editors, notes: Path, version: str
) -> None:
    """Requests during a refusal are refused as well; a triage would wait for ever."""
    editor = running(nvim(version, config("once", notes), ui=False))
    (pid,) = told(notes, "born")
    assert editor.lua(ASK)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: editor.lua("return refused") == 16, "all replies")


@pytest.mark.parametrize("act", ["start", "restart"])
def test_one_host_runs_although_a_refusal_starts_one(
    nvim: Editors, notes: Path, version: str, act: str
) -> None:
    """A caller whose request is refused may start the host; it is started once."""
    editor = running(nvim(version, config("well", notes), ui=False))
    (pid,) = told(notes, "born")
    editor.lua(
        """local act = require('bellboard')[...]
        local talk = require('bellboard.process.talk')
        talk.ask('request', { session_id = 'x' }, function() act() end)""",
        act,
    )
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(told(notes, "start")) == 2, "a second host")
    editor.lua("vim.wait(600)")  # longer than the pause before a restart
    assert len(told(notes, "born")) == 2
    assert editor.messages() == ""


def test_it_gives_up_with_one_message(nvim: Editors, notes: Path) -> None:
    """After too many crashes in a row: its last words, and where to look."""
    editor = nvim(config=config("dies", notes, max_restarts=3), ui=False)
    said = says(editor, "checkhealth")
    assert said == "bellboard: cannot run: the host's last words. See :checkhealth bellboard"
    assert len(told(notes, "born")) == 3
    editor.command("checkhealth bellboard")
    report = editor.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    assert "stopped after repeated crashes" in report
    assert "the host's last words" in report


def test_a_missing_package_of_a_chosen_python_is_reported(nvim: Editors, notes: Path) -> None:
    """No retry and no build: neither would help, as the option comes first."""
    editor = nvim(config=config("lacks", notes), ui=False)
    said = says(editor, "unset the option python")
    assert f"{sys.executable} {Path(__file__).with_name('small_host.py')}" in said
    assert 'has no module "msgspec"' in said
    assert len(told(notes, "born")) == 1


def test_a_python_without_a_module_of_its_own_is_said_to_be_unfit(nvim: Editors) -> None:
    """No build would help."""
    script = ROOT / "tests/rig/host/no_sqlite.py"
    editor = nvim(config={"python": [sys.executable, str(script)], "max_restarts": 2}, ui=False)
    what = f'{sys.executable} was built without its module "_sqlite3"; use another Python'
    assert (
        says(editor, "cannot run") == f"bellboard: cannot run: {what}. See :checkhealth bellboard"
    )


def test_a_missing_interpreter_is_reported(nvim: Editors) -> None:
    """A wrong path is one message, not an error."""
    editor = nvim(config={"python": "/no/such/python"}, ui=False)
    assert 'cannot start "/no/such/python" (the option python)' in says(editor, "cannot")
    editor.command("ClaudeSessions history")
    assert ".lua" not in says(editor, "history: cannot start")


def test_a_command_that_a_signal_ends_has_failed(nvim: Editors, tmp_path: Path) -> None:
    """Neovim reports its code as 0."""
    dies = tmp_path / "dies"
    dies.write_text("#!/bin/sh\nkill -KILL $$\n")
    dies.chmod(0o755)
    editor = nvim(config={"python": str(dies), "auto_start": False}, ui=False)
    editor.command("ClaudeSessions history")
    assert says(editor, "history:") == "bellboard: history: ended by signal 9"


def test_the_interpreter_of_neovim_may_be_an_ignored_file(nvim: Editors) -> None:
    """A 'wildignore' with environments in it is common; a tilde is the home directory."""
    editor = nvim(config={"auto_start": False}, ui=False)
    editor.command("set wildignore=*/.venv/* | let g:python3_host_prog = '~/.venv/bin/python'")
    editor.lua("require('bellboard.process.program').root = function() return '/nowhere' end")
    found = editor.lua("return require('bellboard.process.program').interpreter()")
    assert found["command"] == [f"{editor.home.root}/.venv/bin/python"]


def test_a_gap_asks_for_one_full_snapshot(nvim: Editors, notes: Path) -> None:
    """A lost push is noticed by its number."""
    editor = running(nvim(config=config("well", notes), ui=False))
    push = {"v": 2, "version": "0.1.0", "full": False, "sessions": [], "seq": 7}
    editor.lua("for n = 7, 9 do require('bellboard')._push(...) end", json.dumps(push))
    editor.lua("require('bellboard').tell({ note = 1 })")
    eventually(lambda: told(notes, "evidence"), "what was sent after it")
    assert len(told(notes, "snapshot")) == 1


def test_evidence_goes_to_the_host_as_a_trace_line(nvim: Editors, notes: Path) -> None:
    """A jump that lands nowhere sends none."""
    editor = running(nvim(config=config("well", notes), ui=False))
    editor.lua("require('bellboard').jump('a')")
    eventually(lambda: told(notes, "ask"), "the jump, which the process makes")
    line = {"set": {"session_id": "a", "status": "idle"}}
    editor.lua("require('bellboard').tell(...)", line)
    eventually(lambda: told(notes, "evidence"), "evidence")
    assert told(notes, "evidence") == [line]


def test_stop_stops_and_a_command_starts_again(nvim: Editors, notes: Path) -> None:
    """A host that was stopped is not restarted automatically."""
    editor = running(nvim(config=config("well", notes), ui=False))
    editor.command("ClaudeSessions process stop")
    eventually(lambda: not editor.lua(STATUS)["running"], "the end of the host")
    assert editor.lua("return require('bellboard').tell({ note = 1 })") is False
    editor.command("ClaudeSessions board")
    eventually(lambda: len(told(notes, "start")) == 2, "a second host")


def test_restart_is_not_a_crash(nvim: Editors, notes: Path) -> None:
    """:ClaudeSessions process restart starts a new process at once."""
    editor = running(nvim(config=config("well", notes, max_restarts=1), ui=False))
    editor.command("ClaudeSessions process restart")
    eventually(lambda: len(told(notes, "start")) == 2, "a second host")
    assert editor.messages() == ""


def test_reloaded_modules_end_the_process_before(nvim: Editors, notes: Path, version: str) -> None:
    """After :Lazy reload, one process runs, and pushes to the new modules."""
    editor = running(nvim(version, config("well", notes), ui=False))
    editor.lua(RELOAD + "require('bellboard').start()")
    running(editor)
    jobs = """
      return #vim.tbl_filter(function(channel)
        return channel.stream == 'job'
      end, vim.api.nvim_list_chans())
    """
    eventually(lambda: editor.lua(jobs) == 1, "the end of the one before")
    assert editor.lua(STATUS)["running"]
    assert len(told(notes, "born")) == 2
    assert editor.messages() == ""


def test_quitting_is_quick_and_leaves_nothing(nvim: Editors, notes: Path) -> None:
    """:qa does not wait for the host, and the host goes with it."""

    def quits() -> float:
        editor = running(nvim(config=config("well", notes), ui=False))
        pid = told(notes, "born")[-1]
        started = time.monotonic()
        editor.nvim.command("qall!", async_=True)
        editor.process.wait(PATIENCE)
        took = time.monotonic() - started
        eventually(lambda: not Path(f"/proc/{pid}").exists(), "the end of the host")
        return took

    at_best(quits, 1.0)


SOURCE = """
vim.cmd.source('%s/plugin/bellboard.lua')
return vim.tbl_filter(function(name)
  return name:find('^bellboard') ~= nil
end, vim.tbl_keys(package.loaded))
"""


def test_nothing_is_loaded_before_it_is_used(nvim: Editors) -> None:
    """Sourcing the plugin defines the command and the <Plug>s, and requires nothing."""
    editor = nvim(ui=False)
    root = ROOT
    editor.lua(f"vim.g.bellboard = {{ auto_start = false }} vim.opt.rtp:prepend('{root}')")
    assert editor.lua(SOURCE % root) == []
    assert editor.lua("return vim.fn.exists(':ClaudeSessions')") == 2
    assert editor.lua("return vim.fn.maparg('<Plug>(bellboard-next)', 'n') ~= ''")


#: What each key does for the user, apart from <Plug>s, which are not typed.
KEYS = """
local found = {}
for mode in ('nvsoiltc'):gmatch('.') do
  for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
    if not vim.startswith(map.lhs, '<Plug>') then
      found[#found + 1] = mode .. ' ' .. map.lhs .. ' ' .. (map.rhs or '')
    end
  end
end
table.sort(found)
return found
"""


def test_no_key_of_the_user_is_mapped(nvim: Editors, notes: Path, version: str) -> None:
    """Neither by the plugin nor by the board or a running host; our windows have their own keys."""
    before = nvim(version, ui=False).lua(KEYS)
    editor = running(nvim(version, config("well", notes), ui=False))
    assert editor.lua(KEYS) == before
    editor.command("ClaudeSessions board")
    assert editor.nvim.api.buf_get_keymap(0, "n")
    assert editor.lua(KEYS) == before


#: What tells the host something, or asks it.
TOLD = (
    *("park('a')", "snooze('a', 5)", "label('a', 'HEAVY')", "mode('quiet')", "jump('a')"),
    *("request('a', function() end)", "answer('a', 'allow', function() end)"),
    *("tell({ note = 'x' })", "run('board')", "run('notices')", "statusline()"),
)
TIMED = """
local began = vim.uv.hrtime()
require('bellboard').%s
return (vim.uv.hrtime() - began) / 1e9
"""


def test_the_editor_goes_on_while_its_host_is_suspended(nvim: Editors, notes: Path) -> None:
    """No message or request to the host waits for a reply."""
    editor = running(nvim(config=config("well", notes), ui=False))
    (pid,) = told(notes, "born")
    os.kill(pid, signal.SIGSTOP)
    try:
        for act in TOLD:
            at_best(lambda act=act: float(editor.lua(TIMED % act)), 0.1)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_command_of_another_plugin_is_left_alone(nvim: Editors) -> None:
    """The first plugin keeps the name; `:Bellboard` is the same, and health says so."""
    theirs = "vim.api.nvim_create_user_command('ClaudeSessions', 'let g:theirs = 1', {})"
    editor = nvim(config={"auto_start": False}, lua=theirs)
    editor.command("ClaudeSessions")
    assert editor.lua("return vim.g.theirs") == 1
    editor.command("checkhealth bellboard")
    editor.shows(":ClaudeSessions belongs to another plugin")


def test_both_commands_are_the_same(nvim: Editors) -> None:
    """With the same completion."""
    editor = nvim(config={"auto_start": False}, ui=False)
    for name in ("ClaudeSessions", "Bellboard"):
        found = editor.lua("return vim.fn.getcompletion(... .. ' b', 'cmdline')", name)
        assert found == ["back", "board", "build"]
