"""doctor and :checkhealth: the same facts in a shell and in Neovim."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.claude.agent import ClaudeCode
from bellboard.agents.claude.installer import PLUGIN
from bellboard.agents.claude.versions import ABILITIES, OLDEST, abilities
from bellboard.agents.registry import (
    agent_of,
    all_agents,
    installable,
    measured,
    printable,
)
from bellboard.diagnosis import claude_code, diagnose, surroundings
from bellboard.diagnosis import state as diagnosis_of_state
from bellboard.diagnosis.fact import DIED, Fact
from bellboard.diagnosis.state import state
from bellboard.storage.database import SCHEMA
from bellboard.storage.spool import Spool
from bellboard.storage.store import Store
from bellboard.system import inotify
from bellboard.system.packaged import dotted
from live.stands import STANDS
from rig import warm
from rig.fetched.claude_code import VERSION
from rig.fixtures import Agents, Editors
from rig.home import Home
from rig.host.hosting import RecordedHost, made, put, put_raw, start
from rig.host.session_files import write_session_file
from rig.tmux import Server
from rig.waiting import eventually

__all__ = ["start"]


def bellboard(home: Home, *args: str) -> subprocess.CompletedProcess[str]:
    done = warm.run(["-m", "bellboard", *args], env=home.env, cwd=home.project)
    assert "Traceback" not in done.stderr
    return done


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 3 << 30)


def deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def doctor(home: Home) -> dict[str, str]:
    """Return the level of each fact, by text."""
    done = bellboard(home, "doctor", "--json")
    told = json.loads(done.stdout)
    levels = {fact["text"]: fact["level"] for fact in told["facts"]}
    wrong = {"warn", "error"} & set(levels.values())
    assert (not wrong, int(bool(wrong))) == (told["well"], done.returncode)
    return levels


def level(home: Home, part: str) -> str:
    """Return the level of the only fact with that text."""
    facts = doctor(home)
    [found] = [level for text, level in facts.items() if part in text] or [f"none of {facts}"]
    return found


def test_before_anything_is_set_up(home: Home) -> None:
    """Doctor creates no file, and offers hooks: the board works without them."""
    done = bellboard(home, "doctor")
    assert 0 == done.returncode
    for text in ("does not exist yet", "no database yet", "/bellboard hooks install"):
        assert text in done.stdout
    assert "No problems found." in done.stdout
    assert not home.bellboard.exists()


@pytest.mark.tmux
@pytest.mark.parametrize(("events", "levels"), [("on", []), ("off", ["info"])])
def test_missing_focus_events_in_tmux_are_reported(
    home: Home, tmux: Server, events: str, levels: list[str]
) -> None:
    """Where focus is reported, doctor says nothing of it."""
    tmux.open(["sleep", "60"])
    tmux.run("set-option", "-g", "focus-events", events)
    home.env["TMUX"] = f"{tmux.socket},1,0"
    facts = doctor(home).items()
    assert levels == [level for text, level in facts if "does not report which terminal" in text]


def test_all_is_well(home: Home, start: Callable[..., RecordedHost]) -> None:
    """With hooks installed and a host running, doctor lists the facts."""
    assert 0 == bellboard(home, "hooks", "install", "--yes", "--cli", "2.1.328").returncode
    host = start(options={"grace": 7})
    put(Spool(home.bellboard), "UserPromptSubmit")
    eventually(lambda: host.shown == {"s": "working"})
    facts = doctor(home)
    assert {"ok", "info"} >= set(facts.values()), facts
    said = "\n".join(facts)
    for text in (
        f"background process running: {host.pid} (",
        "1 session, 1 status change",
        f"shared options (`host`): grace 7; set by process {host.pid} ",
        f"{home.claude}/settings.json: ",
        "spool: 0 events waiting",
    ):
        assert text in said
    assert "No problems found." in bellboard(home, "doctor").stdout


@pytest.mark.parametrize("make", [os.mkfifo, huge, deep], ids=["a pipe", "3 GB", "a deep bomb"])
def test_doctor_does_not_report_an_odd_plugin_file(
    home: Home, make: Callable[[Path], object]
) -> None:
    """Such a file neither hangs doctor nor counts as a fault of bellboard."""
    folder = home.claude / f"plugins/cache/x/{PLUGIN}/1/.claude-plugin"
    folder.mkdir(parents=True)
    make(folder / "plugin.json")
    said = "\n".join(doctor(home))
    assert "hooks not installed" in said
    assert "the check failed" not in said and "no answer" not in said


def test_problems_with_the_state_are_reported(home: Home) -> None:
    """A damaged, newer or unreadable database comes with advice."""
    spool = made(home.bellboard)
    assert "info" == level(home, "no background process is running")
    home.bellboard.chmod(0o755)
    assert "warn" == level(home, "can be read by others")
    home.bellboard.chmod(0o700)
    spool.set_aside(put_raw(spool, b"junk"), "not an event")
    assert "warn" == level(home, "1 file in the spool could not be read")
    database = home.bellboard / "board.db"
    assert 0 == bellboard(home, "list").returncode
    with sqlite3.connect(database) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    db.close()
    assert "error" == level(home, "written by a newer bellboard")
    database.write_bytes(b"no database at all" * 999)
    assert "error" == level(home, "the database is damaged")
    for path in home.bellboard.iterdir():
        if path.is_file():
            path.unlink()
    home.bellboard.joinpath("board.db").mkdir()
    assert "info" == level(home, "no database yet")


def test_what_waits_although_a_host_runs_is_reported_with_why(
    home: Home, start: Callable[..., RecordedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its age, not the event's time; a host that is suspended is named, with advice."""
    host, spool = start(), Spool(home.bellboard)
    put(spool, "UserPromptSubmit")
    eventually(lambda: host.shown == {"s": "working"})
    assert "ok" == level(home, "spool: 0 events waiting")
    monkeypatch.setattr(diagnosis_of_state, "LONG", 0.5)
    monkeypatch.setattr(diagnosis_of_state, "RESCANNED", 0.5)

    def late() -> Fact:
        return next(f for f in state(home.bellboard) if "although" in f.text)

    def is_told() -> bool:
        return any("although" in fact.text for fact in state(home.bellboard))

    os.kill(host.pid, signal.SIGSTOP)
    try:
        put(spool, "Stop", t=time.time() - 9999)
        assert not is_told()
        eventually(is_told)
        text = rf"1 event has waited for \d s although process {host.pid} runs: it is suspended"
        assert re.fullmatch(text, late().text)
        assert f"kill -CONT {host.pid}" in late().advice
        put(spool, "Stop", "other")
        assert late().text.startswith("2 events have waited, the first for ")
        monkeypatch.setattr(diagnosis_of_state, "is_suspended", lambda pid: False)
        assert late().text.endswith(": it hangs or is too slow")
        spool.hosts.announce(host.pid, {"database": "cannot be written: full"})
        assert late().text.endswith(", as said above")
    finally:
        os.kill(host.pid, signal.SIGCONT)
    eventually(lambda: not is_told())


