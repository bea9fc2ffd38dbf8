"""The shared database file: versions, damage, locks, bounded size."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from bellboard.core.board import Board
from bellboard.core.events import Event
from bellboard.core.records import Folded, Transition, noted
from bellboard.diagnosis.state import holder_of
from bellboard.storage import database, pruning
from bellboard.storage.database import WAL_LIMIT
from bellboard.storage.set_aside import set_database_aside
from bellboard.storage.spool import Spool
from bellboard.storage.store import KEEP, Busy, Damaged, Newer, Store
from bellboard.system.mounts import network_of
from rig.clock import Clock
from rig.host.hosting import Make, emit, made, statuses, work

pytestmark = pytest.mark.quick

USER = 54_321  # needs no account
NEXT = {**database.MIGRATIONS, database.SCHEMA + 1: "ALTER TABLE sessions ADD COLUMN mood TEXT"}


# The file


def test_a_newer_program_migrates_it_and_an_older_one_stops(make: Make, clock: Clock) -> None:
    """The older host notices at its next transaction and keeps what it knew."""
    old = make()
    work(old, clock)
    new = make(schema=database.SCHEMA + 1, migrations=NEXT)
    assert database.version_of(new.store.database.db) == database.SCHEMA + 1
    new.catch_up()
    assert statuses(new.board) == {"s": "working"}
    emit(old, clock, "Stop")
    with pytest.raises(Newer):
        old.turn(clock())
    with pytest.raises(Newer):
        old.catch_up()
    assert statuses(old.board) == {"s": "working"}
    with pytest.raises(Newer):
        old.store.claim([(1, "e")], 1, clock())
    assert len(list(old.spool.new.iterdir())) == 1


@pytest.fixture
def ours() -> Iterator[Path]:
    """Make a folder of a user to whom modes apply, and be that user."""
    folder = Path(tempfile.mkdtemp(prefix="bb-", dir="/tmp")).resolve()
    if is_root := os.geteuid() == 0:
        os.chown(folder, USER, USER)
        os.setegid(USER)
        os.seteuid(USER)
    umask = os.umask(0o022)
    yield folder
    os.umask(umask)
    if is_root:
        os.seteuid(0)
        os.setegid(0)
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["board.db", "board.db-wal", "board.db-shm"])
def test_a_database_that_may_not_be_written_is_used_again_once_it_may(
    ours: Path, name: str
) -> None:
    """SQLite would open it to read, and never write, and then it would pass for damaged."""
    kept = Store(ours)  # so that its log stays
    (ours / name).chmod(0o400)
    with pytest.raises(PermissionError, match=name):
        Store(ours)
    if name != "board.db":
        Spool(ours).prepare()  # as each host does before
    else:
        (ours / name).chmod(0o600)
    again = Store(ours)
    with again.transaction() as tx:
        tx.set_option("mode", "all", 1, 1.0)
    for store in (again, kept):
        assert "all" == store.option("mode")
        store.close()


@pytest.mark.parametrize("left", range(4))
def test_a_process_that_may_open_few_files_finds_no_damage(tmp_path: Path, left: int) -> None:
    """Otherwise a host that is short of descriptors would move a sound database away."""
    made(tmp_path)
    Store(tmp_path).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = [os.open("/", os.O_RDONLY)]
    try:
        highest = max(int(path.name) for path in Path("/dev/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, hard))
        with contextlib.suppress(OSError):
            while True:
                spare.append(os.dup(spare[0]))
        for _ in range(left):
            os.close(spare.pop())
        with contextlib.suppress(OSError, sqlite3.OperationalError):
            Store(tmp_path).close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in spare:
            os.close(descriptor)


@pytest.mark.parametrize("umask", [0o777, 0o277, 0o000])
def test_what_one_host_makes_another_can_open_whatever_the_umask(ours: Path, umask: int) -> None:
    os.umask(umask)
    stores = []
    for _ in range(2):
        Spool(ours).prepare()
        stores.append(Store(ours))
        with stores[-1].transaction() as tx:
            tx.set_option("mode", "all", 1, 1.0)
    for store in stores:
        store.close()
    assert {0o600} == {p.stat().st_mode & 0o777 for p in ours.iterdir() if p.is_file()}


#: Programs in the database: they drop what is written, never end, or grow.
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
PROGRAMS = {
    "a trigger that drops rows": (
        "CREATE TRIGGER x BEFORE INSERT ON sessions BEGIN SELECT RAISE(IGNORE); END",
    ),
    "a trigger that never ends": (
        f"CREATE TRIGGER x AFTER INSERT ON events BEGIN SELECT sum(n) FROM ({ENDLESS}); END",
    ),
    "a view that never ends": (
        "ALTER TABLE editors RENAME TO other",
        f"CREATE VIEW editors AS SELECT n pid, '' server, '' tmux, '' pane, 0 focused FROM"
        f" ({ENDLESS})",
    ),
    "an index that keeps one row": ("CREATE UNIQUE INDEX x ON sessions (listed)",),
    "an index of an expression": ("CREATE INDEX x ON events (length(why))",),
    "one more table": ("CREATE TABLE more (x)",),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_others_put_into_the_database_is_damage(
    make: Make, clock: Clock, program: str
) -> None:
    """Triggers, views and indexes run with our statements: found at the next one, and at the start.

    The file is set aside before an event is folded into it, so none is lost.
    """
    shared = make()
    work(shared, clock)
    with contextlib.closing(
        sqlite3.connect(shared.store.database.path, isolation_level=None)
    ) as other:
        for statement in PROGRAMS[program]:
            with contextlib.suppress(sqlite3.Error):
                other.execute(statement)
    emit(shared, clock, "Stop")
    with pytest.raises(Damaged, match=r"board\.db was altered: "):
        shared.turn(clock())
    with pytest.raises(Damaged, match=r"board\.db was altered: "):
        Store(shared.store.database.path.parent)
    assert len(list(shared.spool.new.iterdir())) == 1


@pytest.mark.parametrize("version", [-1, database.UNLIKELY])
def test_an_impossible_schema_version_is_damage(tmp_path: Path, version: int) -> None:
    """A byte has changed; no program is that much newer."""
    store = Store(tmp_path)
    store.database.db.execute(f"PRAGMA user_version = {version}")
    store.close()
    with pytest.raises(Damaged, match="impossible schema version"):
        Store(tmp_path)


def test_a_migration_that_fails_changes_nothing(make: Make, clock: Clock) -> None:
    old = make()
    work(old, clock)
    broken = {**database.MIGRATIONS, database.SCHEMA + 1: "CREATE TABLE a (b); DROP TABLE nothing"}
    with pytest.raises(sqlite3.OperationalError, match="nothing"):
        make(schema=database.SCHEMA + 1, migrations=broken)
    emit(old, clock, "Stop")
    old.turn(clock.advance(1))
    assert statuses(old.board) == {"s": "completed"}


def test_a_damaged_file_is_set_aside_only_if_nobody_else_has_it_open(tmp_path: Path) -> None:
    """No data is lost, and a file in its place is left alone."""
    made(tmp_path)
    other = Store(tmp_path)
    other.database.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log would repair it
    path = tmp_path / "board.db"
    path.write_bytes(b"no database\n" * 1000)
    with pytest.raises(Damaged) as caught:
        Store(tmp_path)
    inode = caught.value.inode
    assert set_database_aside(tmp_path, inode) is None
    other.close()
    there = set_database_aside(tmp_path, inode)
    assert there is not None
    assert there.read_bytes().startswith(b"no database")
    fresh = Store(tmp_path)
    fresh.close()
    assert set_database_aside(tmp_path, inode) == path
    assert path.exists()


def test_a_damaged_page_is_reported_as_damage(make: Make, clock: Clock) -> None:
    """In every statement that finds it, not only on opening."""
    shared = make()
    for n in range(300):
        emit(shared, clock, "UserPromptSubmit", f"s{n}")
    shared.turn(clock())
    shared.store.database.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = shared.store.database.path.stat().st_size
    with shared.store.database.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with pytest.raises(Damaged):
        make().catch_up()


def test_undecodable_text_under_the_lock_does_not_mark_the_database_damaged(make: Make) -> None:
    """Only SQLite knows its file: a healthy one is not set aside for a byte in another file."""
    store = make().store
    with pytest.raises(UnicodeDecodeError), store.transaction():
        b"\xff".decode()
    with pytest.raises(Damaged), store.transaction():
        raise sqlite3.DatabaseError("database disk image is malformed")


def test_many_may_open_a_new_home_at_once(tmp_path: Path) -> None:
    """One process creates the tables."""
    home = tmp_path / "home"
    made(home)
    code = "import sys; from pathlib import Path; from bellboard.storage.store import Store\n"
    code += "sys.stdin.read(); Store(Path(sys.argv[1])).close(); print('well')"
    run = [sys.executable, "-c", code, str(home)]
    pipe = subprocess.PIPE
    all_of_them = [subprocess.Popen(run, stdin=pipe, stdout=pipe, text=True) for _ in range(6)]
    for process in all_of_them:  # each waits for this after its imports
        assert process.stdin
        process.stdin.close()
        process.stdin = None
    assert [process.communicate()[0] for process in all_of_them] == ["well\n"] * 6


def test_the_holder_of_the_lock_is_known(make: Make) -> None:
    one, two = make(), make()
    assert holder_of(two.store.database.path.parent) is None
    with one.store.transaction():
        assert holder_of(two.store.database.path.parent) == os.getpid()


def test_a_network_file_system_is_known_by_its_mount(tmp_path: Path) -> None:
    """From the kernel's table; anything not listed there is local."""
    device = tmp_path.stat().st_dev
    row = f"36 35 {os.major(device)}:{os.minor(device)} / {tmp_path} rw - %s server:/home rw\n"
    table = tmp_path / "mountinfo"
    for kind, expected in (("nfs4", "nfs4"), ("ext4", "")):
        table.write_text(row % kind)
        assert network_of(tmp_path, str(table)) == expected
    table.write_text("")
    assert network_of(tmp_path, str(table)) == ""
    assert network_of(tmp_path / "none", str(tmp_path / "none")) == ""


