"""A host continues after any failure: health names it, and it is retried after a pause."""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import os
import select
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import psutil
import pytest

from bellboard.core.session import Session
from bellboard.hosting.callbacks import ALIKE, Commands
from bellboard.hosting.health import MOST, Health
from bellboard.hosting.jobs import Attempts, Loop
from bellboard.hosting.publish import MOST_LATE, Pusher
from bellboard.storage import database
from bellboard.storage.spool import Spool
from bellboard.system.notes import Notes
from rig import warm
from rig.home import Home
from rig.host.hosting import Mounts, RecordedHost, made, opened, put
from rig.host.session_files import write_session_file
from rig.waiting import PATIENCE, eventually, leniency, rest

Start = Callable[..., RecordedHost]
SECOND = 1.0  # for a process to end on request
RINGS = {"server": "/nowhere/nvim", "notices": {"min_turn": 0}}


def goes_on(host: RecordedHost, sid: str = "canary") -> None:
    """Check that it folds and shows an event."""
    put(Spool(host.home.bellboard), "UserPromptSubmit", sid)

    def shows() -> bool:
        assert host.process.poll() is None, "the host has ended"
        return host.shown.get(sid) == "working"

    eventually(shows, f"{sid} at work")


# Work that fails


def test_what_fails_is_left_alone_and_named_until_it_succeeds() -> None:
    """The session that fails is handled later, the other one each time."""
    attempt, done = Attempts(), []

    def bad() -> float:
        done.append("bad")
        raise PermissionError(13, "Permission denied", "/x/transcript.jsonl")

    def good() -> float:
        done.append("good")
        return 7.0

    waits = [
        (attempt("observe", "session a", bad), attempt("observe", "session b", good)) for _ in "123"
    ]
    assert done == ["bad", "good", "good", "good"]
    assert all(0 < wait <= 0.25 and other == 7.0 for wait, other in waits)
    note = "session a: Permission denied: /x/transcript.jsonl (retrying)"
    assert attempt.notes == {"observe": note}
    eventually(lambda: attempt("observe", "session a", good) == 7.0, "its next try")
    assert attempt.notes == {}


def test_what_fails_for_hours_is_still_retried() -> None:
    attempt = Attempts()
    for _ in range(5000):
        wait = attempt.failed("write", "", OSError(28, "No space left on device"))
    assert 0 < wait <= 5.0


def test_an_obstacle_that_cannot_be_looked_for_stops_no_round() -> None:
    """The jobs run all the same, and health says why."""
    done: list[str] = []
    attempt = Attempts()

    def job() -> float:
        done.append("fold")
        loop.stop()
        return 1.0

    def look() -> str:
        raise ValueError("odd")

    loop = Loop(attempt, look)
    asyncio.run(loop.run((("fold", job),), begin=list))
    assert (["fold"], {"home"}) == (done, attempt.notes.keys())


def test_health_names_few_of_many_failures() -> None:
    """Three are named of a thousand sessions that fail alike."""
    attempt = Attempts()
    for n in range(2000):
        attempt.failed("observe", f"session {n}", ValueError("embedded null byte"))
    (note,) = attempt.notes.values()
    assert note.count("embedded null byte") == 3
    assert "997 more" in note


# Junk in the settings


@pytest.mark.parametrize(
    "config",
    [
        {"callbacks": 5},
        {"callbacks": {"working": {"a": 1}, "blocked": [], "error": [None]}},
        {"options": [1]},
        {"options": {"clear": 5, "grace": "x", "approval": [1]}},
        {"notices": {"mode": []}},
        {"notices": {"max_per_minute": float("inf"), "min_interval": "x", "labels": [1]}},
        {"notices": {"sounds": 5, "desktop": {}}},
        {"notices": {"player": ["~nobody-there/x"], "command": [[]], "quiet_hours": 7}},
        {"notices": {"labels": {"x": {"sounds": {"blocked": 1}, "blocked": 3}}, "blocked": "x"}},
        {"server": "\udcff", "focused": 1e400, "notices": {}},
        {"server": ["x"], "focused": "x", "pull_requests": {}},
    ],
    ids=str,
)
def test_settings_of_the_wrong_type_end_no_host(start: Start, config: dict[str, Any]) -> None:
    """Unusable settings are left out."""
    host = start(config=config)
    goes_on(host)


