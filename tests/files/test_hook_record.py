"""The record of where hooks are, the script that they run, and the hosts that guard both."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bellboard.agents.claude.agent import ClaudeCode
from bellboard.agents.claude.installer import project_file
from bellboard.agents.installing import hook_record
from bellboard.agents.installing.guard import check_file, note_reported
from bellboard.agents.installing.installer import FileChange, Installer, SettingsError
from bellboard.agents.registry import agent_of, installable
from bellboard.system import files
from rig import ROOT
from rig.home import Home
from rig.host.hosting import RecordedHost, made
from rig.shell import run
from rig.waiting import eventually

Start = Callable[..., RecordedHost]
MINE = '{"model": "opus"}\n'
SPOILT = ("{", "[1]", '{"/a/x.json": {"events": {"Stop": 2}}}')  # the last: by a newer version


@pytest.fixture
def work(home: Home) -> Installer:
    """Install the hooks into a user's settings."""
    installer = ClaudeCode().installer(home.bellboard, home.env)
    installer.user_file().write_text(MINE)
    installer.apply(installer.put_in(installer.user_file()))
    return installer


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_a_stranger_recorded_is_not_believed(work: Installer) -> None:
    """A record of installed hooks names files that an uninstall would write to."""
    assert [str(work.user_file())] == [*hook_record.hooked_files(work.home)]
    os.chown(work.home, 54_321, 54_321)
    assert {} == hook_record.hooked_files(work.home)


@pytest.mark.parametrize("text", SPOILT)
def test_a_record_that_cannot_be_read_is_not_written(work: Installer, text: str) -> None:
    """The record is the only knowledge about files elsewhere: nobody may take it for empty."""
    record, path = hook_record.record(work.home), work.user_file()
    settings, change = path.read_bytes(), work.take_out(path)
    record.write_text(text)
    with pytest.raises(OSError, match="not a record"):
        note_reported(work.home, str(path), True)
    for act in (work.put_in, work.take_out):
        with pytest.raises(SettingsError, match=r"cannot read .*hooks\.json: not a record"):
            act(path)
    with pytest.raises(OSError, match="not a record"):
        work.apply(change)
    assert record.read_text() == text
    assert path.read_bytes() == settings


def test_without_the_record_an_uninstall_is_not_said_to_be_done(
    home: Home, work: Installer
) -> None:
    """Hooks would stay in files that only the record names; doctor says so, too."""
    elsewhere = home.root / "elsewhere.json"
    work.apply(work.put_in(elsewhere))
    work.apply(work.take_out(work.user_file()))
    record = hook_record.record(work.home)
    kept = record.read_bytes()
    record.write_text("{")
    for command in (["uninstall", "--yes"], ["doctor"]):
        said = run(home, *command, code=1)
        assert f"cannot read {record}: not a record" in " ".join(said.split())
    record.write_bytes(kept)
    run(home, "uninstall", "--yes")
    assert not elsewhere.exists()


def test_fields_of_a_newer_version_are_kept(work: Installer) -> None:
    record, path = hook_record.record(work.home), str(work.user_file())
    known = json.loads(record.read_text())
    known[path]["later"] = {"of": ["any", "kind"]}
    record.write_text(json.dumps(known))
    assert note_reported(work.home, path, True) is True
    known[path]["told"] = True
    assert json.loads(record.read_text()) == known
    work.apply(work.put_in(Path(path)))
    assert json.loads(record.read_text())[path]["later"] == known[path]["later"]


def test_a_record_that_cannot_be_written_is_said_to_be_behind(work: Installer) -> None:
    """The settings were written by then: another run completes it."""
    path = work.user_file()
    path.write_text("{}")
    change = work.put_in(path)
    with contextlib.ExitStack() as held:

        def is_locked() -> None:
            lock = held.enter_context((work.home / "hooks.lock").open("r+"))
            fcntl.flock(lock, fcntl.LOCK_EX)

        around_writing(work, after=is_locked)
        with pytest.raises(SettingsError, match=r"is as it should be, but .*hooks\.json does not"):
            work.apply(change)
    assert files.content(path) == change.new
    assert hook_record.hooked_files(work.home)[str(path)].events == []
    again = ClaudeCode().installer(work.home, work._environ)
    again.apply(again.put_in(path))
    assert hook_record.hooked_files(work.home)[str(path)].events == list(change.events)


def around_writing(
    work: Installer, before: Callable[[], object] = bool, after: Callable[[], object] = bool
) -> None:
    """Do something before a file is written, or after that and before it is recorded."""
    write = work._write

    def write_between(change: FileChange) -> Path | None:
        before()
        backup = write(change)
        after()
        return backup

    work._write = write_between  # type: ignore[method-assign]


def test_a_simultaneous_uninstall_does_not_fail(work: Installer) -> None:
    """The record may be gone before the file is written."""
    path = work.user_file()
    path.write_text("{}")

    def forget() -> None:
        with hook_record.changing(work.home) as hooked:
            hooked.clear()

    around_writing(work, before=forget)
    work.apply(work.put_in(path))
    assert hook_record.hooked_files(work.home)[str(path)].events


def test_an_install_at_the_same_moment_stays_recorded(work: Installer) -> None:
    """A refused process takes back only its own note: uninstall restores the bytes."""
    other = ClaudeCode().installer(work.home, work._environ)
    path = work.user_file()
    other.apply(other.take_out(path))
    path.write_text('{\n  "hooks": {}\n}\n')
    before = path.read_bytes()
    mine, theirs = work.put_in(path), other.put_in(path)
    around_writing(work, before=lambda: other.apply(theirs))
    with pytest.raises(SettingsError, match="has changed since"):
        work.apply(mine)
    assert hook_record.hooked_files(work.home)[str(path)].events
    other.apply(other.take_out(path))
    assert path.read_bytes() == before


