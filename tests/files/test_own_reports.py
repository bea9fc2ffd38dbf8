"""Own reports of programs, in real terminals: their sessions, and how often they count."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import signal
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from bellboard import remote
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.evidence import Evidence
from bellboard.core.published import ended
from bellboard.core.session import Process, Session
from bellboard.system import processes
from bellboard.system.notes import Notes
from bellboard.witnesses import own_reports
from bellboard.witnesses.own_reports import OwnReports
from rig.waiting import PATIENCE, eventually

PROMPT = "ready> "
WORKING, DONE = "7501;state=working:app=make", "7501;state=done:app=make"


class Shell:
    """A shell with job control in a terminal of its own."""

    def __init__(self) -> None:
        self.pid, self._fd = pty.fork()
        if not self.pid:
            os.environ |= {"PS1": PROMPT, "HISTFILE": ""}
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        os.set_blocking(self._fd, False)
        self._shown = ""
        eventually(self._is_ready, "the prompt")
        self.tty = processes.tty_of(self.pid)

    def _is_ready(self) -> bool:
        """Return whether it has shown its prompt: before, bash drops what is typed."""
        with contextlib.suppress(BlockingIOError):
            self._shown += os.read(self._fd, 65536).decode()
        return PROMPT in self._shown

    def start(self, command: str) -> int:
        """Run a command in front; return its first process."""
        eventually(self._is_ready, "the prompt")
        self._shown = ""
        os.write(self._fd, f"{command}\n".encode())
        return eventually(self._front, command)

    def _front(self) -> int:
        group = processes.front_group(self.pid)
        is_copy = processes.argv_of(group) == processes.argv_of(self.pid)  # of the shell, at first
        return 0 if is_copy else group

    def is_in_front(self) -> bool:
        return processes.front_group(self.pid) == self.pid

    def close(self) -> None:
        for pid in (*processes.descendants(self.pid), self.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.waitpid(self.pid, 0)
        os.close(self._fd)


class Heard:
    """Reports of one terminal, and findings about them."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.found: list[dict[str, Any]] = []
        self.notes = Notes()
        self.reports = OwnReports(self._told, time.time, self.notes)
        self.there: list[Session] = []
        self.loop = asyncio.new_event_loop()

    def _told(self, evidence: Evidence) -> None:
        assert evidence.key not in {x["key"] for x in self.found}
        said: Any = evidence.line["osc7501"]
        self.found.append({"t": evidence.line["t"], "key": evidence.key, **said})

    def take(self, *texts: str, dropped: int = 0) -> None:
        self.until(lambda: True, *texts, dropped=dropped)
        self.until(lambda: not self.reports.is_asking)

    def until(self, predicate: Callable[[], object], *texts: str, dropped: int = 0) -> None:
        """Take sequences, and wait in the event loop until something is true."""
        t = time.time()  # of all: many come in one moment
        said = [(t, text) for text in texts]

        async def wait() -> None:
            if texts or dropped:
                self.reports.hand_in(self.shell.tty, self.shell.pid, said, self.there, dropped)
            while not predicate():
                await asyncio.sleep(0.001)

        self.loop.run_until_complete(asyncio.wait_for(wait(), PATIENCE))

    def close(self) -> None:
        self.reports.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    @property
    def last(self) -> dict[str, Any]:
        return self.found[-1]


@pytest.fixture
def heard() -> Iterator[Heard]:
    shell = Shell()
    found = Heard(shell)
    try:
        yield found
    finally:
        found.close()
        shell.close()


def msg(text: str) -> str:
    return b64encode(text.encode()).decode()


def test_a_report_belongs_to_the_process_in_front(heard: Heard) -> None:
    """A job of the shell is in front while it runs, else the shell."""
    heard.take(WORKING)
    assert (heard.shell.pid, "bash") == (heard.last["pid"], heard.last["command"])
    job = heard.shell.start("sleep 1000")
    heard.take(WORKING)
    assert (job, "sleep", heard.shell.tty) == tuple(
        heard.last[k] for k in ("pid", "command", "tty")
    )
    assert processes.started_of(job) == heard.last["started"]
    assert str(processes.cwd_of(job)) == heard.last["cwd"]


