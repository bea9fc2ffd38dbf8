"""No part of board.db grows forever: panes, records, the log, free pages."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bellboard.agents.claude.hooks import hook
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.events import Origin
from bellboard.core.records import LARGEST_RECORD, MOST_PANES
from bellboard.storage import database
from bellboard.storage.pruning import GONE, SPARE
from bellboard.storage.spool import Spool
from bellboard.storage.store import KEEP, Busy, Store
from rig.clock import Clock
from rig.home import Home
from rig.host.hosting import (
    Make,
    Mounts,
    RecordedHost,
    emit,
    from_files,
    made,
    opened,
    put,
    statuses,
)
from rig.waiting import eventually


def test_panes_of_no_session_are_forgotten_and_those_of_sessions_are_not() -> None:
    """After a thousand panes without a session, the session's own is still known."""
    board = Board()
    prompt = b'{"session_id": "s", "hook_event_name": "UserPromptSubmit"}'
    board.fold(hook(prompt, 1.8e9, 1.8e9, Origin(tmux="/tmp/t", pane="%1")))
    for n in range(1000):
        told = {"tmux": "/tmp/t", "pane": f"%{n}", "tty": f"/dev/pts/{n}", "alive": True}
        board.fold(from_line({"t": 1.8e9 + n, "pane": told}))
    panes = board.ledger.panes
    assert MOST_PANES + 1 == len(panes)
    assert "/dev/pts/1" == panes["/tmp/t\n%1"]
    assert "/dev/pts/999" == panes["/tmp/t\n%999"]
    board.fold(from_line({"t": 1.9e9, "pane": {"tmux": "/tmp/t", "pane": "%999", "alive": False}}))
    assert "/tmp/t\n%999" not in board.ledger.panes


def test_a_record_stays_small(make: Make, clock: Clock) -> None:
    """Of endless tools and subagents the newest are kept, by every host."""
    one, two = make(), make()
    emit(one, clock, "UserPromptSubmit")
    for n in range(2000):
        emit(one, clock, "PreToolUse", tool_name="Bash", tool_use_id=f"t{n}")
        emit(one, clock, "SubagentStart", agent_id=f"a{n}", agent_type="general")
    while one.turn(clock()).more:
        pass
    (size,) = one.store.database.all("SELECT length(record) FROM sessions WHERE session_id = 's'")[
        0
    ]
    assert size <= LARGEST_RECORD
    two.turn(clock())
    assert one.board.sessions["s"] == two.board.sessions["s"]
    assert "t1999" in two.board.sessions["s"].tools


def test_the_log_is_limited_in_bytes_too(make: Make, clock: Clock) -> None:
    """Large events push out more old ones."""
    shared = make()
    store = shared.store
    store.pruning.keep_bytes = 1 << 20
    for n in range(600):
        emit(shared, clock, "UserPromptSubmit", cwd=f"/{n}" * 1000, transcript_path="/x" * 2000)
        if n % 20 == 0:
            shared.turn(clock())
    shared.turn(clock())
    (size,) = store.database.all("SELECT sum(length(event)) FROM events")[0]
    assert store.pruning.keep_bytes / 2 < size < 1.5 * store.pruning.keep_bytes
    newest = from_files(store.log())[-1].event.cwd
    assert newest.startswith("/599")


def test_a_session_that_is_gone_leaves_no_row_for_long(make: Make, clock: Clock) -> None:
    """Every host knows by then; one that does not reads everything again."""
    one, two, asleep = make(), make(), make()
    for name in ("a", "b"):
        emit(one, clock, "UserPromptSubmit", name)
    for shared in (one, two, asleep):
        shared.turn(clock())
    one.board.drop("a")
    emit(one, clock, "Stop", "b")
    one.turn(clock.advance(1))
    two.turn(clock())
    assert {"b": "completed"} == statuses(two.board)
    emit(one, clock, "UserPromptSubmit", "b")
    one.turn(clock.advance(GONE + 1))
    one.store.pruning.prune(clock())
    assert [("",), ("b",)] == one.store.database.all("SELECT session_id FROM sessions ORDER BY 1")
    asleep._known -= GONE
    asleep.catch_up()
    assert statuses(one.board) == statuses(asleep.board)
    assert {"b"} == statuses(one.board).keys()


