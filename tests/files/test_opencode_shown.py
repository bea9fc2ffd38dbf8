"""The terminal of a session of OpenCode 2's service, and the effects of its end."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bellboard.agents.opencode.server import terminals_of
from bellboard.system import processes
from files.test_lookout import MinimalHost, run
from rig.home import Home
from rig.waiting import eventually

A, B = "ses_A", "ses_B"
pytestmark = [
    pytest.mark.skipif(not processes.has_proc(), reason="only /proc shows who is connected"),
]
#: Takes connections on a port of its own, as the service does.
TMUX = "main"  # a server that nobody can ask whether it has the pane
SERVICE = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
held = []
while True:
    held.append(listener.accept())
"""
#: Has a terminal of its own, and is connected with the service.
CLIENT = """
import fcntl, socket, sys, termios, time
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("up", flush=True)
time.sleep(600)
"""


class Service:
    """The background service, without a terminal."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            ["opencode", "-c", SERVICE, "serve", "--service"],
            executable=sys.executable,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.pid = self.process.pid

    async def reports(
        self, desk: MinimalHost, type: str, session: str, where: str, **more: Any
    ) -> None:
        """Report an event, as our plugin does in it."""
        said = {"type": type, "directory": where, "properties": {"sessionID": session, **more}}
        await desk.fold(hook=said, origin={"agent": "opencode", "pid": self.pid, "shared": True})

    async def prompted(self, desk: MinimalHost, session: str, where: str) -> None:
        await self.reports(desk, "chat.message", session, where, text="do it")

    async def rests(self, desk: MinimalHost, session: str, where: str) -> None:
        await self.reports(desk, "session.idle", session, where, answered=True)


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.process.kill()
    made.process.communicate()


@contextlib.contextmanager
def client(service: Service, where: str, *words: str, program: str = "opencode") -> Iterator[str]:
    """Open a terminal in a folder, and return its name."""
    master, slave = pty.openpty()
    tty = os.ttyname(slave)
    process = subprocess.Popen(
        [program, "-c", CLIENT, str(service.port), *words],
        executable=sys.executable,
        cwd=where,
        env={"TMUX": f"{TMUX},1,0", "TMUX_PANE": "%1"},
        stdin=slave,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(slave)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield tty
    finally:
        process.kill()
        process.communicate()
        os.close(master)


def test_a_session_is_shown_in_the_only_terminal_of_its_folder(
    home: Home, service: Service, tmp_path: Any
) -> None:
    """A jump goes there.  It may show several sessions, in tabs: those that work stay."""
    here, there = str(home.project), str(tmp_path)

    async def test(desk: MinimalHost) -> None:
        with (
            client(service, here) as shown,
            client(service, there),
            client(service, there),
            client(service, here, program="vim"),
        ):
            for sid in (A, B):
                await service.prompted(desk, sid, here)
                await desk.until(lambda sid=sid: desk.board.sessions[sid].tty == shown)  # type: ignore
            await service.prompted(desk, "ses_C", there)
            s = desk.board.sessions[A]
            assert (s.tmux, s.pane, s.pid) == (TMUX, "%1", service.pid)
            assert desk.board.sessions["ses_C"].tty == ""  # any of two
            assert desk.statuses() == dict.fromkeys((A, B, "ses_C"), "working")

    run(home, test)


def test_a_session_ends_with_its_terminal_or_when_that_goes_on_to_another(
    home: Home, service: Service
) -> None:
    """Once it is at rest: the service goes on with its turn.  A prompt brings it back."""
    here = str(home.project)

    async def test(desk: MinimalHost) -> None:
        with client(service, here) as shown:
            await service.prompted(desk, A, here)
            await service.rests(desk, A, here)
            await service.prompted(desk, B, here)
            await desk.until(lambda: desk.statuses() == {B: "working"}, "after /new")
            await service.rests(desk, B, here)
            await service.prompted(desk, A, here)
            await desk.until(lambda: desk.statuses() == {A: "working"}, "it is opened again")
            assert desk.board.sessions[A].tty == shown
        await desk.rescan()
        assert desk.statuses() == {A: "working"}
        await service.rests(desk, A, here)
        await desk.until(lambda: desk.statuses() == {}, "it has quit")

    run(home, test)


def test_only_what_is_connected_to_the_service_is_its_terminal(
    home: Home, service: Service
) -> None:
    """Nothing is said of a process that does not listen."""
    other = Service()
    try:
        with client(other, str(home.project)), client(service, str(home.project)) as shown:
            [found] = eventually(lambda: terminals_of(service.pid))
            assert found.tty == shown
    finally:
        other.process.kill()
        other.process.communicate()
    assert terminals_of(os.getpid()) is None
    began = time.process_time()
    assert terminals_of(service.pid) == []
    assert time.process_time() - began < 0.2