def test_who_is_in_front_is_asked_after_a_report_has_come(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that comes meanwhile is perhaps of the next program."""
    asked, gate, look = threading.Event(), threading.Event(), own_reports.front_of

    def front_of(*given: Any) -> own_reports.Front | None:
        found = look(*given)
        asked.set()
        gate.wait(PATIENCE)
        return found

    monkeypatch.setattr(own_reports, "front_of", front_of)
    first = heard.shell.start("sleep 1000")
    heard.until(asked.is_set, DONE)
    os.kill(first, signal.SIGKILL)
    eventually(heard.shell.is_in_front, "the shell in front")
    second = heard.shell.start("sleep 1000")
    heard.until(lambda: True, WORKING)
    gate.set()
    heard.until(lambda: len(heard.found) == 2)
    assert [(first, DONE), (second, WORKING)] == [
        (x["pid"], "7501;" + x["body"]) for x in heard.found
    ]


def test_last_words_are_of_the_program_that_has_just_ended(heard: Heard) -> None:
    """A moment later, reports are of the shell again."""
    job = heard.shell.start("sleep 1000")
    heard.take(WORKING)
    os.kill(job, signal.SIGKILL)
    eventually(heard.shell.is_in_front, "the shell in front")
    heard.take(DONE)
    assert (job, "state=done:app=make") == (heard.last["pid"], heard.last["body"])
    heard.reports.died(job)
    heard.reports._terminals[heard.shell.tty].programs[job].died -= own_reports.LAST_WORDS + 1
    heard.take(WORKING)
    assert heard.shell.pid == heard.last["pid"]


def test_a_report_is_of_the_known_session_in_its_job(heard: Heard) -> None:
    """A wrapper, such as npm's script, is in front; hooks name the program that it has started."""
    front = heard.shell.start("sh -c 'sleep 1000; :'")
    child = eventually(lambda: processes.children_of(front), "a child")[0]
    heard.there = [Session("s1", tty=heard.shell.tty, processes={child: Process(child)})]
    heard.take(WORKING)
    assert (child, "s1") == (heard.last["pid"], heard.last["session_id"])


def test_a_report_is_not_of_a_session_that_is_suspended(heard: Heard) -> None:
    first = heard.shell.start("sleep 1000")
    heard.there = [Session("s1", tty=heard.shell.tty, processes={first: Process(first)})]
    os.kill(first, signal.SIGTSTP)
    eventually(heard.shell.is_in_front, "the shell in front")
    second = heard.shell.start("sleep 1001")
    heard.take(WORKING)
    assert second == heard.last["pid"]
    assert "session_id" not in heard.last


def test_a_server_outside_the_terminal_reports_through_its_client(heard: Heard) -> None:
    heard.shell.start("sleep 1000")
    server = os.getpid()
    shared = Process(server, shared=True)
    heard.there = [Session("s1", tty=heard.shell.tty, processes={server: shared})]
    heard.take(WORKING)
    assert (server, "s1") == (heard.last["pid"], heard.last["session_id"])


def test_the_first_process_of_a_job_may_have_ended(heard: Heard) -> None:
    front = heard.shell.start("sleep 0.1 | sleep 1000")
    eventually(lambda: not processes.is_alive(front), "its end")
    heard.take(WORKING)
    assert (front, front) == (
        processes.group_of(heard.last["pid"]),
        processes.front_group(heard.last["pid"]),
    )
    assert front != heard.last["pid"]


def test_the_same_report_counts_once(heard: Heard) -> None:
    heard.shell.start("sleep 1000")
    heard.take(WORKING, WORKING, f"{WORKING}:id=a", WORKING, f"{WORKING}:id=a")
    assert ["state=working:app=make", "state=working:app=make:id=a"] == [
        x["body"] for x in heard.found
    ]


def test_text_counts_once_a_second_and_a_state_at_once(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of texts in between, the last one counts."""
    monkeypatch.setattr(own_reports, "TEXT", 0.3)
    heard.shell.start("sleep 1000")
    heard.take(*(f"{WORKING}:msg={msg(str(n))}" for n in range(100)))
    assert 1 == len(heard.found)
    heard.take(DONE, WORKING)
    assert 3 == len(heard.found)
    heard.take(*(f"{WORKING}:progress={n}" for n in range(100)))
    assert 3 == len(heard.found)
    heard.until(lambda: len(heard.found) == 4)
    assert "state=working:app=make:progress=99" == heard.last["body"]


def test_a_prompt_and_the_end_of_a_terminal_end_its_programs(heard: Heard) -> None:
    job = heard.shell.start("sleep 1000")
    heard.take(WORKING, "133;A")
    assert (job, "prompt") == (heard.last["pid"], heard.last["ends"])
    heard.take(WORKING, "")
    assert (heard.shell.tty, "exit") == (heard.last["tty"], heard.last["ends"])
    assert 4 == len(heard.found)
    heard.take("133;A")
    assert 4 == len(heard.found)


def test_every_terminal_ends_with_its_neovim(heard: Heard) -> None:
    heard.shell.start("sleep 1000")
    heard.take(WORKING)
    heard.reports.left()
    assert (heard.shell.tty, "exit") == (heard.last["tty"], heard.last["ends"])


@pytest.mark.parametrize("first", [0, 1])
def test_a_neovim_has_exited_once_one_of_its_ends_is_closed(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """The ends are closed one after the other, and the first one ends the background process."""
    told: list[int] = []
    host = SimpleNamespace(left=partial(told.append, first))
    pairs = [socket.socketpair() for _ in range(2)]
    monkeypatch.setattr(remote, "_plugins", [SimpleNamespace(host=host)])
    monkeypatch.setattr(remote, "held", tuple(ours.fileno() for ours, _ in pairs))
    with contextlib.ExitStack() as ends:
        for end in (end for pair in pairs for end in pair):
            ends.enter_context(end)
        remote.left()
        assert [] == told
        pairs[first][1].close()
        remote.left()
        assert [first] == told


def test_what_is_not_valid_is_counted_and_not_reported(heard: Heard) -> None:
    heard.shell.start("sleep 1000")
    heard.take("7501;state=asleep", "7501;state=done:msg=A", dropped=3)
    assert [] == heard.found
    (note,) = heard.notes.values()
    assert note.startswith("5 not used, the last because ")


def test_everything_is_reported_again_after_a_time_without_hosts(heard: Heard) -> None:
    heard.shell.start("sleep 1000")
    heard.take(
        WORKING, f"{WORKING}:id=a:msg={msg('x')}", f"{WORKING}:id=b", "7501;state=clear:id=b"
    )
    before = [x["body"] for x in heard.found]
    heard.reports.renew()
    again = [x["body"] for x in heard.found[len(before) :]]
    assert before[:2] == again


@pytest.mark.parametrize("ask", [processes.front_group, processes.group_of])
def test_no_process_is_in_no_group(ask: Callable[[int], int]) -> None:
    assert (0, 0) == (ask(1 << 30), ask(1 << 40))


def test_a_program_known_by_its_report_alone_cannot_be_resumed() -> None:
    board = Board()
    said = {"pid": 77, "started": "5", "tty": "/dev/pts/9", "body": "state=working:app=make"}
    board.fold(from_line({"t": 1.0, "osc7501": said}))
    board.fold(from_line({"t": 2.0, "process": {"pid": 77, "alive": False, "started": "5"}}))
    (over,) = board.sessions.values()
    assert ("absent", []) == (over.turn, ended([over]))
