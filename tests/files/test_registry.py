"""The CLI's session files, written as the CLI does, by real processes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.claude.session_files import FIELDS, FileState, Listing, Registry, config_of
from bellboard.agents.claude.witness import FOLDER, ConfigFolder
from bellboard.agents.need import Means, Need
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.evidence import Evidence
from bellboard.core.observing import Want
from bellboard.core.published import snapshot
from bellboard.system.notes import Notes
from bellboard.system.processes import started_of
from bellboard.system.reach import Reach
from bellboard.system.watch import Watch, Watched, Written
from rig.home import Home
from rig.waiting import PATIENCE

SECRETS = {"messagingSocketPath": "/tmp/secret.sock", "messagingToken": "secret", "jobId": "j1"}


@pytest.fixture
def process() -> Iterator[Callable[..., int]]:
    """process(**how) → the pid of a program that waits, stopped at the end of the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**how: Any) -> int:
        started.append(subprocess.Popen(["sleep", "60"], **how))
        return started[-1].pid

    yield start
    for each in started:
        each.kill()
        each.wait()


def write(home: Home, pid: int, /, **fields: Any) -> Path:
    """Write a session file as 2.1.328 does, in place."""
    path = home.claude / "sessions" / f"{pid}.json"
    path.parent.mkdir(exist_ok=True)
    record = {
        "pid": pid,
        "sessionId": "one",
        "cwd": "/home/user/proj",
        "startedAt": 1795169403000,
        "procStart": started_of(pid),
        "version": "2.1.328",
        "kind": "interactive",
        "entrypoint": "cli",
        "name": "proj-43",
        "nameSource": "derived",
        "tmux": "work:@0.%0",
        "status": "idle",
        "statusUpdatedAt": 1795169403616,
        "updatedAt": 1795169403616,
        **SECRETS,
        **fields,
    }
    path.write_text(json.dumps({k: v for k, v in record.items() if v is not None}))
    return path


def statuses(findings: list[Evidence]) -> list[Any]:
    """Return the pid and status of each finding; None for a file that is gone."""
    told = [dict(f.line)["registry"] for f in findings]
    return [(t["pid"], t["record"] and t["record"].get("status")) for t in told]  # type: ignore[index]


@pytest.fixture
def registry(home: Home) -> Registry:
    """Return the registry of the home's config directory."""
    return Registry([home.claude], "g1")


