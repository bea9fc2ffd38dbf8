"""The spool on a real directory: order, junk, slots, hosts."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bellboard.agents.installing.installer import backups
from bellboard.storage import set_aside, state_folder
from bellboard.storage.event_file import ENVIRONMENT, LIMIT, MAGIC, Item
from bellboard.storage.set_aside import (
    AT_ONCE,
    BYTES,
    FILES,
    MOST_ASIDE,
    SLACK,
    _keep_newest,
    kept_databases,
)
from bellboard.storage.spool import Spool, default_home
from bellboard.storage.state_folder import Refused, listing
from bellboard.system.files import entries
from bellboard.system.processes import began_at
from faults.volumes import nest
from rig import ROOT
from rig.machines.mounts import Mounts

pytestmark = pytest.mark.quick

IS_ROOT = os.geteuid() == 0
HEADER = MAGIC + b"agent=claude\0event=Stop\0pid=77\0TMUX=\0CLAUDE_PROJECT_DIR=/srv\0\0"
PAYLOAD = b'{"session_id":"s"}'


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "bellboard")
    made.prepare()
    return made


def put(spool: Spool, name: str, data: bytes = HEADER + PAYLOAD, ns: int | None = None) -> Path:
    path = spool.new / name
    path.write_bytes(data)
    if ns is not None:
        os.utime(path, ns=(ns, ns))
    return path


def take(spool: Spool) -> list[Item]:
    """Read and unlink everything, as a host does, but without folding."""
    items = []
    spool.claim_slots()
    for name in spool.scan():
        try:
            if item := spool.read(name):
                items.append(item)
        except Refused as refused:
            spool.set_aside(name, str(refused))
    spool.finish()
    spool.unlink(item.name for item in items)
    return items


# The directories


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_everything_is_private(tmp_path: Path, umask: int) -> None:
    """Folders have mode 0700, parents too, and files 0600; other modes are corrected."""
    before = os.umask(umask)
    try:
        spool = Spool(tmp_path / "a/b/bellboard")
        spool.prepare()
        (spool.home / "spool").chmod(0o755)
        spool.home.chmod(0o777)
        spool.prepare()
        spool.write({"t": 1.0, "note": "x"})
        spool.hosts.announce(1)
        put(spool, "junk").chmod(0o600)
        spool.set_aside("junk", "junk", "what it said")
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")}
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in modes}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert len([path for path in modes if path.is_file()]) >= 4


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "HOME is not set"),
        ({"HOME": ""}, "HOME is not set"),
        ({"HOME": "", "XDG_STATE_HOME": "relative"}, "HOME is not set"),
        ({"HOME": "relative"}, "HOME is not an absolute path: relative"),
        ({"HOME": "/x", "BELLBOARD_HOME": "own"}, "BELLBOARD_HOME is not an absolute path: own"),
        ({"BELLBOARD_HOME": "/a\0b"}, "BELLBOARD_HOME is not an absolute path: /a\0b"),
        ({"XDG_STATE_HOME": "/a\0b"}, "XDG_STATE_HOME is not an absolute path: /a\0b"),
    ],
    ids=str,
)
def test_an_unusable_home_is_refused(environ: dict[str, str], why: str) -> None:
    """Naming the variable; never a folder of the project or one at the root."""
    with pytest.raises(Refused) as refused:
        default_home(environ)
    assert why == str(refused.value)


# Order and reading


def test_files_are_ordered_by_time(spool: Spool) -> None:
    """To the nanosecond; names decide between equal times."""
    base = 1_700_000_000_123_456_000
    put(spool, "a", ns=base + 2)
    put(spool, "c", ns=base + 1)
    put(spool, "b", ns=base + 1)
    put(spool, "d", ns=base)
    spool.write({"t": 1_700_000_001.5, "note": "later"}, key="k")
    *hooks, line = spool.scan()
    assert hooks == ["d", "b", "c", "a"]
    [first, *_, last] = [spool.read(name) for name in spool.scan()]
    assert first and last
    assert (first.name, first.t, first.kind) == ("d", base / 1e9, "hook")
    assert (last.name, last.t, last.kind) == (line, 1_700_000_001.5, "line")
    assert json.loads(last.payload) == {"t": 1_700_000_001.5, "note": "later"}


@pytest.fixture
def stutter(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """List each name twice, as Linux may, on tmpfs, if the folder changes meanwhile."""
    scans, lists = os.scandir, os.listdir

    @contextlib.contextmanager
    def scanned(folder: int | str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with scans(folder) as entries:
            found = list(entries)
            yield iter(found + found)

    monkeypatch.setattr(os, "scandir", scanned)
    monkeypatch.setattr(os, "listdir", lambda folder: 2 * lists(folder))


@pytest.mark.usefixtures("stutter")
def test_a_file_listed_twice_is_one_event(spool: Spool) -> None:
    put(spool, "once")
    assert spool.scan() == ["once"]


@pytest.mark.usefixtures("stutter")
def test_every_listing_names_a_file_once(spool: Spool) -> None:
    """Among others, that of the backups, of which the last three are kept."""
    put(spool, "once")
    assert listing(spool.new) == ["once"]
    assert [name for name, _ in entries(spool.new)] == ["once"]
    copy = spool.home / "settings.json.bellboard-20261123-120000"
    copy.touch()
    assert backups(spool.home / "settings.json") == [copy]
    damaged = [
        spool.home / f"board.db.damaged-20260101-00000{n}-000" for n in range(MOST_ASIDE + 1)
    ]
    for path in damaged:
        path.touch()
    Path(f"{damaged[0]}-journal").touch()
    assert kept_databases(spool.home) == damaged
    _keep_newest(spool.home)
    assert sorted({*spool.home.glob("board.db.damaged-*")}) == damaged[1:]


def test_a_payload_is_read_up_to_1_mb(spool: Spool) -> None:
    """Of a longer one only the start is read, and marked as truncated."""
    put(spool, "exact", HEADER + b"x" * (LIMIT - len(HEADER)))
    put(spool, "long", HEADER + b"x" * (50 << 20))
    exact, long = spool.read("exact"), spool.read("long")
    assert exact and long
    assert (len(HEADER + exact.payload), exact.truncated) == (LIMIT, False)
    assert (len(HEADER + long.payload), long.truncated) == (LIMIT, True)


def test_only_named_variables_get_in(spool: Spool) -> None:
    """Other variables in a header, such as a token, are dropped."""
    put(spool, "a", MAGIC + b"ANTHROPIC_API_KEY=sk\0TERM_PROGRAM=tmux\0pid=-1\0\0{}")
    item = spool.read("a")
    assert item and item.origin == {"agent": "claude", "env": {"TERM_PROGRAM": "tmux"}}
    manual = (ROOT / "doc/internals.md").read_text()
    listed = manual.partition("TMUX_PANE=%3 ")[2].partition("never any other")[0]
    assert set(listed.replace(",", "").split()) >= ENVIRONMENT


def test_a_file_taken_by_another_host_is_skipped(spool: Spool) -> None:
    """The file disappears between listing and reading."""
    put(spool, "a")
    [name] = spool.scan()
    assert spool.unlink([name]) == []
    assert spool.read(name) is None
    assert spool.unlink([name]) == []
    spool.set_aside(name, "gone")
    assert spool.counts()["refused"] == {}


# What hosts add


def test_one_key_is_one_file(spool: Spool) -> None:
    """Several hosts report the same change at once."""
    line = {"t": time.time(), "registry": {"pid": 1, "record": None}}
    hosts = [Spool(spool.home) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda host: host.write(line, key="registry:1:99"), hosts))
    assert len(spool.scan()) == 1
    assert not spool.write(line, key="registry:1:99")
    assert spool.write(line, key="registry:1:100")
    assert spool.write(line)
    assert spool.write(line)
    assert [item.kind for item in take(spool)] == ["line"] * 4
    assert spool.write(line, key="registry:1:99")
    assert list((spool.home / "spool" / "tmp").iterdir()) == []


@pytest.mark.parametrize("t", [-1, float("nan"), float("inf"), 1e30, "x", None])
def test_a_line_with_an_invalid_time_gets_the_current_time(spool: Spool, t: object) -> None:
    """So the line is ordered by the time of its file."""
    spool.write({"t": t})
    [item] = take(spool)
    assert abs(item.t - time.time()) < 60


def test_a_line_too_long_to_be_read_is_not_written(spool: Spool) -> None:
    """The writer gets the error, since no reader could."""
    with pytest.raises(ValueError, match="the limit is"):
        spool.write({"t": 1.0, "note": "x" * LIMIT})
    assert spool.pending() == 0


# Slots and hosts


def test_slots_are_claimed_under_names_that_never_come_back(spool: Spool) -> None:
    """Even if a slot is written and claimed twice within one tick of the file system's clock."""
    names: set[str] = set()
    for _ in range(100):
        (spool.slot / "77.PreToolUse").write_bytes(HEADER + PAYLOAD)
        spool.claim_slots()
        names.update(spool.scan())
    assert len(names) == 100
    assert len(take(spool)) == 100
    spool.claim_slots()
    assert spool.scan() == []