def test_the_script_gets_its_mode_back(home: Home) -> None:
    """A host was killed before it had set it, or a backup without modes was restored."""
    made(home.bellboard)
    hook_record.keep_script(home.bellboard)
    script = hook_record.script(home.bellboard)
    script.chmod(0o600)
    hook_record.keep_script(home.bellboard)
    assert 0o700 == script.stat().st_mode & 0o777


def test_a_wheel_contains_the_script(tmp_path: Path) -> None:
    package = tmp_path / "bellboard"
    shutil.copytree(ROOT / "rplugin/python3/bellboard", package)
    shutil.copytree(ROOT / "hooks", package / "hooks")
    code = "from bellboard.agents.installing import hook_record; print(hook_record.shipped())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(package / "hooks/emit")


# ---------------------------------------------------------------- hosts


def test_lost_hooks_are_reported_once(home: Home, work: Installer, start: Start) -> None:
    """One editor reports them; health does until they are back or were removed with bellboard."""
    file = work.user_file()
    editors = [start("one", server="x"), start("two", server="y")]
    server = start("three")
    text = file.read_text()
    file.write_text(MINE)  # by a program that had read it before
    for host in (*editors, server):
        host.says("hooks gone from ~/claude/settings.json")
    eventually(lambda: sum("vanished" in h.health for h in editors) == 1, "one that reports it")
    assert "vanished" not in server.health
    file.write_text(text)
    for host in (*editors, server):
        eventually(lambda host=host: not host.note, "no more complaint")
    eventually(lambda: not any("vanished" in h.health for h in editors), "nothing to report")
    work.apply(work.take_out(file))
    assert file.read_text() == MINE
    other = project_file(home.project)
    work.apply(work.put_in(other))  # hosts see this after the change before it
    other.unlink()
    for host in (*editors, server):
        host.says("hooks gone from ~/project/.claude/settings.json")
        host.says(f"hooks install --settings {other}`")
        assert "~/claude" not in host.note


def test_lost_hooks_of_any_cli_are_reported(home: Home, start: Start) -> None:
    """Each complaint names the file; without an editor, nobody is said to have been told."""
    run(home, "hooks", "install", "--yes", "--all")
    host = start("one")
    paths = [cli.installer(home.bellboard, home.env).user_file() for cli in installable()]
    for path in paths:
        path.unlink()
    for path in paths:
        host.says(f"hooks gone from ~/{path.relative_to(home.root)}")
    assert "vanished" not in host.health
    assert not any(each.reported for each in hook_record.hooked_files(home.bellboard).values())


def test_a_plugin_of_another_version_is_noticed(home: Home, start: Start) -> None:
    """The host, `hooks check` and the doctor say so until this version is installed."""
    run(home, "hooks", "install", "--yes", "--agent", "opencode")
    plugin = agent_of("opencode").installer(home.bellboard, home.env).user_file()
    plugin.write_text(plugin.read_text() + "// as another version wrote it\n")
    host = start("one", server="x")
    host.says(f"~/{plugin.relative_to(home.root)} is from another version")
    said = run(home, "hooks", "check", "--agent", "opencode", code=1)
    assert "installed; from another version" in said
    assert "from another version" in run(home, "doctor", code=1)
    run(home, "hooks", "install", "--yes", "--agent", "opencode")
    run(home, "hooks", "check", "--agent", "opencode")


def test_a_file_that_says_nothing_about_hooks_has_lost_none(home: Home, work: Installer) -> None:
    """A program is writing it; or a newer bellboard recorded hooks of an agent unknown here."""
    path = home.project / "hooks.json"
    for agent, text in (("unheard", "{}"), ("claude", "{")):
        path.write_text(text)
        hooked = hook_record.HookedFile(events=["Stop"], agent=agent)
        assert check_file(home.bellboard, home.env, str(path), hooked, None).gone is None


def test_hooks_are_guarded_while_the_record_cannot_be_read(work: Installer, start: Start) -> None:
    """The host reports the fault, and remembers the last record."""
    path, record = work.user_file(), hook_record.record(work.home)
    host = start("one", server="x")
    settings, kept = path.read_text(), record.read_text()
    path.write_text("{}")
    host.says("hooks gone from")
    record.write_text("{")
    host.says(f"cannot read {record}")
    assert "hooks gone from" in host.note
    assert record.read_text() == "{"
    record.write_text(kept)
    path.write_text(settings)
    eventually(lambda: not host.note, "no more complaint")


def test_a_complaint_about_the_record_ends_with_its_reason(work: Installer, start: Start) -> None:
    """The loss of hooks could not be recorded, and need not be: the hooks are back."""
    path, lock = work.user_file(), work.home / "hooks.lock"
    lock.unlink()
    lock.mkdir()
    host = start("one", server="x")
    settings = path.read_text()
    path.write_text("{}")
    record = str(hook_record.record(work.home))
    host.says(f"cannot write {record}")
    path.write_text(settings)
    eventually(lambda: "hooks gone" not in host.note, "the hooks")
    eventually(lambda: record not in host.note, "no more complaint")


def test_a_host_updates_the_script(home: Home, start: Start) -> None:
    """An update of the plugin needs no new installation of hooks."""
    home.bellboard.mkdir()
    script = hook_record.script(home.bellboard)
    script.write_text("an old one")
    start()
    shipped = hook_record.shipped().read_bytes()
    eventually(lambda: script.read_bytes() == shipped)
    eventually(lambda: os.access(script, os.X_OK))