def test_a_session_is_found_and_nothing_private_leaves(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """Only fields that evidence needs are read; key files beside the file are not opened."""
    pid = process()
    path = write(home, pid)
    secret = path.with_name(f"{pid}.daf6a1.key")
    os.mkfifo(secret)  # opening it would hang
    [(line, key)] = registry.check(12.5)
    record = dict(line)["registry"]["record"]  # type: ignore[index]
    assert 12.5 == line["t"]
    assert set(FIELDS) - {"waitingFor", "parkedJobId", "spare"} == set(record)
    assert "secret" not in f"{line}{key}"
    event = from_line(line)
    assert ("registry", "one", "idle", pid) == (
        event.kind,
        event.session_id,
        event.status,
        event.pid,
    )
    assert started_of(pid) == event.started
    assert [] == registry.check(13.0)


def test_each_change_is_reported_once_with_a_shared_key(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """A new status, question or id is a change; rewriting the same values is not."""
    pid = process()
    other = Registry([home.claude], "g1")
    write(home, pid)
    assert [f.key for f in registry.check(1.0)] == [f.key for f in other.check(2.0)]
    path = write(home, pid, status="busy", statusUpdatedAt=1795169404000)
    busy = registry.check(3.0, path)
    assert [(pid, "busy")] == statuses(busy)
    write(home, pid, status="busy", statusUpdatedAt=1795169404000, updatedAt=1795169409000)
    assert [] == registry.check(4.0, path)
    write(
        home, pid, status="waiting", waitingFor="permission prompt", statusUpdatedAt=1795169405000
    )
    asks = registry.check(5.0, path)
    assert "permission" == from_line(asks[0].line).asks
    write(home, pid, status="busy", statusUpdatedAt=1795169406000)
    again = registry.check(6.0, path)
    assert busy[0].key != again[0].key


def test_a_returning_status_is_a_new_value_even_without_its_time(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """2.1.119 has no statusUpdatedAt: the spool would take the same value for a repeat."""
    pid, keys = process(), set()
    for second, status in enumerate(("idle", "busy", "idle", "busy")):
        wrote = 1795169403616 + 1000 * second
        path = write(home, pid, status=status, statusUpdatedAt=None, updatedAt=wrote)
        keys |= {f.key for f in registry.check(float(second), path)}
    assert 4 == len(keys)


def test_after_a_time_without_a_host_the_same_value_counts_again(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """With another key, because it is another generation of hosts."""
    write(home, process())
    first = registry.check(1.0)
    registry.renew("g1")
    assert [] == registry.check(2.0)
    registry.renew("g2")
    again = registry.check(3.0)
    assert statuses(first) == statuses(again)
    assert first[0].key != again[0].key


def test_a_removed_file_is_reported(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """Whether or not a watch names it; a file never reported is no news."""
    first, second = process(), process()
    paths = [write(home, pid) for pid in (first, second)]
    registry.check(1.0)
    for path in paths:
        path.unlink()
    assert [(first, None)] == statuses(registry.check(2.0, paths[0]))
    gone = registry.check(2.0)
    assert [(second, None)] == statuses(gone)
    assert "registry gone" == from_line(gone[0].line).kind
    assert [] == registry.check(3.0)
    assert {} == registry.records


def test_a_half_written_file_leaves_the_last_good_value(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """No evidence comes, no error is raised, and health knows."""
    pid = process()
    path = write(home, pid)
    whole = path.read_bytes()
    registry.check(1.0)
    bomb = b"[" * 100_000
    huge = b'{"sessionId":"one","x":"' + b"x" * (1 << 20) + b'"}'
    odd = [b'{"sessionId":["one"]}', b'{"sessionId":""}', b'{"sessionId":"%s"}' % (b"x" * 201)]
    other = whole.replace(b'"pid": %d' % pid, b'"pid": 1')
    for data in (b"", whole[:100], whole + b"}", bytes(range(256)), bomb, huge, *odd, other):
        path.write_bytes(data)
        assert [] == registry.check(2.0, path), data[:50]
        assert [] == registry.check(2.0), data[:50]
        assert "one" == registry.records[pid]["sessionId"]
        assert str(path) in registry.notes
    path.write_bytes(huge)
    registry.check(2.0)
    assert "larger than 65536 bytes" in registry.notes[str(path)]
    path.write_bytes(whole.replace(b"idle", b"busy"))
    assert [(pid, "busy")] == statuses(registry.check(3.0, path))
    assert {} == registry.notes


def test_a_file_that_is_being_written_is_read_again_before_it_is_noted(
    home: Home, process: Callable[..., int]
) -> None:
    """A file written in place may be read by half; a file that stays so is named."""
    pid = process()
    path = write(home, pid)
    whole, found = path.read_text(), list[Evidence]()

    async def look() -> None:
        reach, notes = Reach().open(), Notes()
        watch = Watch(lambda paths: None)
        means = Means(Watched(watch), found.append, time.time, {})
        need = Need(Want(FOLDER, (str(home.claude),)), means, Written(), notes, lambda *_: None)
        registry, timers = Registry([]), (f"odd {path}", f"claude agents in {home.claude}")
        need.start(lambda need: ConfigFolder(need, registry, {}, lambda: None).observe())

        async def read(text: str) -> dict[str, str]:
            path.write_text(text)
            need.take_path(str(path))
            await asyncio.sleep(0)
            while not reach.is_at_rest and len(need.rounds) > sum(x in need.rounds for x in timers):
                await asyncio.sleep(0.001)
            return {**notes}

        while not need.is_at_rest:
            await asyncio.sleep(0.001)
        found.clear()
        registry.renew("again")
        assert {} == await read(whole)
        assert {} == await read(whole[:100])
        assert {} == await read(whole.replace("idle", "busy"))
        assert {} == await read(whole[:90])
        until = time.monotonic() + PATIENCE
        while not notes and time.monotonic() < until:
            await asyncio.sleep(0.05)
        assert {str(path): "cannot be parsed"} == notes
        assert {} == await read(whole)
        need.close()
        watch.close()

    asyncio.run(look())
    assert [(pid, "idle"), (pid, "busy"), (pid, "idle")] == statuses(found)


def test_values_of_the_wrong_type_are_left_out(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """The line can be written and read with any content of the file."""
    pid = process()
    write(home, pid, status={"a": 1}, name=["x"], cwd=17, kind=True, version="\ud800 half")
    [(line, _)] = registry.check(1.0)
    record = dict(line)["registry"]["record"]  # type: ignore[index]
    assert {"status", "name", "kind"}.isdisjoint(record)
    assert "\ufffd half" == record["version"]
    json.dumps(line).encode()
    assert "registry" == from_line(line).kind


def test_the_file_of_a_dead_process_is_ignored(home: Home, registry: Registry) -> None:
    """kill -9 leaves the file behind, with busy in it for ever."""
    child = subprocess.Popen(["sleep", "60"])
    path = write(home, child.pid, status="busy")
    assert [(child.pid, "busy")] == statuses(registry.check(1.0))
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but not reaped yet
    assert [(child.pid, None)] == statuses(registry.check(2.0))
    child.wait()
    assert [] == registry.check(3.0, path)
    assert "dead" in registry.notes[str(path)]
    assert [] == Registry([home.claude]).check(4.0)


@pytest.mark.parametrize("start", ["1", None])
def test_a_reused_process_id_is_noticed(
    home: Home, registry: Registry, process: Callable[..., int], start: str | None
) -> None:
    """By its start time, or for old CLIs because it started after the file was written."""
    pid = process()
    path = write(home, pid, procStart=start)
    os.utime(path, (time.time() - 3600,) * 2)
    assert [] == registry.check(1.0)
    assert "reused" in registry.notes[str(path)]


def test_an_old_cli_gives_no_start_time(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """2.1.76: pid, session, cwd; the start is added, as other evidence names it."""
    pid = process()
    more = ("version", "kind", "entrypoint", "name", "nameSource", "tmux", "updatedAt")
    write(home, pid, **dict.fromkeys((*more, "procStart", "status", "statusUpdatedAt")))
    [(line, _)] = registry.check(1.0)
    assert (started_of(pid), "") == (from_line(line).started, from_line(line).status)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_users_process_or_file_is_skipped_and_reported(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """A shared folder must not make us show or end sessions of others."""
    stranger = process(user=65534)
    path = write(home, stranger)
    mine = write(home, process(), sessionId="two")
    os.chown(mine, 65534, 65534)
    assert [] == registry.check(1.0)
    assert "its process belongs to another user" == registry.notes[str(path)]
    assert "another user" in registry.notes[str(mine)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_listed(home: Home, registry: Registry) -> None:
    """The owner would choose how many files are checked."""
    (home.claude / "sessions").mkdir(exist_ok=True)
    os.chown(home.claude / "sessions", 65534, 65534)
    assert [] == registry.check(1.0)
    assert [*registry.notes.values()] == ["belongs to another user"]


def test_many_files_take_no_longer_each(home: Home, registry: Registry) -> None:
    """2,000 of them took a second in one call."""
    listing = Listing([*range(1, 2001)], "")
    (directory,) = registry.paths()
    for pid in listing.pids:
        registry.take(1.0, directory, pid, FileState(None, "odd", False))
    began = time.process_time()
    assert len(registry.listed(directory, listing)) == 2000
    assert time.process_time() - began < 0.2


def test_other_files_are_not_opened(home: Home, registry: Registry) -> None:
    """Other names, pipes, folders, dangling links."""
    folder = home.claude / "sessions"
    folder.mkdir()
    for name in ("pid-12.json", "12.json.tmp", "0.json", "99999999999.json", "٣.json"):
        (folder / name).write_text('{"sessionId": "one"}')
    os.mkfifo(folder / f"{os.getpid()}.json")
    (folder / "7.json").mkdir()
    (folder / "8.json").symlink_to("nowhere")
    assert [] == registry.check(1.0)
    for path in folder.iterdir():
        assert [] == registry.check(1.0, path)
    assert [] == registry.check(1.0, home.root / "1.json")


def test_a_directory_that_cannot_be_listed_is_named(home: Home) -> None:
    """No error is raised; once the directory can be listed again, the note is gone."""
    sessions = home.claude / "sessions"
    sessions.write_text("in the way")
    registry = Registry([home.claude])
    assert [] == registry.check(1.0)
    assert {str(sessions): "cannot be read: Not a directory"} == registry.notes
    sessions.unlink()
    assert [] == registry.check(2.0)
    assert {} == registry.notes


def test_several_config_directories_and_one_that_is_not_there(
    home: Home, process: Callable[..., int]
) -> None:
    """Hooks name more than our own; each is watched, whether it exists or not."""
    registry = Registry([home.root / "nowhere"])
    assert [] == registry.check(1.0)
    assert registry.add(home.claude)
    assert not registry.add(str(home.claude))
    assert not registry.add("relative")
    assert [home.root / "nowhere" / "sessions", home.claude / "sessions"] == registry.paths()
    pid = process()
    write(home, pid)
    assert [(pid, "idle")] == statuses(registry.check(2.0, home.claude / "sessions"))


def test_the_config_directory_is_the_clis_own() -> None:
    """The CLI's variable names it, otherwise it is below the home."""
    assert Path("/x/.claude") == config_of({"HOME": "/x"})
    assert Path("/y") == config_of({"HOME": "/x", "CLAUDE_CONFIG_DIR": "/y"})


def test_what_is_found_shows_on_the_board(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """Sessions that started before us are listed, a blocked one at once."""
    busy, asks = process(), process()
    write(home, busy, status="busy", sessionId="one")
    write(home, asks, status="waiting", waitingFor="input needed", sessionId="two")
    board = Board()
    now = time.time()
    for line, _ in registry.check(now):
        board.fold(from_line(line, now))
    board.advance(now + 1)
    told = {s["session_id"]: s["status"] for s in snapshot(board.sessions.values())}
    assert {"one": "working", "two": "blocked"} == told


def test_readers_never_see_half_a_file(
    home: Home, registry: Registry, process: Callable[..., int]
) -> None:
    """While another process overwrites it, no value is made up, and the last one is read."""
    pid = process()
    path = write(home, pid)
    text = path.read_text()
    program = (
        "import itertools, pathlib, select, sys\np = pathlib.Path(sys.argv[1]); t = sys.argv[2]\n"
        "for n in itertools.count():\n"
        "  s = ('busy', 'idle')[n % 2]\n"
        "  p.write_text(t.replace('idle', s).replace('1795169403616', str(1795169403616 + n)))\n"
        "  if n % 2 and select.select([sys.stdin], [], [], 0)[0]: sys.exit(print(n))\n"
    )
    argv = [sys.executable, "-c", program, str(path), text]
    writer = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    seen: list[Any] = []
    reads = 0
    while reads < 3000 or len(set(seen)) < 2:  # on a busy machine, many writes pass between two
        seen += statuses(registry.check(1.0, path))
        reads += 1
    last, _ = writer.communicate()
    seen += statuses(registry.check(1.0, path))
    assert {(pid, "idle"), (pid, "busy")} == set(seen)
    assert 1795169403616 + int(last) == registry.records[pid]["statusUpdatedAt"]