def test_junk_in_slots_is_claimed_as_well(spool: Spool) -> None:
    """Junk is rejected in the same place as everywhere."""
    (spool.slot / "a directory").mkdir()
    (spool.slot / ("x" * 240)).write_bytes(b"junk")
    spool.claim_slots()
    assert take(spool) == []
    assert spool.counts()["refused"] == {"a directory": 1, "unknown format": 1}


def test_a_record_from_before_a_process_began_is_that_of_another_host(spool: Spool) -> None:
    """Pids come back soon after a restart of a machine or container; a sleep ends no host."""
    spool.hosts.announce(os.getpid())
    began = began_at(os.getpid()) or 0.0
    record = spool.home / "hosts" / str(os.getpid())
    record.write_text('{"started":"1"}')
    os.utime(record, (began + 3, began + 3))
    assert [os.getpid()] == spool.hosts.alive()
    os.utime(record, (began - 60, began - 60))
    assert [] == spool.hosts.alive()


@pytest.mark.parametrize("notes", [None, {"rows": "odd"}, {}], ids=str)
def test_a_clock_that_is_set_forward_ends_no_host(
    spool: Spool, notes: dict[str, str] | None
) -> None:
    """When a process began moves with it on Linux, and the time of its record does not."""
    spool.hosts.announce(os.getpid(), notes)
    spool.hosts.announce(os.getpid())
    began = began_at(os.getpid()) or 0.0
    os.utime(spool.home / "hosts" / str(os.getpid()), (began - 60, began - 60))
    assert [os.getpid()] == spool.hosts.alive()
    assert (notes or {}) == spool.hosts.notes_of(os.getpid())


