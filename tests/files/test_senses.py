"""A host goes on observing, whatever one session or one server does."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from bellboard.core.board import Board
from bellboard.core.evidence import Evidence
from bellboard.core.session import Process, Session
from bellboard.system import tmux
from bellboard.system.processes import started_of
from bellboard.system.reach import Reach
from bellboard.system.watch import Watch, Written
from bellboard.witnesses import terminals
from bellboard.witnesses.observer import Observer
from files.test_lookout import SID, MinimalHost, hook, run
from rig import DATA
from rig.home import Home
from rig.waiting import GLANCE, PATIENCE


@pytest.mark.tmux
def test_a_server_that_does_not_respond_blocks_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is asked for its panes beside the event loop."""
    monkeypatch.setattr(tmux, "PATIENCE", 2.0)
    path = home.tmp / "deaf"

    async def test(desk: MinimalHost) -> None:
        line = {"session_id": "s", "hook_event_name": "UserPromptSubmit"}
        await desk.fold(hook=line, origin={"tmux": str(path), "pane": "%1"})
        began = time.monotonic()
        desk.observer.rescan()
        assert time.monotonic() < began + tmux.PATIENCE * 0.9
        await desk.until(lambda: "does not respond" in str(desk.notes()), "its note")

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        run(home, test)


def test_a_session_that_cannot_be_attended_to_stops_no_other(home: Home) -> None:
    """The session is named; processes of others are looked at, also when all are checked again."""

    async def test() -> None:
        found, reach = list[Evidence](), Reach().open()
        observer = Observer(found.append, time.time, home.env)
        watch = Watch(observer.changed)
        observer.open(watch)
        board, pid = Board(), os.getpid()
        odd = Process("no number", "1")  # type: ignore[arg-type] # nothing else is known to raise
        for sid, process in (("odd", odd), ("s", Process(pid, started_of(pid)))):
            board.sessions[sid] = Session(sid, turn="idle", processes={process.pid: process})
        observer.note_changed(board.sessions)
        observer.run(board)
        observer.rescan()
        until = time.monotonic() + PATIENCE
        while not any("process" in line for line, _ in found):
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        assert "process no number: " in reach.notes["unreadable"]
        observer.close()
        watch.close()
        reach.close()

    asyncio.run(test())


def test_panes_with_one_name_in_two_servers_are_both_read(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each server has a %0; of work with one key only the newest is run."""
    read: list[str] = []

    def rows_of(socket: str, pane: str, depth: int) -> list[str]:
        read.append(socket)
        return []

    monkeypatch.setattr(terminals, "rows_of", rows_of)

    async def test(desk: MinimalHost) -> None:
        for sid in ("a", "b"):
            where: dict[str, Any] = {"tty": "/dev/null", "tmux": f"/tmp/{sid}", "pane": "%0"}
            s = Session(sid, agent="codex", turn="idle", pid=1, **where)
            desk.observer.attend({sid: s}, [sid])
        await desk.until(lambda: len(read) == 2)

    run(home, test)
    assert ["/tmp/a", "/tmp/b"] == sorted(read)


@pytest.mark.skipif(sys.platform != "linux", reason="needs inotify and /dev/shm")
def test_only_terminals_are_watched() -> None:
    """A path below /dev can lead anywhere, such as to a mount that hangs; evidence names it."""
    ours, theirs = os.openpty()
    file, folder = tempfile.mkstemp(dir="/dev/shm")
    heard: list[str] = []

    class Ear:
        def heard(self, tty: str) -> None:
            heard.append(tty)

    async def listen() -> None:
        written, ear = Written(), Ear()
        for path in (folder, f"/dev/fd/{file}", "/dev/pts/../shm", tty := os.ttyname(theirs)):
            written.add(path, ear)
        os.write(file, b"x")
        os.write(theirs, b"x")
        while tty not in heard:
            await asyncio.sleep(GLANCE)
        await asyncio.sleep(GLANCE)
        assert [tty] == heard
        written.close()

    try:
        asyncio.run(asyncio.wait_for(listen(), PATIENCE))
    finally:
        Path(folder).unlink()
        for descriptor in (ours, theirs, file):
            os.close(descriptor)


def test_a_terminal_is_read_for_its_attempts_and_each_is_reported_once(home: Home) -> None:
    """The spinner changes the screen every second, and so does the countdown."""
    rows, pid = (DATA / "captures/2.1.330/retrying.txt").read_text(), os.getpid()

    async def test(desk: MinimalHost) -> None:
        line = hook("UserPromptSubmit", home, pid)
        await desk.fold(**line | {"origin": {"pid": pid, "tty": "/dev/pts/99"}})
        reported = []
        for seconds in "4s", "3s", "2s", "1s":
            shown = rows.replace("in 1s", f"in {seconds}").splitlines()
            desk.observer.hand_in(SID, pid, shown)
            await desk.rescan()
            reported.append(desk.kinds().count("screen busy"))
        assert reported[1] == reported[-1]  # its screen is needed once the first one was folded
        desk.observer.hand_in(SID, pid, rows.replace("attempt 4", "attempt 3").splitlines())
        said = [f.line["screen"] for _, f in desk.found if "screen" in f.line]
        # Since when the first one was shown, nobody saw.
        assert [True, False] == [row.get("found", False) for row in (said[0], said[-1])]

    run(home, test)
