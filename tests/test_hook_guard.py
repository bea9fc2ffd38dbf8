"""Hosts notice when hooks disappear from a file, or are outdated there."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from bellboard.agents.claude.agent import ClaudeCode
from bellboard.agents.claude.installer import project_file
from bellboard.agents.installing import hook_record
from bellboard.agents.installing.guard import check_file
from bellboard.agents.installing.installer import Installer
from bellboard.agents.registry import agent_of, installable
from hosting import RecordedHost
from rig.home import Home
from rig.waiting import eventually
from shell import run

pytestmark = pytest.mark.files

Start = Callable[..., RecordedHost]
MINE = '{"model": "opus"}\n'


@pytest.fixture
def work(home: Home) -> Installer:
    """Install the hooks into a user's settings."""
    installer = ClaudeCode().installer(home.bellboard, home.env)
    installer.user_file().write_text(MINE)
    installer.apply(installer.put_in(installer.user_file()))
    return installer


def test_lost_hooks_are_reported_once(home: Home, work: Installer, start: Start) -> None:
    """By one editor, and in health until they are back or were removed with bellboard."""
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
    """With the file that they are gone from."""
    run(home, "hooks", "install", "--yes", "--all")
    host = start("one", server="x")
    paths = [cli.installer(home.bellboard, home.env).user_file() for cli in installable()]
    for path in paths:
        path.unlink()
    for path in paths:
        host.says(f"hooks gone from ~/{path.relative_to(home.root)}")


def test_a_plugin_of_another_version_is_noticed(home: Home, start: Start) -> None:
    """After an update: by the host, by `hooks check` and by the doctor, until it is installed."""
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
    """The host reports that, and remembers the last record."""
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
    """So an update of the plugin needs no new installation of hooks."""
    home.bellboard.mkdir()
    script = hook_record.script(home.bellboard)
    script.write_text("an old one")
    start()
    shipped = hook_record.shipped().read_bytes()
    eventually(lambda: script.read_bytes() == shipped)
    eventually(lambda: os.access(script, os.X_OK))
