"""The record of where hooks are, the script that they run, and writes that fail.

Nothing is lost, and nothing is left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.claude.agent import ClaudeCode
from bellboard.agents.installing import hook_record
from bellboard.agents.installing.guard import note_reported
from bellboard.agents.installing.installer import Installer, SettingsError, backups
from bellboard.system import files
from hosting import RecordedHost, made, start
from rig import warm
from rig.home import Home
from rig.waiting import eventually

pytestmark = pytest.mark.files

__all__ = ["start"]
SPOILT = ("{", "[1]", '{"/a/x.json": {"events": {"Stop": 2}}}')  # the last: by a newer version


@pytest.fixture
def work(home: Home) -> Installer:
    installer = ClaudeCode().installer(home.bellboard, home.env)
    installer.user_file().write_text("{}")
    installer.apply(installer.put_in(installer.user_file()))
    return installer


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

    def said(command: str) -> str:
        argv = ["-m", "bellboard", *command.split()]
        done = warm.run(argv, env=home.env, cwd=home.project, merged=True)
        assert done.returncode == 1, done.stdout
        return " ".join(done.stdout.split())

    assert f"cannot read {record}: not a record" in said("uninstall --yes")
    assert f"cannot read {record}: not a record" in said("doctor")
    record.write_bytes(kept)
    assert warm.run(["-m", "bellboard", "uninstall", "--yes"], env=home.env).returncode == 0
    assert not elsewhere.exists()


def test_what_a_newer_version_records_is_kept(work: Installer) -> None:
    """A change of a field writes back unknown fields."""
    record, path = hook_record.record(work.home), str(work.user_file())
    known = json.loads(record.read_text())
    known[path]["later"] = {"of": ["any", "kind"]}
    record.write_text(json.dumps(known))
    assert note_reported(work.home, path, True) is True
    known[path]["told"] = True
    assert json.loads(record.read_text()) == known
    work.apply(work.put_in(Path(path)))
    assert json.loads(record.read_text())[path]["later"] == known[path]["later"]


def test_hooks_are_guarded_while_the_record_cannot_be_read(
    home: Home, work: Installer, start: Callable[..., RecordedHost]
) -> None:
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


def test_a_complaint_about_the_record_ends_with_its_reason(
    home: Home, work: Installer, start: Callable[..., RecordedHost]
) -> None:
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


@contextlib.contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file can become larger, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_no_half_backup(home: Home, work: Installer) -> None:
    """Only whole copies count among the kept ones, and none of a change that failed."""
    path = home.root / "other.json"
    path.write_text(json.dumps({"long": "x" * 20_000}))
    for _ in range(3):
        with full_at(8192), pytest.raises(OSError, match="too large"):
            work.apply(work.put_in(path))
    change = work.put_in(path)
    path.write_text("{}")
    with pytest.raises(SettingsError, match="has changed since"):
        work.apply(change)
    assert backups(path) == []
    assert [*path.parent.glob(f"{files.PREFIX}*")] == []


def test_a_full_disk_leaves_no_folder(home: Home, work: Installer) -> None:
    """Later, it would pass for one that was there before."""
    work.apply(work.take_out(work.user_file()))
    path = home.root / "one/two/other.json"
    with full_at(2048), pytest.raises(OSError, match="too large"):
        work.apply(work.put_in(path))
    assert not path.parents[1].exists()
    assert hook_record.hooked_files(work.home) == {}


def test_a_record_that_cannot_be_written_is_said_to_be_behind(work: Installer) -> None:
    """The settings were written by then: another run completes it."""
    path, written = work.user_file(), work._write
    path.write_text("{}")
    change = work.put_in(path)
    with contextlib.ExitStack() as held:

        def then_locked(change: Any) -> Path | None:
            backup = written(change)
            lock = held.enter_context((work.home / "hooks.lock").open("r+"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            return backup

        work._write = then_locked  # type: ignore[method-assign]
        with pytest.raises(SettingsError, match=r"is as it should be, but .*hooks\.json does not"):
            work.apply(change)
    assert files.content(path) == change.new
    assert hook_record.hooked_files(work.home)[str(path)].events == []
    work._write = written  # type: ignore[method-assign]
    work.apply(work.put_in(path))
    assert hook_record.hooked_files(work.home)[str(path)].events == list(change.events)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
def test_an_attribute_that_cannot_be_copied_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an access control list behind a label that only root may set."""
    path = tmp_path / "settings.json"
    path.write_text("{}")
    try:
        os.setxattr(path, "user.mine", b"1")
    except OSError:
        pytest.skip("a file system without attributes of users")
    monkeypatch.setattr(os, "listxattr", lambda path: ["security.label", "user.mine"])
    assert files.replace(path, b"[]", b"{}")
    assert os.getxattr(path, "user.mine") == b"1"


def test_the_script_gets_its_mode_back(home: Home) -> None:
    """A host was killed before it had set it, or a backup without modes was restored."""
    made(home.bellboard)
    hook_record.keep_script(home.bellboard)
    script = hook_record.script(home.bellboard)
    script.chmod(0o600)
    hook_record.keep_script(home.bellboard)
    assert 0o700 == script.stat().st_mode & 0o777