def test_hooks_that_did_not_finish_are_named(home: Home) -> None:
    """A minute after they began; what is just being written is not."""
    spool = made(home.bellboard)
    begun = home.bellboard / "spool/tmp/00001234.0.Stop"
    begun.write_text("bellboard 1")
    assert ["ok"] == [
        x for text, x in doctor(home).items() if "did not" in text or "spool: 0" in text
    ]
    assert [] == spool.unfinished(60)
    eventually(lambda: spool.unfinished(0.1))
    assert [begun.name] == spool.unfinished(0.1)


def test_what_failed_in_bellboard_itself_is_to_be_reported(home: Home) -> None:
    """The file is not at fault, although it is beside the reason: the traceback tells."""
    spool = made(home.bellboard)
    failed = "Traceback (most recent call last):\n  File …\nRuntimeError: a bug"
    spool.set_aside(put_raw(spool, b"{}"), "it cannot be folded", failed)
    facts = doctor(home)
    assert "warn" == facts["1 event failed in bellboard itself"]
    assert not [text for text in facts if "could not be read" in text]
    spool.set_aside(put_raw(spool, b"junk"), "not an event", "Traceback is a word")
    facts = doctor(home)
    assert "warn" == facts["1 event failed in bellboard itself"]
    assert "warn" == facts["1 file in the spool could not be read as an event"]