@pytest.mark.parametrize(
    ("mounts", "network"),
    [
        ([("/", "apfs")], ""),
        ([("/", "apfs"), ("{here}", "smbfs")], "smbfs"),
        ([("/", "nfs"), ("{here}", "apfs"), ("{here}/deep/er", "nfs")], ""),
    ],
)
def test_a_network_file_system_is_known_without_a_table_of_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: list[tuple[str, str]], network: str
) -> None:
    """On macOS: there is no shared memory for SQLite on it there either."""
    found = [
        SimpleNamespace(mountpoint=place.format(here=tmp_path), fstype=kind)
        for place, kind in mounts
    ]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: found)
    monkeypatch.setattr("bellboard.system.mounts.TABLE", "/nowhere")
    (tmp_path / "deep").mkdir()
    assert network_of(tmp_path / "deep", "/nowhere") == network
    assert network_of(tmp_path / "deep/none", "/nowhere") == network


def test_on_a_network_file_system_there_is_no_wal(make: Make, clock: Clock) -> None:
    """Two hosts still work, and readers that are locked out report it."""
    one, two = make(network="nfs"), make(network="nfs")
    assert one.store.database.all("PRAGMA journal_mode") == [("delete",)]
    work(one, clock)
    emit(two, clock, "Stop")
    two.turn(clock.advance(1))
    one.turn(clock())
    assert statuses(one.board) == {"s": "completed"}
    assert not list(one.spool.home.glob("*-shm"))
    with one.store.transaction() as tx:
        tx.set_option("x", 1, 1, 1.0)
        with pytest.raises(Busy):
            two.store.claim([(1, "e")], 2, clock())