# Meaningless rows


def test_no_option_damaged_at_run_time_ends_a_host(home: Home, start: Start) -> None:
    """The host continues at once."""
    host = start(config=RINGS)
    goes_on(host, "before")
    with contextlib.closing(sqlite3.connect(home.bellboard / "board.db", timeout=PATIENCE)) as db:
        for key in ("mode", "bars", "config", "watched_since"):
            for value in (b"\xc1", msgspec.msgpack.encode([1]), b""):
                with db:
                    db.execute("INSERT OR REPLACE INTO options VALUES (?, ?, 1, 1.0)", (key, value))
                goes_on(host, f"{key} {value!r}")
                goes_on(host, f"{key} {value!r} once more")


# Locks and folders


def test_a_lock_that_blocks_readers_ends_no_host(home: Home, start: Start) -> None:
    """On a network file system another process can keep even readers out."""
    host = start(network="nfs", config=RINGS, on={"working": ["true"]})
    goes_on(host, "before")
    with contextlib.closing(sqlite3.connect(home.bellboard / "board.db", timeout=PATIENCE)) as db:
        db.isolation_level = None
        db.execute("BEGIN EXCLUSIVE")
        until = time.monotonic() + 1.0
        for n in range(20):
            put(Spool(home.bellboard), "UserPromptSubmit", f"s{n}")
        eventually(lambda: time.monotonic() > until or host.process.poll() is not None, "a while")
        assert host.process.poll() is None
        db.execute("ROLLBACK")
    eventually(lambda: len(host.shown) == 21, "all of them")
    goes_on(host)
    eventually(lambda: not {"database", "fold", "read"} & host.notes.keys(), "no more complaint")
    assert "internal error" not in str([m.get("health") for m in host.messages])


# Superfluous writes


def files_in(spool: Spool) -> int:
    return len(list(spool.new.iterdir()))


def test_an_unwritable_database_causes_no_storm(home: Home, mount: Mounts) -> None:
    """A host's own greeting woke it again: it wrote 5,000 files a second."""
    home.bellboard.mkdir()
    mount("-t", "tmpfs", "-o", "size=1500k,mode=700", "tmpfs", at=home.bellboard)
    spool = made(home.bellboard)
    schema_is_there = RecordedHost(home, "first").is_up()
    schema_is_there.kill()
    for left in (home.bellboard / "hosts").iterdir():
        left.unlink()
    mount("-t", "tmpfs", "-o", "size=20m,mode=700", "tmpfs", at=spool.home / "spool")
    spool.prepare()
    filler = home.bellboard / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    host = RecordedHost(home)
    try:
        host.says("cannot be written")
        rest(2.0)
        assert files_in(spool) <= 2
        busy = processor_seconds(host.pid)
        rest(2.0)
        assert processor_seconds(host.pid) - busy < 0.5
        filler.unlink()
        goes_on(host)
        eventually(lambda: "database" not in host.notes, "no more complaint")
        with opened(home.bellboard) as shared:
            assert [r.event.kind for r in shared.store.log()].count("restart") <= 2
    finally:
        host.kill()


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_host_of_an_outdated_version_writes_nothing(home: Home, start: Start) -> None:
    """If it said that it lives, hooks would keep every event for it."""
    old, newer = start("old"), start("newer", schema=database.SCHEMA + 1)
    goes_on(newer, "before")
    old.says("restart Neovim")
    newer.process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: psutil.Process(newer.process.pid).status() == psutil.STATUS_STOPPED)
        left = files_in(Spool(home.bellboard))  # by the stopped one
        write_session_file(home, "busy")
        eventually(
            lambda: not (home.bellboard / "hosts" / str(old.pid)).exists(), "its last message"
        )
        rest(2.0)
        assert files_in(Spool(home.bellboard)) == left
    finally:
        newer.process.send_signal(signal.SIGCONT)
    eventually(lambda: newer.shown.get("one") == "working", "what the newer one finds")


