"""Damage in board.db: cells, numbers, headers; and events that cannot be stored."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.records import LEDGER
from bellboard.core.routes import ROUTES
from bellboard.core.session import Session
from bellboard.core.untrusted import bounded
from bellboard.hosting.host import Housekeeping
from bellboard.hosting.jobs import Attempts
from bellboard.hosting.turn import SharedBoard
from bellboard.storage.set_aside import Aside, set_database_aside
from bellboard.storage.spool import Spool
from bellboard.storage.store import Damaged, Editor, Store, Transaction
from faults.damage import CELLS, NOT_UTF_8
from rig.clock import Clock
from rig.host.hosting import (
    Make,
    agrees_with_its_log,
    emit,
    from_files,
    made,
    opened,
    put,
    put_raw,
    statuses,
)

HUGE = 10**30
COLUMNS = {
    "sessions": ("session_id", "revision", "listed", "last", "record"),
    "transitions": ("id", "t", "session_id", "before", "after", "rule", "why", "live"),
    "events": ("id", "session_id", "file", "rule", "taken", "why", "before", "after", "event"),
    "applied": ("name", "t"),
    "claims": ("transition_id", "effect", "pid", "t"),
    "options": ("key", "value", "pid", "t"),
    "editors": ("pid", "server", "tmux", "pane", "focused"),
}
CASES = [(table, column) for table, columns in COLUMNS.items() for column in columns]


def filled(home: Path, now: float) -> None:
    """Make a database with rows in each table: four sessions, their history, an editor, a claim."""
    shared = SharedBoard(Spool(home), Store(home), watching=True)
    for n in range(4):
        put(shared.spool, "UserPromptSubmit", f"s{n}", now + n)
        shared.turn(now + n)
    store = shared.store
    with store.transaction() as tx:
        tx.set_option("watched_since", now, 1, now)
        tx.set_option("mode", "quiet", 1, now)
        tx.set_option("config", {"grace": 3.0}, 1, now)
        tx.set_editor(Editor(os.getpid(), "/srv/nvim", "", "", now))
    store.claim([(1, "notice bell"), (2, "completed: x")], 1, now)
    store.close()


def damage(home: Path, table: str, column: str, value: object, sid: str = "s1") -> bool:
    """Put a value into a cell despite the schema; return False if SQLite refuses."""
    db = sqlite3.connect(home / "board.db")
    try:
        row = f"SELECT {column} FROM {table} ORDER BY 1 LIMIT 1"
        if table == "sessions":
            row = f"SELECT {column} FROM sessions WHERE session_id = '{sid}'"
        made = db.execute("SELECT sql, name FROM sqlite_master").fetchall()
        if value is None:  # NOT NULL is checked when a row is written, not when it is read
            redefine(db, [(sql and sql.replace(" NOT NULL", ""), name) for sql, name in made])
            db.close()
            db = sqlite3.connect(home / "board.db")
        mark = "CAST(? AS TEXT)" if value is NOT_UTF_8 else "?"
        query = f"UPDATE {table} SET {column} = {mark} WHERE {column} IS ({row})"
        changed = db.execute(query, (value,))
        if value is None:
            redefine(db, made)
        db.commit()
        return changed.rowcount > 0
    except (
        sqlite3.IntegrityError,
        sqlite3.OperationalError,
    ):  # a key is never NULL, an id a number
        return False
    finally:
        db.close()


def redefine(db: sqlite3.Connection, made: list[tuple[Any, ...]]) -> None:
    """Write the definitions of the tables behind SQLite's back."""
    db.execute("PRAGMA writable_schema = ON")
    db.executemany("UPDATE sqlite_master SET sql = ? WHERE name = ?", made)
    db.commit()


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filled home, to copy: to fill one takes longer than to see what becomes of it."""
    home = made(tmp_path_factory.mktemp("undamaged") / "home").home
    filled(home, Clock()())
    return home


@pytest.mark.parametrize(("table", "column"), CASES)
def test_a_damaged_cell_stops_nothing(
    tmp_path: Path, clock: Clock, undamaged: Path, table: str, column: str
) -> None:
    """With any value in it, new events are folded, other rows are known, and every reader works."""
    tried = 0
    for how, value in CELLS.items():
        home = tmp_path / how
        shutil.copytree(undamaged, home)
        if damage(home, table, column, value):
            goes_on(home, Clock(clock() + 10))
            tried += 1
    assert tried


def goes_on(home: Path, clock: Clock) -> None:
    """Check that a host starts, folds, reads and prunes, and that the next one finds no damage."""
    try:
        store = Store(home)
    except Damaged as e:
        assert "impossible numbers" in str(e)
        assert set_database_aside(home, e.inode)
        return
    shared = SharedBoard(Spool(home), store, watching=True)
    name = emit(shared, clock, "UserPromptSubmit", "canary")
    for _ in range(3):
        shared.turn(clock.advance(1))
    assert "working" == statuses(shared.board)["canary"]
    assert {"s0", "s2", "s3"} <= statuses(shared.board).keys()
    assert name in [row.file for row in from_files(store.log())]
    assert "canary" in [change.session_id for change in store.history()]
    store.notices(10), store.editors(), store.standing(0.0), store.changes()
    store.sweep(clock.advance(200), lambda name: False)
    store.pruning.prune(clock())
    emit(shared, clock, "Stop", "canary")
    shared.turn(clock.advance(1))
    with opened(home) as late:
        assert statuses(late.board) == statuses(shared.board)
        assert "completed" == statuses(late.board)["canary"]
        assert not late.store.unsound
    store.close()


# Rows


def set_record(home: Path, sid: str, record: bytes, revision: int = 0) -> None:
    db = sqlite3.connect(home / "board.db")
    query = "UPDATE sessions SET record = ?, revision = revision + ? WHERE session_id = ?"
    db.execute(query, (record, revision, sid))
    db.commit()
    db.close()


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xc1 nothing",
        b"\x81" * 5000,
        msgspec.msgpack.encode(["a", "list"]),
        msgspec.msgpack.encode(Session("another", turn="idle")),
        msgspec.msgpack.encode(Session("s1", turn="wprking")),
        msgspec.msgpack.encode(Session("s1", turn="working", last=float("nan"))),
        msgspec.msgpack.encode(Session("s1", turn="working", since=1e300)),
    ],
    ids=range(8),
)
def test_an_invalid_record_is_deleted_and_reported(make: Make, clock: Clock, record: bytes) -> None:
    """With its session, for a day; the session is known again with its next event."""
    first = make()
    home = first.spool.home
    filled(home, clock())
    set_record(home, "s1", record)
    shared = make()
    clock.advance(10)
    emit(shared, clock, "Stop", "s2")
    shared.turn(clock())
    assert {"s0": "working", "s2": "completed", "s3": "working"} == statuses(shared.board)
    (lost,) = shared.store.lost_since(clock() - 1)
    assert lost.startswith("session s1 (")
    assert [] == shared.store.lost_since(clock() + 1)
    emit(shared, clock, "UserPromptSubmit", "s1", prompt="again")
    shared.turn(clock.advance(1))
    assert "working" == statuses(shared.board)["s1"]
    with opened(home) as later:
        assert statuses(later.board) == statuses(shared.board)
        assert not later.store.unsound


def test_a_running_host_rewrites_a_damaged_record(make: Make, clock: Clock) -> None:
    """The copy in its memory is good."""
    one = make()
    emit(one, clock, "UserPromptSubmit", "s")
    one.turn(clock())
    set_record(one.spool.home, "s", b"\xc1", revision=5)
    emit(one, clock, "UserPromptSubmit", "other")
    one.turn(clock.advance(1))
    with opened(one.spool.home) as late:
        assert {"s": "working", "other": "working"} == statuses(late.board)


def test_an_invalid_ledger_is_replaced(make: Make, clock: Clock) -> None:
    first = make()
    home = first.spool.home
    filled(home, clock())
    set_record(home, LEDGER, b"\xff" * 9)
    shared = make()
    clock.advance(10)
    emit(shared, clock, "Stop", "s0")
    shared.turn(clock())
    assert "completed" == statuses(shared.board)["s0"]
    assert shared.store.lost_since(0.0)[0].startswith("session of all (")
    with opened(home) as late:
        assert clock() == late.board.ledger.clock


# Events that cannot be written


class Picky(Transaction):
    """A transaction that cannot store one session, for an unexpected reason."""

    def write(self, board: Board, names: Any, folded: Any, *given: Any) -> None:
        super().write(board, names, folded, *given)
        if any(f.session_id == "poison" for _, f in folded):
            raise OverflowError("out of range")


@pytest.mark.parametrize("count", [1, 2, 37, 1100])
def test_an_unwritable_event_is_found_and_the_rest_is_stored(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Each event of a batch counts once, except the one set aside with its reason."""
    shared = make()
    monkeypatch.setattr("bellboard.storage.store.Transaction", Picky)
    names = [emit(shared, clock, "UserPromptSubmit", f"s{n}") for n in range(count)]
    emit(shared, clock, "UserPromptSubmit", "poison")
    names += [emit(shared, clock, "Stop", f"s{n}") for n in range(3)]
    for _ in range(60):
        if not shared.turn(clock.advance(0.001)).more:
            break
    assert sorted(names) == sorted(row.file for row in from_files(shared.store.log()))
    assert [] == list(shared.spool.new.iterdir())
    (why,) = (shared.spool.home / "spool" / "bad").glob("*.why")
    assert "OverflowError: out of range" in why.read_text()
    assert "poison" not in statuses(shared.board)


