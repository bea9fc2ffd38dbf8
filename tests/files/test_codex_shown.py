"""The terminal of a thread of Codex's shared server, and the effects of its end."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from bellboard.agents.codex.witness import client_of, clients_of
from bellboard.agents.server_terminals import ServerClient
from bellboard.system import processes, ssh
from bellboard.system.places import Place
from files.test_codex_served import hook
from files.test_codex_server import Fake, fake
from files.test_lookout import MinimalHost, run
from rig.home import Home
from rig.waiting import eventually

FIRST, SECOND = "01a1ffc4-27ac", "01a1ffc4-4b5e"
pytestmark = [
    pytest.mark.skipif(not ssh.peers(), reason="the kernel does not tell Unix peers"),
]
#: A terminal of Codex: with a terminal of its own, and connected with the server.
TMUX = "main"  # a server that nobody can ask whether it has the pane
TERMINAL = """
import fcntl, socket, sys, termios, time
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(b"TUI")
print("up", flush=True)
time.sleep(600)
"""


class Tui:
    """A TUI of the server, in tmux by its environment."""

    def __init__(self, codex: Fake, pane: str, program: str = "codex", *words: str) -> None:
        self.master, slave = pty.openpty()
        self.tty = os.ttyname(slave)
        self.process = subprocess.Popen(
            [program, "-c", TERMINAL, str(codex.path), *words],
            executable=sys.executable,
            cwd=codex.home.project,
            env={"TMUX": f"{TMUX},1,0", "TMUX_PANE": pane},
            stdin=slave,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(slave)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"up\n"

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        with contextlib.suppress(OSError):
            os.close(self.master)


@contextlib.contextmanager
def terminal(codex: Fake, pane: str = "%1", *how: str) -> Iterator[Tui]:
    made = Tui(codex, pane, *how)
    try:
        eventually(lambda: bound(codex, made), "the server takes it")
        yield made
    finally:
        made.close()


def bound(codex: Fake, made: Tui) -> bool:
    """Return whether the server has accepted the connection."""
    held = {*processes.descriptors(codex.process.pid)}
    return any(ssh.peer_of(name) in held for name in processes.descriptors(made.process.pid))


async def prompted(desk: MinimalHost, codex: Fake, home: Home, sid: str = FIRST) -> None:
    """Prompt a thread; a server reports a start only of one that it has not loaded."""
    if sid not in desk.board.sessions:
        await hook(desk, codex, "SessionStart", sid, cwd=str(home.project))
    await hook(desk, codex, "UserPromptSubmit", sid, cwd=str(home.project))


def test_a_thread_is_shown_in_the_only_terminal_of_its_folder(home: Home) -> None:
    """A jump goes there; threads of others, and other programs, have no such terminal."""

    async def test(desk: MinimalHost) -> None:
        with fake(home) as codex, terminal(codex) as shown, terminal(codex, "%8", "vim"):
            with terminal(codex, "%9", "codex", "exec"):
                await prompted(desk, codex, home)
                await hook(desk, codex, "UserPromptSubmit", SECOND, cwd="/elsewhere")
                await desk.until(lambda: desk.board.sessions[FIRST].tty == shown.tty)
            s = desk.board.sessions[FIRST]
            assert (s.tmux, s.pane) == (TMUX, "%1")
            assert s.pid == codex.process.pid
            assert desk.board.sessions[SECOND].tty == ""
            await hook(desk, codex, "SessionStart", source="compact", cwd=str(home.project))
            await desk.until(lambda: desk.board.sessions[FIRST].tty == shown.tty)

    run(home, test)


def test_a_thread_ends_with_its_terminal_once_it_is_at_rest(home: Home) -> None:
    """No hook says that somebody has quit; the server goes on with a turn."""

    async def test(desk: MinimalHost) -> None:
        with fake(home) as codex:
            with terminal(codex) as shown:
                await prompted(desk, codex, home)
                await desk.until(lambda: desk.board.sessions[FIRST].tty == shown.tty)
                await hook(desk, codex, "Stop")
            await desk.until(lambda: desk.statuses() == {}, "it has quit")
            with terminal(codex) as shown:
                await prompted(desk, codex, home)
                await desk.until(lambda: desk.board.sessions[FIRST].tty == shown.tty)
            await desk.rescan()
            assert desk.statuses() == {FIRST: "working"}
            await hook(desk, codex, "Stop")
            await desk.until(lambda: desk.statuses() == {}, "the turn is over")

    run(home, test)


def test_a_thread_that_was_left_is_replaced_by_the_next_one(home: Home) -> None:
    """After /new, and after going back with /resume."""

    async def test(desk: MinimalHost) -> None:
        with fake(home) as codex, terminal(codex) as shown:
            for sid in (FIRST, SECOND, FIRST):
                await prompted(desk, codex, home, sid)
                await desk.until(lambda sid=sid: desk.statuses() == {sid: "working"})  # type: ignore
                assert desk.board.sessions[sid].tty == shown.tty
                await hook(desk, codex, "Stop", sid)

    run(home, test)


def test_threads_of_several_terminals_end_with_the_last_of_these(home: Home) -> None:
    """Nobody knows which terminal showed a thread: all are older, and use /new."""

    async def test(desk: MinimalHost) -> None:
        with fake(home) as codex, terminal(codex) as one, terminal(codex, "%2") as other:
            for sid in (FIRST, SECOND):
                await prompted(desk, codex, home, sid)
                await hook(desk, codex, "Stop", sid)
            await desk.rescan()
            assert {s.tty for s in desk.board.sessions.values()} == {""}
            one.process.kill()
            one.process.wait()
            await desk.rescan()
            assert desk.statuses() == {FIRST: "completed", SECOND: "completed"}
            again = {"cwd": str(home.project), "prompt": "again"}
            await hook(desk, codex, "UserPromptSubmit", SECOND, **again)
            await desk.until(lambda: desk.board.sessions[SECOND].tty == other.tty, "only there")
            await hook(desk, codex, "Stop", SECOND, last_assistant_message="again")
            other.process.kill()
            await desk.until(lambda: desk.statuses() == {}, "all have quit")

    run(home, test)


def test_a_terminal_that_ended_while_no_host_ran_ends_its_thread(home: Home) -> None:
    """The next host finds the terminal gone."""

    async def test(desk: MinimalHost) -> None:
        with fake(home) as codex:
            await prompted(desk, codex, home)
            await hook(desk, codex, "Stop")
            place = {"tty": "/dev/pts/99999", "tmux": TMUX, "pane": "%1"}
            await desk.fold(client={"session_id": FIRST, "pid": codex.process.pid, **place})
            assert desk.board.sessions[FIRST].pane == "%1"
            await desk.rescan()
            await desk.until(lambda: desk.statuses() == {})

    run(home, test)


@pytest.mark.core
def test_of_several_terminals_it_is_the_one_that_opened_the_thread() -> None:
    """The id of a thread begins with its time; nothing is guessed."""
    made = int(FIRST.replace("-", "")[:12], 16) / 1000

    def at(pid: int, more: float) -> ServerClient:
        return ServerClient(pid, "", made + more, "/p", Place())

    one, before, early = at(1, -1.0), at(2, -2.5), at(3, -60.0)
    assert client_of(FIRST, [before, one, early]) == one
    assert client_of(FIRST, [early]) == early  # after /new, or when it asked first
    assert client_of(FIRST, [early, at(4, -90.0)]) is None
    assert client_of(FIRST, [one, at(4, -1.5)]) is None
    assert client_of("no uuid", [one, early]) is None
    assert client_of(FIRST, []) is None


def test_where_peers_are_not_told_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as in a sandbox: that is not the same as no terminal."""
    monkeypatch.setattr(ssh, "_dumped", lambda: iter(()))
    assert clients_of(os.getpid()) is None


def test_a_search_is_fast() -> None:
    """A search runs whenever the status of such a session changes."""
    began = time.process_time()
    assert clients_of(os.getpid()) == []
    assert time.process_time() - began < 0.2