# Commands that hang


def test_commands_that_hang_do_not_pile_up(home: Home, start: Start) -> None:
    """A few run at once; the rest waits unclaimed and runs when they end."""
    told = home.root / "told"
    told.mkdir()
    script = home.bin / "hang"
    script.write_text(f'#!/bin/sh\necho $$ >"{told}/$3"\nexec sleep 600\n')
    script.chmod(0o755)
    host, spool = start(on={"working": [str(script)]}), Spool(home.bellboard)
    for n in range(40):
        put(spool, "UserPromptSubmit", f"s{n:02}")
    eventually(lambda: len(host.shown) == 40, "all commands running")
    eventually(lambda: len(list(told.iterdir())) == ALIKE, "some of their commands")
    goes_on(host)
    assert len(list(told.iterdir())) == ALIKE
    ended: set[str] = set()

    def running() -> set[str]:
        return {p.name for p in told.iterdir() if p.read_text()} - ended

    while len(ended) < 41:
        some = eventually(running, "the next")
        assert len(some) <= ALIKE
        for name in some:
            os.kill(int((told / name).read_text()), signal.SIGKILL)
        ended |= some


def test_the_oldest_hanging_command_makes_room() -> None:
    """Health names the command."""
    runner = Commands(patience=0.5)
    for _ in range(ALIKE):
        assert runner.has_room("sleep")
        runner.start(["sleep", "5"])
    assert not runner.has_room("sleep")
    assert runner.has_room("other")

    def said(what: str) -> bool:
        runner.look()
        return what in runner.notes.get("commands", "")

    eventually(lambda: said(f"sleep: {ALIKE} still run"), "a note")
    eventually(lambda: runner.has_room("sleep"), "room for one more", pause=0.0)
    assert said("sleep: 1 killed because they hung")
    eventually(lambda: runner.running == 0, "the end of all")
    assert runner.notes == {}


def test_a_missing_command_is_named() -> None:
    """The note stays until the command exists."""
    runner = Commands()
    runner.start(["/nowhere/command", "x"])
    eventually(lambda: runner.running == 0, "its end")
    assert runner.notes == {"commands": "/nowhere/command: command not found"}


def test_doctor_names_what_fails_in_a_running_host(home: Home, start: Start) -> None:
    """The process of the host is named as well."""
    host = start(on={"working": ["/nowhere/command"]})
    goes_on(host)
    host.says("command not found")

    def told() -> str:
        return warm.run(["-m", "bellboard", "doctor"], env=home.env).stdout

    named = f"process {host.pid}: commands: /nowhere/command: command not found"
    eventually(lambda: named in " ".join(told().split()), "its note")


# The end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_host_blocked_on_a_full_pipe_can_be_stopped(home: Home, number: signal.Signals) -> None:
    """The event loop is stuck in a write, which once took a SIGKILL to end."""
    run = [sys.executable, "-m", "bellboard", "watch", "--json"]
    spool = made(home.bellboard)
    with subprocess.Popen(run, env=home.env, stdout=subprocess.PIPE) as watch:
        try:
            assert watch.stdout is not None
            fcntl.fcntl(watch.stdout, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)
            eventually(lambda: list((home.bellboard / "hosts").iterdir()), "a host")
            for n in range(500):
                put(spool, "UserPromptSubmit", f"s{n}")
            stands = Standing(partial(waiting_in, watch.stdout.fileno()))
            eventually(stands, "a pipe that takes no more")
            began = time.monotonic()
            watch.send_signal(number)
            watch.wait(PATIENCE)
            assert time.monotonic() - began < SECOND * leniency()
        finally:
            watch.kill()


