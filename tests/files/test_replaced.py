"""board.db, its log or its lock replaced under a host: it switches to the current file."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellboard.agents.claude.hooks import hook
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.diagnosis.state import holder_of
from bellboard.hosting.connection import Connection
from bellboard.storage import database
from bellboard.storage.set_aside import MOST_ASIDE, set_database_aside
from bellboard.storage.spool import Spool
from bellboard.storage.store import DATABASE, Busy, Damaged, Replaced, Store
from bellboard.system.locks import Lock
from rig import warm
from rig.clock import Clock
from rig.home import Home
from rig.host.hosting import (
    Make,
    RecordedHost,
    emit,
    from_files,
    made,
    opened,
    put,
    statuses,
    work,
)
from rig.waiting import PATIENCE, eventually

Lose = Callable[[Path], None]


def removed(path: Path) -> None:
    path.unlink()


def removed_with_its_log(path: Path) -> None:
    for file in path.parent.glob("board.db*"):
        file.unlink()


def replaced_by_another(path: Path) -> None:
    """Replace the database as by restoring a backup: by a rename, with the old log still there."""
    other = made(path.parent / "other").home
    Store(other).close()
    (other / "board.db").rename(path)


def without_its_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def without_its_shared_memory(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def with_another_log(path: Path) -> None:
    wal = Path(f"{path}-wal")
    wal.unlink()
    wal.write_bytes(b"")


LOSSES = [removed, removed_with_its_log, replaced_by_another]
LOG_LOSSES = [without_its_log, without_its_shared_memory, with_another_log]


@pytest.mark.parametrize("lose", [*LOSSES, *LOG_LOSSES])
def test_nothing_is_unlinked_unless_committed_to_the_current_file(
    make: Make, clock: Clock, lose: Lose
) -> None:
    """An event waits in the spool and counts once in the next database."""
    shared = make()
    emit(shared, clock, "UserPromptSubmit", "before")
    shared.turn(clock())
    lose(shared.store.database.path)
    name = emit(shared, clock, "UserPromptSubmit", "after")
    with pytest.raises(Replaced):
        shared.turn(clock.advance(1))
    assert [name] == [path.name for path in shared.spool.new.iterdir()]
    shared.store.close()
    again = make()
    again.turn(clock.advance(1))
    with opened(shared.spool.home) as late:
        assert "working" == statuses(late.board)["after"]
        assert ["after"] == [
            r.event.session_id for r in from_files(late.store.log()) if r.file == name
        ]
        assert ("before" in statuses(late.board)) == (lose in LOG_LOSSES)


def test_what_is_restored_counts_as_changed(make: Make, clock: Clock) -> None:
    """A restored session is published, although the next look finds nothing new."""
    shared = make()
    emit(shared, clock, "UserPromptSubmit", "kept")
    shared.turn(clock())
    removed_with_its_log(shared.store.database.path)
    fresh = make()
    emit(fresh, clock, "UserPromptSubmit", "fresh")
    fresh.turn(clock.advance(1))
    mended = make()
    assert {"kept", "fresh"} <= mended.restore(shared, clock.advance(1))
    assert {"kept", "fresh"} <= mended.board.sessions.keys()


def test_transitions_in_a_new_database_go_on_after_the_old_ones(make: Make, clock: Clock) -> None:
    """A number names a change once per machine; changes by another host are announced."""
    one, two = make(), make()
    for event in ("UserPromptSubmit", "Stop"):
        emit(one, clock, event)
        one.turn(clock.advance(1))
    (*_, last) = (change.id for change in one.store.changes())
    (first,) = two.store.changes()[:1]
    two.store.transition = first.id  # it has read no more
    removed_with_its_log(one.store.database.path)
    again = make()
    again.store.skip_changes()
    again.restore(one, clock())
    emit(again, clock, "UserPromptSubmit")
    again.turn(clock.advance(1))
    late = make()
    late.store.skip_changes()
    late.restore(two, clock())
    emit(late, clock, "Stop")
    late.turn(clock.advance(1))
    found = late.store.changes()
    assert [change.transition.after for change in found] == ["working", "completed"]
    assert last < found[0].id == found[1].id - 1
    assert again.store.changes() == found


def test_a_host_whose_arrival_is_tried_again_reads_no_transition_twice(
    make: Make, clock: Clock
) -> None:
    """The lock is taken again after the restoration, and may be held by then."""
    lost = make()
    work(lost, clock)
    lost.store.changes()
    removed_with_its_log(lost.store.database.path)
    other, late = make(), make()
    other.restore(lost, clock())
    late.restore(lost, clock())
    emit(other, clock, "Stop")
    other.turn(clock.advance(1))
    assert [c.transition.after for c in late.store.changes()] == ["completed"]
    late.restore(lost, clock())
    assert late.store.changes() == []


def test_what_is_known_outlasts_every_try_to_set_a_database_aside(tmp_path: Path) -> None:
    """While another process has it open, it cannot be set aside, and is opened again and again."""
    home = made(tmp_path / "home").home
    connection = Connection(home, {})
    put(connection.spool, "UserPromptSubmit", "known")
    tried = 0

    def folded() -> set[str]:
        nonlocal tried
        tried += bool(connection.trouble.times)
        connection.trouble.until = 0.0  # do not pause
        connection.fold(())
        return set(connection.shared.board.sessions) if connection.shared else set()

    eventually(lambda: "known" in folded())
    other = Lock(home / "board.lock")
    assert other.share(PATIENCE)
    with contextlib.closing(sqlite3.connect(home / "board.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        of_sessions = "SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'"
        (page,) = db.execute(of_sessions).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with (home / "board.db").open("r+b") as file:  # it can be opened all the same
        file.seek((page - 1) * size)
        file.write(b"\xff" * 64)
    put(connection.spool, "UserPromptSubmit", "new")
    eventually(lambda: folded() is not None and tried > 3, "some tries")
    other.close()
    eventually(lambda: {"known", "new"} <= folded(), "all sessions")
    connection.close()


def test_settings_outlast_a_damaged_database(make: Make, clock: Clock) -> None:
    """Settings made in the new database by then count; the new database has another id."""
    shared = make()
    options = {"answers": True, "mode": "quiet", "bars": ["/tmp/tmux"], DATABASE: "old"}
    with shared.store.transaction() as tx:
        for key, value in options.items():
            tx.set_option(key, value, 1, clock())
    work(shared, clock)
    since = shared.store.option("watched_since")
    shared.store.close()
    removed_with_its_log(shared.store.database.path)
    other = make()
    with other.store.transaction() as tx:
        tx.set_option("mode", "all", 1, clock())
    other.restore(shared, clock())
    options |= {"mode": "all", "watched_since": since}
    del options[DATABASE]
    assert {key: x.value for key, x in other.store.options().items()} == options


def test_settings_of_a_lost_log_outlast_older_ones(make: Make, clock: Clock) -> None:
    """The file itself has them still, as they were when the log was last copied into it."""
    shared = make()
    path, contents = shared.store.database.path, b""
    for answers in (True, False):
        contents = path.read_bytes()
        with shared.store.transaction() as tx:
            tx.set_option("answers", answers, 1, clock.advance(1))
        shared.catch_up()
        shared.store.database.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    shared.store.close()
    removed_with_its_log(path)
    path.write_bytes(contents)
    other = make()
    assert other.store.option("answers") is True
    other.restore(shared, clock.advance(1))
    assert other.store.option("answers") is False


@pytest.mark.parametrize("contents", [bytes(32), bytes(8192)], ids=len)
def test_a_log_without_contents_is_used_again(make: Make, clock: Clock, contents: bytes) -> None:
    """A power cut leaves such a log; SQLite keeps it while another program has it open."""
    first = make()
    other = sqlite3.connect(first.store.database.path)
    other.execute("SELECT count(*) FROM sessions").fetchall()
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    first.store.close()
    Path(f"{first.store.database.path}-wal").write_bytes(contents)
    shared = make()
    for n in range(3):
        emit(shared, clock, "UserPromptSubmit", f"s{n}")
        shared.turn(clock())
    assert statuses(shared.board).keys() == {"s0", "s1", "s2"}
    other.close()


@pytest.mark.parametrize("lose", LOG_LOSSES)
def test_hosts_that_notice_it_one_by_one_spoil_nothing(
    home: Home, start: Callable[..., RecordedHost], lose: Lose
) -> None:
    """Hosts that still have the old log neither write by it nor copy from it."""
    hosts = [start(name) for name in ("one", "two", "three")]
    spool = Spool(home.bellboard)
    names = []
    for n in range(300):
        names.append(put(spool, "UserPromptSubmit", f"s{n}"))
        if n == 150:
            eventually(lambda: "s50" in hosts[0].shown)
            lose(home.bellboard / "board.db")
    eventually(lambda: not list(spool.new.iterdir()), "an empty spool")
    for host in hosts:

        def shows_all(host: RecordedHost = host) -> bool:
            assert len(host.shown) == 300, (len(host.shown), host.health)
            return True

        eventually(shows_all)
    assert [] == list(home.bellboard.glob("board.db.damaged-*"))
    with opened(home.bellboard) as shared:
        rows = [row.file for row in from_files(shared.store.log()) if row.event.from_hook]
    assert sorted(names) == sorted(rows)


# Other things in place of the database


def test_only_the_newest_damaged_ones_are_kept(tmp_path: Path) -> None:
    home = made(tmp_path).home
    for _ in range(MOST_ASIDE + 3):
        (home / "board.db").write_text("no database\n" * 100)
        with pytest.raises(Damaged) as caught:
            Store(home)
        assert set_database_aside(home, caught.value.inode)
    assert MOST_ASIDE == len(list(home.glob("board.db.damaged-*[0-9]")))


# Locks


HOLD = """
import fcntl, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def suspended(home: Home) -> Iterator[subprocess.Popen[str]]:
    """Start a process that holds board.lock exclusively, and suspend it."""
    made(home.bellboard)
    run = [sys.executable, "-c", HOLD, str(home.bellboard / "board.lock")]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert "held\n" == holder.stdout.readline()
        yield holder
        holder.kill()