def fill(store: Store, t: float) -> None:
    with store.transaction():
        rows = [(t, "s", "idle", "working", "wake", "x" * 200, 0)] * 20_000
        query = "INSERT INTO transitions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)"
        store.database.db.executemany(query, rows)


def test_pruned_pages_are_returned_gradually(make: Make, clock: Clock) -> None:
    shared = make()
    store = shared.store
    fill(store, clock())
    store.database.db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    before = store.database.path.stat().st_size
    clock.advance(2 * KEEP)

    def is_small() -> bool:
        store.pruning.prune(clock())
        shared.sweep(clock())
        left = store.database.all("SELECT count(*) FROM transitions")
        return left == [(0,)] and store.database.path.stat().st_size < before / 4

    eventually(is_small, "no old rows, and a file that has shrunk")
    emit(shared, clock, "UserPromptSubmit")
    shared.turn(clock())
    assert [("ok",)] == store.database.all("PRAGMA quick_check")


def test_a_host_prunes_until_nothing_old_is_left(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """A host once deleted 2,000 rows every ten minutes, however many there were."""
    with contextlib.closing(Store(made(home.bellboard).home)) as store:
        fill(store, time.time() - 2 * KEEP)
    start(rescan=0.1)

    def is_empty() -> bool:
        with opened(home.bellboard) as shared:
            assert [(0,)] == shared.store.database.all("SELECT count(*) FROM transitions")
        return True

    eventually(is_empty, "no old rows")


def test_the_file_shrinks_although_a_checkpoint_was_still_running(make: Make, clock: Clock) -> None:
    """The last pages are then only in the log: they are written as soon as it has ended."""
    store = make().store
    fill(store, clock())
    store.database.db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    before = store.database.path.stat().st_size
    over = threading.Event()
    store.pruning._thread = threading.Thread(target=over.wait)
    store.pruning._thread.start()
    while (
        store.database.all("SELECT count(*) FROM transitions") != [(0,)]
        or store.pruning._free() > SPARE
    ):
        store.pruning.prune(clock() + 2 * KEEP)
        store.pruning.shrink()
    over.set()

    def is_small() -> bool:
        store.pruning.shrink()
        return store.database.path.stat().st_size < before / 4

    eventually(is_small, "a file that shrinks")


def test_an_older_database_shrinks_as_well(tmp_path: Path, clock: Clock) -> None:
    """A database without incremental vacuum is rewritten once, outside the event loop."""
    home = made(tmp_path / "home").home
    with contextlib.closing(sqlite3.connect(home / "board.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(database.MIGRATIONS[1] + "; PRAGMA user_version = 1")
    with contextlib.closing(Store(home)) as store:
        assert [(0,)] == store.database.all("PRAGMA auto_vacuum")
        fill(store, clock())
        store.database.db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
        before = store.database.path.stat().st_size

        def is_small() -> bool:
            with contextlib.suppress(Busy):  # while it is rewritten
                store.pruning.prune(clock() + 2 * KEEP)
                store.pruning.shrink()
            return store.database.path.stat().st_size < before / 4

        eventually(is_small, "a file that shrinks")
        assert [(2,)] == store.database.all("PRAGMA auto_vacuum")


def test_the_wal_is_checkpointed_outside_the_event_loop(make: Make, clock: Clock) -> None:
    """Long before a COMMIT would have to wait for the disk."""
    shared = make()
    wal = Path(f"{shared.store.database.path}-wal")
    for n in range(1500):
        emit(shared, clock, "UserPromptSubmit" if n % 2 else "Stop", n=n)
        shared.turn(clock.advance(1))
    frames = shared.store.database.all("PRAGMA wal_checkpoint")[0][1]
    assert frames < 4000
    assert wal.stat().st_size < 4000 * 4200


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