# Size


def folded(clock: Clock, count: int, sid: str = "s") -> Sequence[tuple[str, Folded]]:
    e = Event("tool", "PreToolUse", clock(), clock(), sid, tool="Bash", detail="x" * 200)
    change = Transition(clock(), sid, "idle", "working", "wake", "why" * 20)
    return [(f"{n}", Folded(e, sid, noted("x" * 40), (change,))) for n in range(count)]


def test_the_database_and_its_wal_stay_bounded(make: Make, clock: Clock) -> None:
    """After ten times the retained amount, the file is no larger than the retained rows."""
    store = make().store
    store.pruning.keep_events, store.pruning.keep_transitions = 1000, 1000
    sizes = []
    store.database.db.execute("PRAGMA wal_autocheckpoint = 100")
    for _ in range(20):
        for _ in range(5):
            with store.transaction() as tx:
                tx.write(Board(), [], folded(clock, 100), 0.0, clock())
        sizes.append(store.database.path.stat().st_size)
    assert store.database.all("SELECT count(*) FROM events") == [(1000,)]
    assert store.database.all("SELECT count(*) FROM transitions") == [(1000,)]
    assert sizes[-1] <= 1.2 * sizes[8]


@pytest.mark.parametrize("table", ["events", "transitions"])
def test_what_happens_on_other_machines_displaces_no_history_of_this_one(
    make: Make, clock: Clock, table: str
) -> None:
    """A quarter of the history is theirs, such as their answers, and the rest stays."""
    store = make().store
    store.pruning.keep_events, store.pruning.keep_transitions = 1000, 1000
    for sid in ["s"] * 12 + ["dev/claude/s"] * 30:
        with store.transaction() as tx:
            tx.write(Board(), [], folded(clock, 100, sid), 0.0, clock())
    counts = store.database.all(f"SELECT session_id, count(*) FROM {table} GROUP BY session_id")
    assert {"dev/claude/s": 250, "s": 750} == dict(counts)


