"""kill -9 between any two steps, and what can heal: a full disk, a read-only spool."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bellboard.diagnosis import diagnose, is_well
from bellboard.hosting.host import Housekeeping
from bellboard.hosting.jobs import Attempts
from bellboard.storage.set_aside import Aside
from bellboard.storage.spool import BELOW, Spool
from hosting import (
    Make,
    Mounts,
    RecordedHost,
    agrees_with_its_log,
    emit,
    from_files,
    made,
    opened,
    put,
    statuses,
)
from rig.clock import Clock
from rig.home import Home
from rig.waiting import eventually, leniency

pytestmark = pytest.mark.files


@pytest.mark.timeout(360)
def test_wherever_a_host_dies_every_event_is_folded_once(tmp_path: Path) -> None:
    """The log replays, junk is set aside once, names are forgotten, the end is the same."""
    script = Path(__file__).with_name("faulty.py")
    run = [sys.executable, str(script), str(tmp_path / "home")]
    out = subprocess.run(run, stdout=subprocess.PIPE, check=True, text=True).stdout
    attempts = [json.loads(line) for line in out.splitlines()]
    steps = {attempt["at"] for attempt in attempts[:-1]}
    for step in ("claim_slots", "scan", "read", "set_aside", "BEGIN", "INSERT INTO applied"):
        assert any(step in at for at in steps), step
    assert {"before COMMIT", "after COMMIT", "after unlink"} <= steps
    assert "before DELETE FROM applied WH" in steps
    assert attempts[-1]["at"] == ""
    for attempt in attempts:
        assert attempt | {"at": "", "applied": []} == attempts[-1] | {"applied": []}, attempt["at"]
        assert len(attempt["applied"]) <= 1
    expected = {"twice": [], "missing": [], "views": 1, "bad": 2, "waiting": 0}
    assert {key: attempts[-1][key] for key in expected} == expected
    assert attempts[-1]["statuses"] == {"s0": "idle", "s1": "blocked", "s2": "working"}


# Disks and locks, around real hosts


def counted(home: Path) -> dict[str, int]:
    """Return how often each file is in the log."""
    with opened(home) as shared:
        agrees_with_its_log(shared)
        return Counter(row.file for row in from_files(shared.store.log()) if row.event.from_hook)


def test_a_full_disk_loses_nothing(
    home: Home, mount: Mounts, start: Callable[..., RecordedHost]
) -> None:
    """The known state stays on display, health reports it, all continues once there is room."""
    home.bellboard.mkdir()
    mount("-t", "tmpfs", "-o", "size=1500k,mode=700", "tmpfs", at=home.bellboard)
    host = start()
    spool = Spool(home.bellboard)
    names = [put(spool, "UserPromptSubmit", "first")]
    eventually(lambda: host.shown == {"first": "working"})
    filler = home.bellboard / "filler"
    with opened(home.bellboard) as shared, shared.store.transaction():
        names += [put(spool, "UserPromptSubmit", f"s{n}") for n in range(40)]
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
    host.says("no space left on the disk")
    assert host.shown == {"first": "working"}
    assert host.process.poll() is None
    filler.unlink()
    eventually(lambda: len(host.shown) == 41, "all of them shown")
    assert counted(home.bellboard) == dict.fromkeys(names, 1)
    eventually(lambda: not host.note, "no more complaint")


def test_a_small_disk_is_not_filled_by_the_log(
    home: Home, mount: Mounts, start: Callable[..., RecordedHost]
) -> None:
    """SQLite keeps each changed page in it once more, until all are copied: that needs room."""
    home.bellboard.mkdir()
    mount("-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", at=home.bellboard)
    host = start()
    spool = Spool(home.bellboard)
    for n in range(300):
        put(spool, "UserPromptSubmit", f"s{n % 5}", prompt="x" * 200, n=n)
        eventually(lambda: not any(spool.new.iterdir()), "its commit", pause=0.002)
    assert "database" not in host.notes
    assert (home.bellboard / "board.db-wal").stat().st_size < 5 << 20


def test_a_disk_that_is_full_at_the_start_is_waited_for(
    home: Home, mount: Mounts, start: Callable[..., RecordedHost]
) -> None:
    """The host does not die, so Neovim does not give up on it."""
    home.bellboard.mkdir()
    mount("-t", "tmpfs", "-o", "size=1500k,mode=700", "tmpfs", at=home.bellboard)
    name = put(made(home.bellboard), "UserPromptSubmit")
    filler = home.bellboard / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    host = start()
    host.says("cannot be written")
    filler.unlink()
    eventually(lambda: host.shown == {"s": "unknown"} or host.shown == {"s": "working"})
    assert counted(home.bellboard) == {name: 1}


def test_a_spool_that_is_read_only_counts_nothing_twice(
    home: Home, mount: Mounts, start: Callable[..., RecordedHost]
) -> None:
    """Files that cannot be removed are folded once, by any number of hosts; health says so."""
    hosts = [start("one"), start("two")]
    spool = Spool(home.bellboard)
    place = home.bellboard / "spool"
    mount("--bind", str(place), at=place)
    with opened(home.bellboard) as shared, shared.store.transaction():
        names = [put(spool, "UserPromptSubmit", f"s{n}") for n in range(5)]
        mount("-o", "remount,bind,ro", at=place, again=True)
    for host in hosts:
        eventually(lambda host=host: len(host.shown) == 5)
    eventually(lambda: "cannot be deleted" in hosts[0].note + hosts[1].note, "a note in health")
    assert counted(home.bellboard) == dict.fromkeys(names, 1)
    mount("-o", "remount,bind,rw", at=place, again=True)
    names.append(put(spool, "Stop", "s0"))
    eventually(lambda: not list(spool.new.iterdir()), "an empty spool")
    assert counted(home.bellboard) == dict.fromkeys(names, 1)


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EAGAIN])
def test_an_event_that_cannot_be_read_for_a_moment_is_read_later(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """The disk is to blame, not the event: it is neither set aside nor taken for folded."""
    shared, sick, open_ = make(), [True], os.open

    def open_or_fail(path: Any, *given: Any, **how: Any) -> int:
        if sick and "/spool/new/" in str(path):
            raise OSError(code, os.strerror(code), path)
        return open_(path, *given, **how)

    monkeypatch.setattr("os.open", open_or_fail)
    emit(shared, clock, "UserPromptSubmit", "s")
    shared.turn(clock())
    sick.clear()
    emit(shared, clock, "UserPromptSubmit", "t")
    shared.turn(clock())
    assert (statuses(shared.board), shared.refused) == ({"t": "working"}, 0)
    shared.spool.sweep()
    shared.turn(clock())
    assert statuses(shared.board) == {"s": "working", "t": "working"}
    assert list(shared.spool.new.iterdir()) == []
    agrees_with_its_log(shared)


def test_an_event_that_cannot_be_read_is_noted_in_health(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file on a bad sector is tried at each rescan, and the note stays until it is read."""
    shared, sick, open_ = make(), [True], os.open

    def open_or_fail(path: Any, *given: Any, **how: Any) -> int:
        if sick and "/spool/new/" in str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return open_(path, *given, **how)

    monkeypatch.setattr("os.open", open_or_fail)
    connection = SimpleNamespace(spool=shared.spool, shared=None, has_arrived=False)
    upkeep = Housekeeping(connection, Attempts())  # type: ignore[arg-type]
    emit(shared, clock, "UserPromptSubmit", "s")

    def noted() -> dict[str, str]:
        shared.turn(clock())
        upkeep.expect()
        upkeep.run()
        return upkeep.notes

    why = f"1 file in {shared.spool.new} cannot be read now: check the disk, or delete them"
    assert [{"stuck": why}] * 2 == [noted(), noted()]
    sick.clear()
    assert {} == noted()
    assert statuses(shared.board) == {"s": "working"}