def waiting_in(pipe: int) -> int:
    """Return how many bytes are unread."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


class Standing:
    """Detects a value that has not changed for a second."""

    def __init__(self, look: Callable[[], int]) -> None:
        self.look, self.last, self.since = look, 0, 0.0

    def __call__(self) -> bool:
        now, seen = time.monotonic(), self.look()
        if seen != self.last:
            self.last, self.since = seen, now
        return bool(seen) and now > self.since + 1.0


def test_thousands_of_notes_are_counted_and_not_listed() -> None:
    """One cause may spoil all files of a folder, and health is sent with each change."""
    part = SimpleNamespace(notes={f"/f/{n}": "odd" for n in range(3000)})
    whole = SimpleNamespace(shared=None, home="/h", pid=1)
    quiet = SimpleNamespace(watch=None, vanished=0, health=dict)
    report = Health(whole, quiet, quiet, (part.notes, part.notes)).report({}, 0)  # type: ignore[arg-type]
    assert len(report["notes"]) == MOST + 1
    assert report["notes"]["more"] == f"{2 * (3000 - MOST)} more notes, not listed here"


def test_a_note_does_not_outlast_a_lost_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Doctor would show it for as long as the host runs."""
    monkeypatch.setattr("bellboard.hosting.health.OFTEN", 0.0)
    hosts, notes = made(tmp_path / "home").hosts, Notes()
    notes.say("rows", "odd")
    whole = SimpleNamespace(shared=None, home="/h", pid=7, has_arrived=True)
    whole.announce = lambda notes: hosts.announce(7, notes)
    quiet = SimpleNamespace(watch=None, vanished=0, health=dict)
    health = Health(whole, quiet, quiet, (notes,))  # type: ignore[arg-type]

    def shared() -> dict[str, str]:
        health.report({}, 0)
        health.share()
        return hosts.notes_of(7)

    assert shared() == {"rows": "odd"}
    whole.has_arrived = False
    notes.settle("rows")
    assert shared() == {"rows": "odd"}
    whole.has_arrived = True
    assert shared() == {}


def test_a_notification_that_cannot_be_sent_is_sent_later() -> None:
    """The notification is claimed by then, so no other host sends it; the newest are kept.

    A session that has moved on by then needs nobody.
    """
    lines, sent, hangs = list[Any](), list[Any](), [True]
    sessions: dict[str, Session] = {}

    def say(n: int) -> dict[str, Any]:
        sessions[f"s{n}"] = Session(f"s{n}", turn="completed")
        return {"id": n, "session_id": f"s{n}", "status": "completed"}

    def push(message: Any) -> None:
        if hangs:
            raise BlockingIOError("Neovim has stopped reading")
        sent.append(message)

    bell = SimpleNamespace(said=lambda: [lines.pop()] if lines else [], shown=dict)
    publisher = SimpleNamespace(push=lambda *given: given[-1] or None, ask_full=lambda: None)
    shared = SimpleNamespace(board=SimpleNamespace(sessions=sessions))
    connection = SimpleNamespace(is_open=True, use=contextlib.nullcontext, shared=shared)
    reader = Pusher(push, publisher, connection, bell, *[None] * 3)  # type: ignore[arg-type]
    said = [say(n) for n in range(MOST_LATE + 3)]
    for line in said[:-1]:
        lines.append(line)
        with pytest.raises(BlockingIOError):
            reader.notify()
    del sessions["s5"]
    sessions["s6"].turn = "working"
    lines.append(said[-1])
    hangs.clear()
    for _ in range(2):
        reader.notify()
    assert sent == [{"notices": [x for x in said[1:] if x["id"] not in (5, 6)]}]