def test_without_descriptors_a_host_stays_announced(spool: Spool) -> None:
    """A host's own record is not removed like a file that somebody else put there."""
    spool.hosts.announce(os.getpid())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            spool.hosts.announce(os.getpid())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [os.getpid()] == spool.hosts.alive()


def test_a_link_among_the_hosts_is_replaced(spool: Spool, tmp_path: Path) -> None:
    """By a file of ours; a pipe too."""
    precious = tmp_path / "precious"
    (spool.home / "hosts/7").symlink_to(precious)
    os.mkfifo(spool.home / "hosts/8")
    for pid in (7, 8):
        spool.hosts.announce(pid)
        assert stat.S_ISREG((spool.home / f"hosts/{pid}").lstat().st_mode)
    assert not precious.exists()


def test_dead_hosts_are_forgotten(spool: Spool) -> None:
    """So hooks know that no host is running."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    spool.hosts.announce(os.getpid())
    spool.hosts.announce(child.pid)
    junk = {"0", "-1", "x", "²", "9" * 30, "5000"}
    for name in junk - {"5000"}:
        (spool.home / "hosts" / name).touch()
    (spool.home / "hosts" / "5000").mkdir()
    assert spool.hosts.alive() == sorted([os.getpid(), child.pid])
    child.communicate()
    assert spool.hosts.alive() == [os.getpid()]
    left = {path.name for path in (spool.home / "hosts").iterdir()}
    assert left == {str(os.getpid()), *junk}  # others' files are left alone
    # The pid exists, but was not announced for long: another process has it by now.
    (spool.home / "hosts" / str(os.getpid())).write_bytes(b"")
    os.utime(spool.home / "hosts" / str(os.getpid()), (1, 1))
    assert spool.hosts.alive() == []
    spool.hosts.announce(os.getpid())
    spool.hosts.withdraw(os.getpid())
    spool.hosts.withdraw(os.getpid())
    assert spool.hosts.alive() == []


def test_what_killed_writers_left_is_swept(spool: Spool) -> None:
    """After an hour; younger files are still being written."""
    tmp = spool.home / "spool" / "tmp"
    (tmp / "old").write_bytes(b"x")
    (tmp / "old.d").mkdir()
    for name in ("old", "old.d"):
        os.utime(tmp / name, (1, 1))
    (tmp / "young").write_bytes(b"x")
    spool.sweep()
    assert [path.name for path in tmp.iterdir()] == ["young"]


@pytest.mark.parametrize("name", ["spool/new", "spool/slot", "spool/tmp", "hosts", "answers"])
def test_nothing_is_removed_behind_a_link(spool: Spool, tmp_path: Path, name: str) -> None:
    """The owner replaced one of our folders by a link while a host was running."""
    others = tmp_path / "others"
    for file in ("12.34.Stop", "999999", "some.txt"):
        path = others / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (1, 1))
    shutil.rmtree(spool.home / name)
    (spool.home / name).symlink_to(others)
    before = sorted(others.iterdir())
    later = time.time() + 1e6
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: later)  # a ctime cannot be set
        for sweep in (lambda: take(spool), spool.sweep, spool.hosts.alive):
            with contextlib.suppress(NotADirectoryError):
                sweep()
        spool.questions.drop_all_but(())
    assert before == sorted(others.iterdir())


# Junk


def a_symlink(path: Path) -> None:
    precious = path.parents[3] / "precious"
    precious.write_text("precious")
    path.symlink_to(precious)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is at most 108 bytes
        sock.bind(path.name)
        os.chdir(here)


def a_directory(path: Path) -> None:
    (path / "deep" / "er").mkdir(parents=True)
    (path / "file").write_bytes(b"x")


def of_another_user(path: Path) -> None:
    path.write_bytes(HEADER + PAYLOAD)
    os.chown(path, 12345, 12345)


def a_large_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(50 << 20)
        file.write(b"\x7fELF")


JUNK = {
    "a symlink": a_symlink,
    "a pipe": os.mkfifo,
    "a directory": a_directory,
    "a socket": a_socket,
    "empty": lambda path: path.write_bytes(b""),
    "unknown format": lambda path: path.write_bytes(b"\x7f" + os.urandom(8) * 400),
    "incomplete header": lambda path: path.write_bytes(HEADER[:-1]),
    "no payload": lambda path: path.write_bytes(HEADER + b" \n"),
    "a line of more than 1 MB": lambda path: path.write_bytes(b'{"t":' + b"[" * (LIMIT + 9)),
    "belongs to another user": of_another_user,
}
ALSO = {
    "unknown format": [a_large_file, lambda path: path.write_bytes(b"bellboard 2\0\0{}")],
    "empty": [lambda path: path.write_bytes(b"\0" * 4096)],
    "a symlink": [lambda path: path.symlink_to("nowhere"), lambda path: path.symlink_to(path)],
}
CASES = list(JUNK.items())
CASES += [(reason, make) for reason, makes in ALSO.items() for make in makes]


@pytest.mark.parametrize(("reason", "make"), CASES, ids=[reason for reason, _ in CASES])
def test_junk_is_set_aside_with_its_reason(spool: Spool, reason: str, make) -> None:  # type: ignore[no-untyped-def]
    """Not followed, waited for or read; the rest is processed."""
    if make is of_another_user and not IS_ROOT:
        pytest.skip("only root can give a file away")
    make(spool.new / "junk")
    put(spool, "good")
    assert [item.name for item in take(spool)] == ["good"]
    assert spool.counts() | {"bad": 1} == {
        "pending": 0, "slots": 0, "stuck": 0, "bad": 1, "refused": {reason: 1}
    }  # fmt: skip
    [why] = (spool.home / "spool" / "bad").glob("*.why")
    assert why.read_text() == f"{reason}\n"
    precious = spool.home.parent / "precious"  # the target of a link
    assert not precious.exists() or precious.read_text() == "precious"


def test_a_deep_bomb_is_an_item_like_any_other(spool: Spool) -> None:
    """The spool does not look at its JSON."""
    put(spool, "bomb", HEADER + b"[" * 500_000)
    [item] = take(spool)
    assert len(item.payload) == 500_000


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"a b", b".hidden", b"-x", b"x" * 255])
def test_improper_names_are_set_aside(spool: Spool, name: bytes) -> None:
    """The database could not store them."""
    Path(os.fsdecode(os.fsencode(spool.new) + b"/" + name)).write_bytes(HEADER + PAYLOAD)
    assert take(spool) == []
    assert spool.counts()["refused"] == {"invalid name": 1}
    assert spool.pending() == 0


def test_deep_folders_are_removed(spool: Spool) -> None:
    """Deeper than Python can recurse, where only files belong."""
    tmp = spool.home / "spool" / "tmp"
    nest(tmp / "old", 1500)
    for _ in range(100):  # a part each time
        with contextlib.suppress(FileNotFoundError):
            os.utime(tmp / "old", (1, 1))
        spool.sweep()
        if not any(tmp.iterdir()):
            return
    pytest.fail("they are still there")


def test_many_improper_names_are_set_aside_a_few_at_a_time(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands blocked a host for seconds."""
    monkeypatch.setattr(state_folder, "SLICE", 0.0)
    for number in range(3):
        put(spool, f".hidden{number}")
        (spool.slot / f"{number}.Stop").write_bytes(HEADER + PAYLOAD)
    put(spool, "good")
    for left in (2, 1, 0):
        spool.claim_slots()
        assert "good" in spool.scan()
        assert left == len(list(spool.new.glob(".hidden*"))) == len(list(spool.slot.iterdir()))
        assert spool.is_behind == (left > 0)