def test_junk_that_cannot_be_moved_away_is_moved_later(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later event of the same name counts."""
    shared = make()
    shared.spool.write(line := {"t": clock(), "view": {"session_id": "s"}}, "key")
    (file,) = shared.spool.new.iterdir()
    file.write_bytes(b"junk")
    with monkeypatch.context() as patch:
        patch.setattr(Aside, "take", lambda *_: False)
        shared.turn(clock())
    assert [file] == list(shared.spool.new.iterdir())
    shared.spool.sweep()
    shared.turn(clock())
    assert list(shared.spool.new.iterdir()) == []
    assert shared.spool.write(line, "key")
    shared.turn(clock())
    assert [row.file for row in from_files(shared.store.log())] == [file.name]


HOLD_FILE = """
import fcntl, os, signal, sys
fd = os.open(f"{sys.argv[1]}/board.lock", os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""
HOLD = """
import os, signal, sys
from pathlib import Path
from bellboard.storage.store import Store
store = Store(Path(sys.argv[1]))
with store.transaction():
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.parametrize("lock", ["board.lock", "board.db"])
def test_doctor_names_a_suspended_process_that_locks_hosts_out(
    home: Home, start: Callable[..., RecordedHost], lock: str
) -> None:
    """Even from their start, when no host could say so itself."""
    made(home.bellboard)
    hold = HOLD_FILE if lock == "board.lock" else HOLD
    run = [sys.executable, "-c", hold, str(home.bellboard)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        host = start("one", stuck=0.3)
        host.says("locked by another process: `bellboard doctor` names it")
        facts = diagnose(home.bellboard, home.env, home.project)
        named = [f for f in facts if f.level == "warn" and f"process {holder.pid}" in f.text]
        assert [f"kill -CONT {holder.pid}, or stop it"] == [fact.advice for fact in named]
        assert not is_well(facts)
        holder.kill()
    eventually(lambda: not host.note, "no more complaint")


@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL])
def test_a_suspended_process_that_holds_the_lock_stops_nobody(
    home: Home, start: Callable[..., RecordedHost], end: signal.Signals
) -> None:
    """Others start, show the known state and the holder, and continue when the holder is gone."""
    host = start("one", stuck=0.3, measured=True)
    spool = Spool(home.bellboard)
    names = [put(spool, "UserPromptSubmit")]
    eventually(lambda: host.shown == {"s": "working"})
    run = [sys.executable, "-c", HOLD, str(home.bellboard)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        names.append(put(spool, "Stop"))
        host.says("locked by another process: `bellboard doctor` names it")
        late = start("two", stuck=0.3)
        eventually(lambda: late.shown == {"s": "working"}, "the known session")
        late.says("locked")
        holder.send_signal(end)
        eventually(lambda: host.shown == late.shown == {"s": "completed"}, "the end of the turn")
    for one in (host, late):
        eventually(lambda one=one: not one.note, "no more complaint")
    assert counted(home.bellboard) == dict.fromkeys(names, 1)
    assert host.messages[-1]["gap"] < min(0.9, 0.5 * leniency(1.0))


def test_a_damaged_database_is_replaced_by_the_last_user(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """All close it, one sets it aside and writes the known sessions: hooks report nothing twice."""
    hosts = [start("one"), start("two")]
    spool = Spool(home.bellboard)
    put(spool, "PermissionRequest", "before", tool_name="Bash", tool_input={"command": "make"})
    for host in hosts:
        eventually(lambda host=host: host.shown == {"before": "blocked"})
    with opened(home.bellboard) as shared:
        shared.store.database.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (home.bellboard / "board.db").write_bytes(b"\xa5" * 50_000)
    after = put(spool, "UserPromptSubmit", "after")
    for host in hosts:
        both = {"before": "blocked", "after": "working"}
        eventually(lambda host=host, both=both: host.shown == both, "a new database")
    eventually(lambda: not spool.is_there(after), "the commit, which follows what is shown")
    with opened(home.bellboard) as shared:
        assert statuses(shared.board) == both
        assert [row.file for row in from_files(shared.store.log()) if row.event.from_hook] == [
            after
        ]
    moved = [path.name for path in home.bellboard.glob("board.db.damaged-*")]
    assert len([name for name in moved if not name.endswith(("-wal", "-shm"))]) == 1
    assert any("moved to" in host.note for host in hosts)


def test_a_home_that_is_removed_is_recreated(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """`rm -r` is how people start over."""
    host = start()
    put(Spool(home.bellboard), "UserPromptSubmit", "before")
    eventually(lambda: host.shown == {"before": "working"})
    shutil.rmtree(home.bellboard, ignore_errors=True)  # the host may be quicker
    new = [home.bellboard / name for name in ("board.db", *BELOW)]  # or it is half removed
    eventually(lambda: all(path.exists() for path in new), "a new home")
    put(Spool(home.bellboard), "UserPromptSubmit", "after")
    eventually(lambda: host.shown == {"after": "working"})