def listed(home: Home) -> subprocess.CompletedProcess[str]:
    done = warm.run(["-m", "bellboard", "list", "--json"], env=home.env)
    assert 0 == done.returncode, done.stderr
    return done


def test_a_command_shows_what_is_known(home: Home, clock: Clock) -> None:
    """A lock on opening or writing the database does not prevent reading it."""
    made(home.bellboard)
    with opened(home.bellboard) as shared:
        emit(shared, clock, "UserPromptSubmit", "known")
        shared.turn(clock())
    run = [sys.executable, "-c", HOLD, str(home.bellboard / "board.lock")]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert "held\n" == holder.stdout.readline()
        done = listed(home)
        holder.kill()
    assert "known" in done.stdout
    assert "is locked by another process, which `bellboard doctor` names" in done.stderr
    with opened(home.bellboard) as shared, shared.store.transaction():
        emit(shared, clock, "Stop", "known")
        done = listed(home)
    assert "known" in done.stdout
    assert "the database is locked by another process" in done.stderr


def test_opening_has_a_deadline(home: Home, suspended: subprocess.Popen[str]) -> None:
    with pytest.raises(Busy):
        Store(home.bellboard, patience=0.1)
    suspended.send_signal(signal.SIGCONT)
    suspended.wait()
    Store(home.bellboard).close()


