"""Installing hooks and starting sessions from Neovim, with a CLI that records its arguments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bellboard.storage.spool import Spool
from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.host.hosting import opened
from rig.waiting import eventually

VERSION = "2.1.328"
#: `auto_start` off: only what a command starts is running.
OPTIONS: dict[str, Any] = {
    "auto_start": False,
    "python": sys.executable,
}


@pytest.fixture
def claude(home: Home) -> Path:
    """Make a CLI that prints its version, or writes its arguments to a file as JSON and waits."""
    path = home.bin / "claude"
    path.write_text(
        f"""#!{sys.executable}
import json, os, sys, time
if sys.argv[1:] == ["--version"]:
    sys.exit(print("{VERSION} (Claude Code)"))
told = {{"argv": sys.argv[1:], "cwd": os.getcwd(), "NVIM": os.environ.get("NVIM")}}
with open("{home.root}/told.tmp", "w") as file:
    json.dump(told, file)
os.rename("{home.root}/told.tmp", "{home.root}/told")
print("an agent", flush=True)
time.sleep(1000)
"""
    )
    path.chmod(0o755)
    return path


def told(home: Home) -> dict[str, Any]:
    """Return the arguments that the CLI was started with."""
    found: dict[str, Any] = json.loads(eventually((home.root / "told").exists) and read(home))
    return found


def read(home: Home) -> str:
    return (home.root / "told").read_text()


def says(editor: Editor, text: str) -> str:
    """Wait for a message."""

    def look() -> str:
        messages = editor.messages()
        assert text in messages, f"no {text!r} in:\n{messages}"
        return messages

    return eventually(look)


def answer(editor: Editor, text: str, reply: str = "y") -> None:
    """Wait for a question in the terminal of an install, and answer it."""
    editor.shows(text)
    editor.lua("vim.fn.chansend(vim.bo.channel, ...)", f"{reply}\n")


def ended(editor: Editor) -> str:
    """Close the terminal of an install; return what it showed."""
    editor.shows("Process exited")
    text = editor.screen.text
    editor.command("bwipeout!")
    editor.hides("Process exited")
    return text


def test_install_shows_the_change_and_makes_it(
    nvim: Editors, version: str, home: Home, claude: Path
) -> None:
    """In a terminal, as in a shell; a second time nothing to do; uninstall reverts it."""
    settings = home.claude / "settings.json"
    before = '{\n  "model": "opus"\n}\n'
    settings.write_text(before)
    editor = nvim(version, OPTIONS, columns=180, lines=50)
    editor.command("ClaudeSessions install")
    editor.shows("Write this to ~/claude/settings.json? [y/N]")
    assert settings.read_text() == before
    answer(editor, "[y/N]", "")
    assert "nothing was changed" in ended(editor)
    assert settings.read_text() == before
    editor.command("ClaudeSessions install --user")
    answer(editor, "[y/N]")
    assert "next: start an agent" in ended(editor)
    installed = json.loads(settings.read_text())
    assert installed["model"] == "opus"
    assert {"Stop", "StopFailure"} <= set(installed["hooks"])  # as that version knows them
    editor.command("ClaudeSessions install")
    assert "the hooks are already in" in ended(editor)
    editor.command("ClaudeSessions uninstall --dry-run")
    ended(editor)
    assert json.loads(settings.read_text()) == installed
    editor.command("ClaudeSessions uninstall")
    answer(editor, "[y/N]")
    ended(editor)
    assert settings.read_text() == before


def test_your_own_version_of_the_cli_wins(nvim: Editors, home: Home, claude: Path) -> None:
    """The hooks are for the version in the command, however it is written."""
    editor = nvim(config=OPTIONS)
    for form in ("--cli 2.0.76", "--cli=2.0.76"):
        editor.command(f"ClaudeSessions install --dry-run {form}")
        editor.shows("[Process exited 0]")
        shown = "\n".join(editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)"))
        assert '"Stop": [' in shown
        assert '"StopFailure": [' not in shown
        ended(editor)


def test_install_shows_the_changes_of_all_agents(
    nvim: Editors, version: str, home: Home, claude: Path
) -> None:
    """Changes come one after the other, and a file that cannot be changed is named."""
    (home.claude / "settings.json").write_text('{"model": }')
    codex, opencode = home.root / ".codex", home.root / "config/opencode"
    codex.mkdir()
    opencode.mkdir(parents=True)
    editor = nvim(version, OPTIONS, columns=180, lines=50)
    editor.command("ClaudeSessions install")
    answer(editor, "Write this to ~/.codex/hooks.json?")
    answer(editor, "plugins/bellboard.js? [y/N]")
    editor.shows("[Process exited 1]")
    shown = "".join(editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)"))
    assert "a value, not }; nothing was written" in shown
    assert (opencode / "plugins/bellboard.js").exists()
    assert "Stop" in json.loads((codex / "hooks.json").read_text())["hooks"]
    assert (home.claude / "settings.json").read_text() == '{"model": }'
    ended(editor)
    editor.command("ClaudeSessions uninstall --agent codex")
    answer(editor, "Write this to ~/.codex/hooks.json?")
    eventually(lambda: not (codex / "hooks.json").exists(), "the hooks of Codex to be removed")


def test_lost_hooks_are_reported_with_the_command_to_restore_them(
    nvim: Editors, version: str, home: Home, claude: Path
) -> None:
    """Another program wrote old settings back: one line says so, and what to run."""
    settings = home.claude / "settings.json"
    editor = nvim(version, OPTIONS, columns=100 if version == "0.12" else 60, lines=20)
    editor.command("ClaudeSessions install --yes")
    ended(editor)
    installed = settings.read_text()
    settings.write_text("{}")
    where = " from ~/claude/settings.json" if version == "0.12" else ""  # as far as it fits
    editor.shows(f"bellboard: hooks gone{where}; :ClaudeSessions install")
    settings.write_text(installed)
    eventually(lambda: not editor.lua("return require('bellboard').health().notes.hooks"))


def test_a_failed_install_is_reported(nvim: Editors, home: Home, claude: Path) -> None:
    """A broken file with its line; a missing interpreter by its name."""
    (home.claude / "settings.json").write_text('{"model": }')
    editor = nvim(config=OPTIONS, columns=180)
    editor.command("ClaudeSessions install")
    editor.shows("line 1: expecting a value")
    broken = nvim(config={**OPTIONS, "python": "/nowhere/python"}, ui=False)
    broken.lua("require('bellboard').run('install')")
    says(broken, '"/nowhere/python"')


def test_a_new_session_has_hooks_of_its_own(
    nvim: Editors, version: str, home: Home, claude: Path
) -> None:
    """In a terminal buffer, with our arguments and yours; no file is written."""
    editor = nvim(version, OPTIONS, columns=100, lines=30)
    editor.command("ClaudeSessions new --model opus")
    found = told(home)
    assert found["argv"][0] == "--settings"
    assert found["argv"][2:] == ["--model", "opus"]
    assert found["cwd"] == str(home.project)
    assert found["NVIM"] == str(editor.socket)
    editor.shows("an agent")
    assert editor.lua("return vim.bo.buftype") == "terminal"
    assert editor.lua("return #vim.api.nvim_list_wins()") == 2
    assert not (home.claude / "settings.json").exists()
    eventually((home.bellboard / "board.db").exists, "the host")
    hooks = json.loads(found["argv"][1])["hooks"]
    for event, (group,) in hooks.items():
        payload = json.dumps({"hook_event_name": event, "session_id": "s"})
        command = group["hooks"][0]["command"]
        subprocess.run(["sh", "-c", command], input=payload, text=True, env=home.env, check=True)

    def rung() -> set[str]:
        with opened(home.bellboard) as shared:
            return {row.event.name for row in shared.store.log()}

    eventually(lambda: set(hooks) <= rung(), "every event, in this Neovim's host")


def test_your_own_settings_argument_wins(nvim: Editors, home: Home, claude: Path) -> None:
    """In the command or the option: the CLI reads only the first."""
    editor = nvim(config=OPTIONS, ui=False)
    mine = ["--settings", "mine.json"]
    for option, typed in ([], mine), ([], ["--settings=mine.json"]), (mine, ["--verbose"]):
        editor.lua("require('bellboard').setup({ claude = ... })", [str(claude), *option])
        editor.command(" ".join(["ClaudeSessions new", *typed]))
        assert told(home)["argv"] == [*option, *typed]
        (home.root / "told").unlink()


def test_a_session_gets_a_worktree_and_a_prompt(nvim: Editors, home: Home, claude: Path) -> None:
    """With the words of the shell; what is found there already is said."""
    for words in ("init -q -b main", "-c user.name=a -c user.email=a@b commit -qm x --allow-empty"):
        subprocess.run(["git", *words.split()], cwd=home.project, env=home.env, check=True)
    editor = nvim(config=OPTIONS, columns=100)
    editor.command("ClaudeSessions new --worktree api fix the tests")
    found = told(home)
    assert found["argv"][0] == "--settings"
    assert found["argv"][2:] == ["--", "fix the tests"]
    assert found["cwd"] == str(home.root / "project.worktrees/api")
    (home.root / "told").unlink()
    editor.command("ClaudeSessions new --worktree api --model opus")
    assert told(home)["argv"][2:] == ["--model", "opus"]
    says(editor, "exists, on branch api")
    editor.command("ClaudeSessions new --agent kimi --worktree web fix it")
    editor.shows("Kimi Code takes no prompt when it starts")
    assert not (home.root / "project.worktrees/web").exists()


def test_another_agent_is_started_and_resumed(nvim: Editors, home: Home, claude: Path) -> None:
    """By its name, and with its own arguments; an id is never taken for an option."""
    claude.rename(home.bin / "codex")
    editor = nvim(config=OPTIONS, ui=False)
    editor.command("ClaudeSessions new --agent codex --model x")
    assert told(home)["argv"] == ["--model", "x"]
    editor.command("ClaudeSessions new --agent gpt")
    says(editor, 'unknown agent "gpt"; choose one of claude, codex')
    (home.root / "told").unlink()
    spool = Spool(home.bellboard)
    for sid in ("t1", "--yolo"):
        (home.root / "log.jsonl").write_text("")
        common = {"session_id": sid, "cwd": str(home.project)}
        common["transcript_path"] = str(home.root / "log.jsonl")
        for back, event in enumerate(("SessionStart", "UserPromptSubmit", "SessionEnd")):
            hook = {**common, "hook_event_name": event, "prompt": "do it"}
            origin = {"agent": "codex"}
            spool.write({"t": time.time() - 9 + back, "hook": hook, "origin": origin})
    editor.lua("vim.ui.select = function(items, opts, done) vim.g.n = #items done(items[1]) end")
    editor.command("ClaudeSessions resume --search")
    assert told(home)["argv"] == ["resume", "t1", "--search"]
    assert editor.lua("return vim.g.n") == 1


def test_an_agent_whose_hooks_are_added_by_hand_is_started(
    nvim: Editors, home: Home, claude: Path
) -> None:
    """The agent needs a program on PATH, and no file that bellboard knows."""
    editor = nvim(config=OPTIONS, ui=False)
    for agent, program in {"goose": "goose", "cursor": "cursor-agent"}.items():
        (home.bin / program).symlink_to(claude)
        editor.command(f"ClaudeSessions new --agent {agent} --model x")
        assert told(home)["argv"] == ["--model", "x"]
        (home.root / "told").unlink()
    editor.command("ClaudeSessions new --agent amp")
    says(editor, '"amp" is not on PATH')


def test_a_missing_cli_is_reported(nvim: Editors, home: Home) -> None:
    """The message names the option to set."""
    editor = nvim(config={**OPTIONS, "claude": "no-such-claude"}, ui=False)
    editor.command("ClaudeSessions new")
    assert ":help g:bellboard.claude" in says(editor, '"no-such-claude" is not on PATH')


def test_the_command_may_be_a_list(nvim: Editors, home: Home, claude: Path) -> None:
    """And the terminal may go elsewhere."""
    options = {**OPTIONS, "claude": [str(claude), "--verbose"], "launch": {"layout": "tab"}}
    editor = nvim(config=options, ui=False)
    editor.command("ClaudeSessions new")
    assert told(home)["argv"][:2] == ["--verbose", "--settings"]
    eventually(lambda: editor.lua("return #vim.api.nvim_list_tabpages()") == 2)


def test_an_ended_session_is_resumed(nvim: Editors, home: Home, claude: Path) -> None:
    """Sessions from this directory with a transcript are offered, newest first."""
    spool = Spool(home.bellboard)
    spool.prepare()
    now = time.time()
    elsewhere = home.root / "elsewhere"
    for n, (sid, cwd) in enumerate(
        (("old", home.project), ("new", home.project), ("gone", home.project), ("far", elsewhere))
    ):
        transcript = home.root / f"{sid}.jsonl"
        if sid != "gone":
            transcript.write_text("")
        common = {"session_id": sid, "cwd": str(cwd), "transcript_path": str(transcript)}
        for back, event in enumerate(("SessionStart", "UserPromptSubmit", "SessionEnd")):
            hook = {**common, "hook_event_name": event, "prompt": f"do {sid}"}
            if event == "SessionEnd" and sid == "new":
                named = {"session_id": sid, "name": "over\u202ehaul"}
                spool.write({"t": now - 100 + 10 * n + back, "name": named})
            spool.write({"t": now - 100 + 10 * n + back, "hook": hook})
    editor = nvim(config=OPTIONS, ui=False)
    editor.lua(
        "vim.ui.select = function(items, opts, done) "
        "vim.g.shown = vim.tbl_map(opts.format_item, items) done(items[2]) end"
    )
    editor.command("ClaudeSessions resume --verbose")
    argv = told(home)["argv"]
    assert argv[2:] == ["--resume", "old", "--verbose"]
    shown = editor.lua("return vim.g.shown")
    assert ["over haul" in shown[0], "do old" in shown[1], len(shown)] == [True, True, 2]


def test_output_that_cannot_be_read_is_reported_as_such(nvim: Editors) -> None:
    """The program gave no reason."""
    editor = nvim(config={"auto_start": False, "python": ["echo", "nonsense"]}, columns=100)
    editor.command("ClaudeSessions resume")
    editor.shows('cannot read what "bellboard list" printed. See :checkhealth bellboard')


def test_nothing_to_resume_is_reported(nvim: Editors, home: Home, claude: Path) -> None:
    editor = nvim(config=OPTIONS, ui=False)
    editor.command("ClaudeSessions resume")
    says(editor, "no session to resume in this directory")
    assert not os.path.exists(home.root / "told")  # noqa: PTH110


def test_the_board_keeps_the_focus_until_a_session_is_chosen(
    nvim: Editors, home: Home, claude: Path
) -> None:
    """Else a key of the board could act on the user's text, with nothing to resume or choose."""
    editor = nvim(config={**OPTIONS, "launch": {"layout": "current"}}, ui=False)
    editor.lua("vim.ui.select = function(items, _, done) _G.choose = done _G.items = items end")
    editor.command("ClaudeSessions board")
    there = "return vim.api.nvim_buf_get_name(0) == 'bellboard://board'"
    editor.press("o")
    says(editor, "no session to resume in this directory")
    assert editor.lua(there)
    spool = Spool(home.bellboard)
    spool.prepare()
    transcript = home.root / "old.jsonl"
    transcript.write_text("")
    common = {"session_id": "old", "cwd": str(home.project), "transcript_path": str(transcript)}
    for back, event in enumerate(("SessionStart", "UserPromptSubmit", "SessionEnd")):
        hook = {**common, "hook_event_name": event, "prompt": "do it"}
        spool.write({"t": time.time() - 100 + back, "hook": hook})
    editor.press("o")
    eventually(lambda: editor.lua("return items ~= nil"), "the list")
    assert editor.lua(there)
    editor.lua("choose(nil)")
    assert editor.lua(there)
    editor.lua("choose(items[1])")
    assert told(home)["argv"][2:] == ["--resume", "old"]
    eventually(lambda: editor.lua("return vim.bo.buftype") == "terminal", "the terminal")
    assert editor.lua("return vim.fn.bufwinid('bellboard://board')") > 0


def test_arguments_are_completed(nvim: Editors) -> None:
    editor = nvim(config=OPTIONS, ui=False)
    code = "return vim.fn.getcompletion('ClaudeSessions ' .. ..., 'cmdline')"
    for typed, offered in {
        "install --": ["--agent", "--all", "--user", "--project", "--local", "--settings"],
        "new ": ["--agent", "--worktree"],
        "new --agent co": ["codex", "copilot"],
        "new --agent codex --w": ["--worktree"],
        "new --worktree ": [],
        "new --worktree api ": ["--agent", "--worktree"],
        "new fix --": [],
    }.items():
        assert editor.lua(code, typed) == offered, typed
    assert {"install", "uninstall", "new", "resume"} <= set(editor.lua(code, ""))