def test_a_file_in_place_of_the_state_folder_is_reported(home: Home) -> None:
    home.bellboard.write_text("in the way")
    home.env["BELLBOARD_HOME"] += "/below"
    assert "error" == level(home, "cannot access")


def test_problems_with_claude_code_are_reported(home: Home) -> None:
    """No folder; settings that are unreadable, lack events, or disable all hooks."""
    settings = home.claude / "settings.json"
    bellboard(home, "hooks", "install", "--yes", "--cli", "2.1.328")
    told = json.loads(settings.read_text())
    settings.write_text(json.dumps({"hooks": {"Stop": told["hooks"]["Stop"]}}))
    assert "warn" == level(home, "missing SessionStart")
    settings.write_text(json.dumps(told | {"disableAllHooks": True}))
    assert "warn" == level(home, "disabled by disableAllHooks")
    settings.write_text("{")
    assert "warn" == level(home, "settings.json: line 1")
    settings.write_text(json.dumps(told))
    (home.bellboard / "emit").unlink()
    assert "error" == level(home, "the script that the hooks run is missing")
    old = home.claude / "plugins/cache/somewhere/bellboard/0.0.1/.claude-plugin"
    old.mkdir(parents=True)
    (old / "plugin.json").write_text('{"name": "bellboard", "version": "0.0.1"}')
    assert "warn" == level(home, "plugin 0.0.1")
    (old.parent / ".orphaned_at").touch()  # Claude Code removes it some days after an update
    assert not [text for text in doctor(home) if "plugin 0.0.1" in text]
    (home.claude / "sessions").mkdir()
    (home.claude / "sessions" / "1.json").write_text("{")
    assert "warn" == level(home, "1.json: cannot be parsed")
    home.env["CLAUDE_CONFIG_DIR"] = "/nowhere"
    assert "warn" == level(home, "Claude Code is not installed: there is no /nowhere")


def test_who_uses_another_agent_need_not_install_claude_code(home: Home) -> None:
    """Without Claude Code, a missing folder is no fault."""
    env = {**home.env, "HOME": str(home.root)}
    env = {name: value for name, value in env.items() if name != "CLAUDE_CONFIG_DIR"}
    missing = "Claude Code is not installed"
    levels = lambda: [f.level for f in claude_code.installed(env) if missing in f.text]  # noqa: E731
    assert levels() == ["warn"]
    (home.root / ".codex").mkdir()
    assert levels() == ["info"]
    env["CLAUDE_CONFIG_DIR"] = "/nowhere"
    assert levels() == ["warn"]


def test_each_agent_on_path_is_named_with_how_it_is_known(home: Home) -> None:
    """Nothing is started to find that out.  Hooks that the user has added are noticed."""
    home.env["HOME"] = str(home.root)
    for cli in all_agents():
        if cli.program and cli.key != "claude":
            program = home.bin / cli.program
            program.write_text(f"#!/bin/sh\ntouch '{home.root}/started'\nexec sleep 99\n")
            program.chmod(0o755)
    facts = diagnose(home.bellboard, home.env, home.project)
    hooks = [fact for fact in facts if fact.section == "hooks"]
    assert not (home.root / "started").exists()
    for cli in installable():
        [about] = [fact for fact in hooks if fact.text.startswith(f"{cli.name}: ")]
        assert about.text.startswith(f"{cli.name}: hooks not installed")
        assert about.advice.endswith(f" hooks install --agent {cli.key}")
    for cli in printable():
        [about] = [fact for fact in hooks if fact.text.startswith(f"{cli.name}: ")]
        known = f"{cli.name}: {home.bin / cli.program}: "
        known += "" if cli in measured() else "known by its documentation only; "
        assert about.text == f"{known}you add its hooks to {cli.place}"
        assert about.advice.endswith(f" hooks print --agent {cli.key}")
        assert about.level == "info"
        path = home.root / cli.place.removeprefix("~/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(bellboard(home, *about.advice.split()[-4:]).stdout)
        [now] = [
            fact
            for fact in surroundings.hooks(home.bellboard, home.env, home.project)
            if fact.text.startswith(f"{cli.name}: ")
        ]
        assert now == Fact("ok", f"{known}bellboard's hooks are in {cli.place}")


@pytest.mark.parametrize(
    ("there", "level"), [("0.18.6", "error"), ("0.19", "ok"), ("0.19.0rc1", "ok"), ("1.0", "ok")]
)
def test_a_package_that_is_too_old_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, level: str
) -> None:
    """With what to install."""
    (metadata := tmp_path / "msgspec-0.dist-info" / "METADATA").parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: msgspec\nVersion: {there}\n")
    monkeypatch.syspath_prepend(tmp_path)
    [fact] = [fact for fact in diagnosis_of_state.versions() if f"msgspec {there}" in fact.text]
    assert level == fact.level
    assert ("'msgspec>=0.19'" in fact.advice) == (level == "error")