def test_the_holder_is_known_without_a_wal_too(make: Make) -> None:
    """In rollback mode, as on network file systems, another byte is locked."""
    one = make(network="nfs")
    with one.store.transaction() as tx:
        tx.set_option("x", 1, 1, 1.0)
        assert os.getpid() == holder_of(one.store.database.path.parent)
    assert holder_of(one.store.database.path.parent) is None


# An older one


def test_a_database_of_the_first_version_is_migrated(tmp_path: Path, clock: Clock) -> None:
    """With everything in it."""
    home = made(tmp_path / "home").home
    board = Board()
    folded = board.fold(from_line({"t": clock(), "goto": {"session_id": "s"}}))
    prompt = b'{"session_id": "s", "hook_event_name": "UserPromptSubmit"}'
    folded += board.fold(hook(prompt, clock(), clock()))
    with contextlib.closing(Store(home, schema=1)) as old, old.transaction() as tx:
        tx.write(board, ["name"], [("name", f) for f in folded], 0.0, clock())
    with opened(home) as new:
        assert board.sessions.keys() == new.board.sessions.keys()
        assert len(folded) == len(new.store.log())
        assert database.SCHEMA == database.version_of(new.store.database.db)


def swapped(home: Path, folder: str) -> tuple[Path, set[str]]:
    """Replace a folder by a link to a foreign one; return that, and what is in it."""
    foreign = home.parent / "foreign"
    (foreign / "folder").mkdir(parents=True)
    for name in ("file", "1", "20260101-x", "0" * 20 + "-x"):
        (foreign / name).write_text("precious")
        os.utime(foreign / name, (0, 0))
    (home / folder).rename(home.parent / "away")
    (home / folder).symlink_to(foreign)
    return foreign, set(os.listdir(foreign))  # noqa: PTH208 - names, not paths


@pytest.mark.parametrize("folder", ["hosts", "spool/bad", "spool/tmp", "answers"])
def test_what_a_link_leads_to_is_not_tidied_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """A host once removed all old files where answers/ led to: it took them for leftovers."""
    monkeypatch.setattr("bellboard.storage.answers.KEPT_AGE", -1.0)
    spool = made(tmp_path / "home")
    foreign, there = swapped(spool.home, folder)
    for tidy in (
        spool.sweep,
        spool.hosts.alive,
        spool.counts,
        lambda: spool.questions.drop_all_but(()),
        lambda: spool.hosts.announce(os.getpid(), {}),
    ):
        with contextlib.suppress(OSError):
            tidy()
    assert there == set(os.listdir(foreign))  # noqa: PTH208
