"""board.db, its log or its lock replaced under a host: it switches to the current file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from bellboard.agents.claude.hooks import hook
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.diagnosis.state import holder_of
from bellboard.hosting.connection import Connection
from bellboard.storage import database
from bellboard.storage.set_aside import MOST_ASIDE, set_database_aside
from bellboard.storage.store import DATABASE, Damaged, Store
from bellboard.system.locks import Lock
from rig.clock import Clock
from rig.host.hosting import (
    Make,
    emit,
    made,
    opened,
    put,
    work,
)
from rig.waiting import PATIENCE, eventually


def removed_with_its_log(path: Path) -> None:
    for file in path.parent.glob("board.db*"):
        file.unlink()


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


# Other things in place of the database


def test_only_the_newest_damaged_ones_are_kept(tmp_path: Path) -> None:
    home = made(tmp_path).home
    for _ in range(MOST_ASIDE + 3):
        (home / "board.db").write_text("no database\n" * 100)
        with pytest.raises(Damaged) as caught:
            Store(home)
        assert set_database_aside(home, caught.value.inode)
    assert MOST_ASIDE == len(list(home.glob("board.db.damaged-*[0-9]")))


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