def test_good_files_are_read_among_bad_ones(spool: Spool) -> None:
    """All good ones in order; the newest bad ones are kept, and all are counted."""
    kinds = [(reason, make) for reason, make in CASES if IS_ROOT or make is not of_another_user]
    for number in range(1000):
        put(spool, f"good.{number:04}", ns=10**18 + number)
        kinds[number % len(kinds)][1](spool.new / f"junk.{number}")
    assert [item.name for item in take(spool)] == [f"good.{number:04}" for number in range(1000)]
    refused = spool.counts()["refused"]
    assert isinstance(refused, dict)
    assert sum(refused.values()) == 1000
    bad = list((spool.home / "spool" / "bad").glob("[0-9]*"))
    assert 100 < len(bad) <= FILES + 2 * SLACK
    assert sum(path.lstat().st_size for path in bad) <= 2 * BYTES
    assert spool.pending() == 0
    assert Spool(spool.home).counts()["refused"] == refused


def test_a_flood_is_only_counted(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 files took 22 s under load: of those refused at once, some are kept."""
    written: list[str] = []
    created = set_aside.created
    monkeypatch.setattr(
        set_aside, "created", lambda path, data: (written.append(path), created(path, data))[1]
    )
    for number in range(1000):
        (spool.slot / f"{number}").write_bytes(b"junk")
    monkeypatch.setattr("bellboard.storage.state_folder.SLICE", 60.0)  # all of them in one go
    assert take(spool) == []
    assert len(written) == AT_ONCE + 1  # reasons, and how many there were
    assert spool.counts() == {
        "pending": 0,
        "slots": 0,
        "stuck": 0,
        "bad": AT_ONCE,
        "refused": {"unknown format": 1000},
    }
    put(spool, "junk", b"junk")
    assert take(spool) == []
    assert "junk" in "".join(path.name for path in (spool.home / "spool/bad").iterdir())


@pytest.mark.parametrize("counts", [b'{"\xff": 1}', b'{"a": "\xff"}', b"[1]", b"\0" * 50, b""])
def test_counts_that_cannot_be_read_begin_again(spool: Spool, counts: bytes) -> None:
    """Counts are only for health: no event is refused for them."""
    (spool.home / "spool/bad/refused.json").write_bytes(counts)
    for _ in range(2):
        put(spool, "junk", b"junk")
        assert take(spool) == []
    assert spool.counts()["refused"] == {"unknown format": 2}


@pytest.mark.parametrize("notes", [b'{"a": "\xff"}', b'{"a"', b"[]"])
def test_notes_that_cannot_be_read_are_none(spool: Spool, notes: bytes) -> None:
    """A host may have died while it wrote them."""
    (spool.home / "hosts/77").write_bytes(notes)
    assert spool.hosts.notes_of(77) == {}


def test_the_detail_is_kept_beside(spool: Spool) -> None:
    """The traceback of an event that raised, of any length and with any characters."""
    put(spool, "poison")
    spool.set_aside("poison", "raised", "Traceback …\udcff" + "x" * 100_000)
    [why] = (spool.home / "spool" / "bad").glob("*.why")
    assert why.read_bytes().startswith(b"raised\nTraceback \xe2\x80\xa6\\udcffx")
    assert why.stat().st_size == 64 << 10


@pytest.fixture
def read_only(spool: Spool) -> Iterator[Spool]:
    """Return a spool with one event, on a read-only file system."""
    if not IS_ROOT or sys.platform != "linux":
        pytest.skip("mounting needs root on Linux")
    put(spool, "good")
    a_directory(spool.new / "junk")
    (spool.slot / "77.PreToolUse").write_bytes(HEADER + PAYLOAD)
    place, mount = spool.home / "spool", Mounts()
    mount("--bind", str(place), at=place)
    mount("-o", "remount,ro,bind", at=place, again=True)
    yield spool
    mount.close()


def test_what_another_host_could_read_is_not_stuck(spool: Spool) -> None:
    """Such an event is not missing among those that wait, either."""
    for name in ("one", "two"):
        put(spool, name)
    spool.ignore("one")
    Spool(spool.home).unlink(["one"])
    counts = spool.counts()
    assert (1, 0) == (counts["pending"], counts["stuck"])


def test_what_cannot_be_moved_is_looked_at_once(read_only: Spool) -> None:
    """Neither an endless loop nor an exception; health reports it."""
    assert [item.name for item in take(read_only)] == ["good"]
    assert read_only.scan() == ["good"]
    assert read_only.unlink(["good"]) == ["good"]
    assert read_only.counts() == {"pending": 1, "slots": 1, "stuck": 1, "bad": 0, "refused": {}}
    with pytest.raises(OSError, match="Read-only"):
        read_only.write({"t": 1.0})


def test_a_full_disk_leaves_nothing_half_written(spool: Spool) -> None:
    """`write` reports it, and the next write works."""
    if not IS_ROOT or sys.platform != "linux":
        pytest.skip("mounting needs root on Linux")
    place, mount = spool.home / "spool", Mounts()
    mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", at=place)
    try:
        spool.prepare()
        with pytest.raises(OSError, match="No space"):
            spool.write({"t": 1.0, "note": "x" * 500_000})
        assert [path for path in place.rglob("*") if path.is_file()] == []
        assert spool.write({"t": 1.0})
        put(spool, "junk", b"x" * 40_000)
        (place / "filler").write_bytes(b"x" * 12_000)
        assert len(take(spool)) == 1
        assert spool.pending() == 0
    finally:
        mount.close()