def test_advice_can_be_pasted_into_a_shell(home: Home) -> None:
    """Folders may have any name."""
    spool = made(home.root / "my state")
    spool.home.chmod(0o755)
    [fact] = [fact for fact in state(spool.home) if "can be read by others" in fact.text]
    assert fact.advice == f"chmod 700 '{spool.home}'"


def test_a_check_that_fails_hides_no_other(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is reported, and the other checks run."""

    def broken(_: object) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr("bellboard.diagnosis.state.database", broken)
    facts = diagnose(home.bellboard, home.env, home.project)
    [failed] = [fact for fact in facts if fact.section == "database"]
    assert failed.level == "error"
    assert failed.text.startswith("the check failed: internal error: broken")
    assert failed.advice == "please report this"
    assert "system" == facts[-1].section


def test_a_check_that_is_killed_is_reported(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's memory may be cut off under it, or there may be none left."""

    def killed(_: object) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("bellboard.diagnosis.state.database", killed)
    facts = diagnose(home.bellboard, home.env, home.project)
    assert [("error", DIED)] == [fact[:2] for fact in facts if fact.section == "database"]


@pytest.mark.core
def test_every_version_has_its_abilities() -> None:
    """Only measured abilities are listed; the newest version reports everything."""
    for version in (OLDEST, (2, 1, 76), (2, 1, 119), (2, 1, 197), (2, 1, 328)):
        assert ABILITIES.keys() == abilities(version).keys()
    assert all(ability.source for ability in abilities((2, 1, 328)).values())
    assert abilities(OLDEST) == abilities((1, 0, 0))
    assert "" == abilities((2, 1, 118))["Esc before any output"].source
    assert "session file" == abilities((2, 1, 119))["Esc before any output"].source


@pytest.mark.house
def test_the_newest_tested_version_of_each_cli_is_the_one_that_tests_run() -> None:
    """A CLI that no test runs names no version, so nobody is told that theirs is newer."""
    pinned = {key: stand.version for key, stand in STANDS.items()}
    pinned["claude"] = VERSION
    tested = {cli.key: dotted(cli.tested) for cli in all_agents() if cli.tested}
    assert tested == pinned, "`tested` of an agent is the version in tests/live/stands.py, if any"


@pytest.mark.parametrize("on_path,running", [(0, 0), (0, 1), (2, 1)])
def test_a_version_that_is_newer_than_any_tested_one_is_named_once(
    home: Home, on_path: int, running: int
) -> None:
    """The newest that runs or is on PATH, as information: nothing is wrong with it."""

    def later(by: int) -> str:
        return dotted((*ClaudeCode.tested[:-1], ClaudeCode.tested[-1] + by))

    program = home.bin / "claude"
    program.write_text(f"#!/bin/sh\necho '{later(on_path)} (Claude Code)'\n")
    program.chmod(0o755)
    write_session_file(home, "idle", version=later(running))
    newest = max(on_path, running)
    told = [f for f in diagnose(home.bellboard, home.env, home.project) if "is newer" in f.text]
    assert ["info"] * bool(newest) == [fact.level for fact in told]
    start = f"Claude Code {later(newest)} is newer than {later(0)}, "
    assert all(fact.text.startswith(start) for fact in told)


def test_the_package_of_another_cli_shows_that_it_is_newer(home: Home, tmp_path: Path) -> None:
    """The package's `bin` names the program, which is not started."""
    program = tmp_path / "node_modules/@openai/codex/bin/codex.js"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (home.bin / "codex").symlink_to(program)

    def told(version: str, installs: str) -> list[str]:
        package = {"name": "x", "version": version, "bin": {installs: "bin/codex.js"}}
        (program.parents[1] / "package.json").write_text(json.dumps(package))
        facts = diagnose(home.bellboard, home.env, home.project)
        return [fact.text for fact in facts if "is newer" in fact.text]

    tested = dotted(agent_of("codex").tested)
    assert [] == told(tested, "codex")
    assert [] == told("99.0.0", "another")
    [text] = told("99.0.0-beta.1", "codex")
    assert text.startswith(f"Codex 99.0.0 is newer than {tested}, ")


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_watches_in_use_are_counted(tmp_path: Path) -> None:
    """Including ours."""

    async def look() -> tuple[inotify.Usage | None, inotify.Usage | None]:
        before = inotify.usage()
        watch = inotify.Inotify(lambda entries: None)
        for n in range(2000):  # other processes start and end meanwhile
            (tmp_path / str(n)).mkdir()
            path = str(tmp_path / str(n))
            watch.add(path, watch.armer(path, False), arrivals=False)
        after = inotify.usage()
        watch.close()
        return before, after

    before, after = asyncio.run(look())
    assert before and after
    assert before.watches + 1000 < after.watches < after.most_watches
    assert 0 < after.instances


@pytest.mark.live
def test_running_versions_are_listed_with_their_abilities(claude: Agents, home: Home) -> None:
    """The newest is listed in full, older ones by the abilities that they lack."""
    claude(version="2.1.76"), claude()  # its settings suit both
    files = home.claude / "sessions"
    eventually(lambda: len([*files.glob("*.json")]) == 2, "the file of the older one")
    facts = doctor(home)
    old = "version 2.1.76 or a little later: 1 session"
    assert {f"version {VERSION}: 1 session", old} <= set(facts)
    assert "Esc before any output: at once (session file)" in facts
    assert "2.1.76: Esc before any output: never; marked as quiet after 10 minutes" in facts
    assert "2.1.76: killed processes: at once (processes)" not in facts


@pytest.mark.editor
def test_checkhealth_says_what_doctor_says(nvim: Editors, home: Home, version: str) -> None:
    """Word for word; the running host adds what only it knows."""
    config: dict[str, Any] = {"python": sys.executable}
    editor = nvim(version, config, ui=False)
    eventually(lambda: editor.lua("return require('bellboard').health().watch"), "a host")

    def reported() -> str:
        """Return the report and the doctor's, taken at the same moment."""
        editor.command("checkhealth bellboard")
        lines = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
        report = str(editor.lua(lines))
        told = (re.sub(r" (just now|\w+ ago)$", "", text) for text in doctor(home))
        same = [text for text in told if "inotify:" not in text and str(home.project) not in text]
        assert [] == [text for text in same if text not in report], report
        return report

    report = eventually(reported)
    for text in ("bellboard: hooks", "bellboard hooks install", "watch: inotify", "running: "):
        assert text in report


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize(
    "name", ["spool/new", "hosts", "links", "board.lock", "drain.lock", "board.db-wal"]
)
def test_what_belongs_to_another_user_is_named(home: Home, name: str) -> None:
    """Every command refuses it."""
    Spool(home.bellboard).prepare()
    (path := home.bellboard / name).touch()
    os.chown(path, 65534, 65534)
    facts = diagnose(home.bellboard, home.env, home.project)
    assert [name in fact.text for fact in facts if fact.level == "error"].count(True) == 1
    assert not [fact for fact in facts if "please report" in fact.advice]


def test_a_folder_of_claude_that_is_relative_is_named(home: Home) -> None:
    """Each program would take it for another one."""
    home.env["CLAUDE_CONFIG_DIR"] = "."
    facts = diagnose(home.bellboard, home.env, home.project)
    assert [f for f in facts if "CLAUDE_CONFIG_DIR is not an absolute path" in f.text]


def test_a_pipe_beside_the_database_is_named(home: Home) -> None:
    """SQLite would wait for it, though a database with a log has no journal."""
    Spool(home.bellboard).prepare()
    Store(home.bellboard).close()
    os.mkfifo(home.bellboard / "board.db-journal")
    facts = diagnose(home.bellboard, home.env, home.project)
    assert [f for f in facts if "board.db-journal is not a file" in f.text]