def test_an_event_that_fails_is_set_aside_and_the_rest_is_folded(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same step: a host that raised would end, and each one after it."""
    shared = make()

    def fails(*given: object) -> Any:
        raise LookupError("nothing that is known raises here")

    monkeypatch.setitem(ROUTES, "tick", fails)
    put(shared.spool, "UserPromptSubmit", "before", clock())
    line = {"t": clock() + 1, "tick": {}}
    put_raw(shared.spool, json.dumps(line).encode(), clock() + 1)
    put(shared.spool, "UserPromptSubmit", "after", clock() + 2)
    shared.turn(clock.advance(3))
    assert {"before": "working", "after": "working"} == statuses(shared.board)
    assert {"it cannot be folded": 1} == shared.spool.counts()["refused"]


def test_a_read_only_database_blames_no_event(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure unrelated to any file is reported, and no file is lost."""

    class Refusing(Transaction):
        def write(self, *given: Any) -> None:
            raise OverflowError("nothing at all")

    shared = make()
    monkeypatch.setattr("bellboard.storage.store.Transaction", Refusing)
    names = {emit(shared, clock, "UserPromptSubmit", f"s{n}") for n in range(5)}
    failed = 0
    for _ in range(20):
        try:
            shared.turn(clock.advance(1))
        except OverflowError:
            failed += 1
    assert failed > 10
    assert names == {path.name for path in shared.spool.new.iterdir()}
    monkeypatch.undo()
    while shared.turn(clock.advance(1)).more:
        pass
    assert names == {row.file for row in from_files(shared.store.log())}


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


ODD = (HUGE, -HUGE, 1e308, float("nan"), "\ud800", "a\0b", "x" * 70_000, [[[[[[1]]]]]], {"a": {}})
LINES = {
    "process": ("pid", "alive", "started", "tty", "tmux", "pane", "children", "found"),
    "pane": ("tmux", "pane", "tty", "alive"),
    "view": ("session_id", "tmux", "pane", "viewer", "how"),
    "registry": ("pid", "record", "discovered"),
    "facts": ("session_id", "port", "branch"),
    "config": ("grace", "approval", "clear"),
    "snooze": ("session_id", "until"),
    "label": ("session_id", "label"),
    "submit": ("session_id", "by"),
    "answer": ("session_id", "request", "digest", "choice", "way", "by", "outcome", "pid"),
    "hook": ("session_id", "hook_event_name", "cwd", "context_tokens", "background_tasks"),
}
GOOD = {"session_id": "s", "pid": 4711, "alive": True, "hook_event_name": "Stop", "tmux": "/t"}
GOOD |= {"choice": "allow", "way": "hook", "outcome": "taken"}
RECORD = ("sessionId", "status", "waitingFor", "cwd", "name", "statusUpdatedAt", "procStart")


def odd_lines() -> list[dict[str, object]]:
    """Yield lines of evidence with one odd value each, for every field of every kind."""
    lines: list[dict[str, object]] = []
    for kind, names in LINES.items():
        for name in names:
            good: dict[str, object] = {k: v for k, v in GOOD.items() if k in names}
            lines += [{"t": 1.8e9, kind: {**good, name: odd}} for odd in ODD]
    good = {"sessionId": "s", "status": "busy"}
    for name in RECORD:
        told = [{**good, name: odd} for odd in ODD]
        lines += [{"t": 1.8e9, "registry": {"pid": 4711, "record": r}} for r in told]
    for name in ("t", "arrived", "viewer", "origin"):
        lines += [{"t": 1.8e9, "goto": {"session_id": "s"}, name: odd} for odd in ODD]
    return lines


def test_every_event_can_be_written(make: Make, clock: Clock) -> None:
    """Numbers out of range, lone surrogates, endless, deep and long values, in any field."""
    shared = make()
    emit(shared, clock, "UserPromptSubmit", "s")
    lines = odd_lines()
    for line in lines:
        put_raw(shared.spool, json.dumps(line).encode(), clock())
    while shared.turn(clock.advance(1)).more:
        pass
    assert [] == list(shared.spool.new.iterdir())
    refused = shared.spool.counts()["refused"]
    assert isinstance(refused, dict)
    assert {"not an event"} >= refused.keys()
    log = shared.store.database.all("SELECT length(event) FROM events")
    assert len(log) > len(lines) // 2
    assert max(size for (size,) in log) < 20_000
    assert (
        shared.store.database.all("SELECT length(record) FROM sessions WHERE session_id = 's'")[0][
            0
        ]
        < 1e5
    )
    with opened(shared.spool.home) as late:
        assert statuses(late.board) == statuses(shared.board)
        assert not late.store.unsound


def test_a_small_event_is_not_copied() -> None:
    """A large event keeps its subject."""
    small = from_line({"t": 1.8e9, "goto": {"session_id": "s"}})
    assert bounded(small) is small
    large = from_line({"t": 1.8e9, "process": {"pid": 7, "alive": True, "started": "x" * 9000}})
    kept = bounded(large)
    assert (7, "process", 512) == (kept.pid, kept.kind, len(kept.started))