def test_a_table_is_shortened_faster_than_it_grows(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More rows may be added between two counts than are deleted in one step."""
    monkeypatch.setattr(pruning, "STEP", 10)
    store = make().store
    store.pruning.keep_transitions = 6400
    for _ in range(80):
        with store.transaction() as tx:
            tx.write(Board(), [], folded(clock, 100), 0.0, clock())
    ((count,),) = store.database.all("SELECT count(*) FROM transitions")
    assert count <= 6400 + 200


def test_large_events_of_other_machines_displace_no_events_of_this_one(
    make: Make, clock: Clock
) -> None:
    """A quarter of the bytes is theirs, and the rest stays."""
    store = make().store
    store.pruning.keep_bytes = 1 << 20
    sizes = []
    for sid in ["s", *["dev/claude/s"] * 4] * 15:
        with store.transaction() as tx:
            tx.write(Board(), [], folded(clock, 100, sid), 0.0, clock())
        sizes += store.database.all(
            "SELECT sum(length(event)) FROM events WHERE session_id != 's'"
        )[0]
    assert [(1500,)] == store.database.all("SELECT count(*) FROM events WHERE session_id = 's'")
    assert (1 << 18) - (1 << 10) <= min(sizes[-5:])
    assert max(sizes[-5:]) <= (1 << 18) + (1 << 16) + (1 << 15)


def test_the_wal_stays_small(make: Make, clock: Clock) -> None:
    """The log is checkpointed every CHECKPOINT pages and then starts over."""
    store = make().store
    for _ in range(300):
        with store.transaction() as tx:
            tx.write(Board(), [], folded(clock, 100), 0.0, clock())
    assert Path(f"{store.database.path}-wal").stat().st_size <= 2 * WAL_LIMIT


def test_history_is_kept_for_thirty_days(make: Make, clock: Clock) -> None:
    """So are ended sessions; the newest revision stays, as hosts compare with it."""
    one, two = make(), make()
    work(one, clock)
    emit(one, clock, "SessionEnd")
    one.turn(clock.advance(1))
    one.store.pruning.prune(clock() + KEEP - 10)
    assert len(one.store.history()) == 2
    clock.advance(20)
    emit(one, clock, "UserPromptSubmit", "later")
    one.turn(clock())
    one.store.pruning.prune(clock() + KEEP - 10)
    assert [c.session_id for c in one.store.history()] == ["later"]
    assert one.store.database.all("SELECT session_id FROM sessions WHERE record IS NOT NULL") == [
        ("",),
        ("later",),
    ]
    one.store.pruning.prune(clock() + 2 * KEEP)
    two.turn(clock())
    emit(two, clock, "Stop", "later")
    two.turn(clock.advance(1))
    one.turn(clock())
    assert statuses(one.board) == {"later": "completed"}
