"""Answers that could reach something else than what was read, or count twice: each is refused."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.session import Session
from bellboard.hosting import keyboard
from bellboard.storage.answers import Claim, Claims
from bellboard.system.failures import Declined
from bellboard.system.processes import argv_of
from files.test_answering import CHANGED, SCREEN, THERE, Typewriter, refused, said
from rig.fixtures import Editors
from rig.home import Home
from rig.host.desk import NAME, SLEEP, Desk
from rig.tmux import Pane, Server
from rig.waiting import eventually

SENT = f"an earlier answer may still take effect{THERE}"


# ---------------------------------------------------------------- twice


def test_what_was_sent_is_not_typed_again(desk: Desk) -> None:
    """A slow CLI takes the first answer late: keys of the second would answer what comes next."""
    terminal = desk.terminal = Typewriter(desk, SCREEN)
    desk.becomes(sent=True)
    assert [way["name"] for way in desk.request()["request"]["ways"]] == ["go"]
    refused(desk, desk.answer(), SENT)
    assert terminal.keys == ""


def test_a_hook_that_still_waits_is_answered_after_all(desk: Desk) -> None:
    """A hook reads one answer and leaves, so no earlier answer has reached a waiting hook.

    For example, a host died between the record of its answer and the answer.
    """
    desk.waits()
    Claims(desk.home.bellboard).claim(NAME, Claim("Neovim 9", time.time(), "allow", 9))
    os.utime(desk.folder / f"{NAME}.answer", (time.time() - 4,) * 2)
    desk.becomes(sent=True, pipe="1.1")
    assert desk.answer()["way"] == "hook"


def test_a_request_whose_dialog_was_not_shown_has_got_nothing(desk: Desk) -> None:
    """Refused before a key: nobody is told that an answer was sent."""
    desk.becomes(since=time.time())
    desk.terminal = Typewriter(desk, "")
    refused(desk, desk.answer(), f"its terminal does not show the question{THERE}")
    assert [line["way"] for line in desk.told] == ["none"]


def asks(board: Board, sid: str, pid: int, request: str) -> Session:
    payload = {"session_id": sid, "hook_event_name": "PermissionRequest", "tool_name": "Bash"}
    origin = {"agent": "claude", "pid": pid}
    line = {"t": 10.0 + pid, "hook": payload | {"prompt_id": request}, "origin": origin}
    board.fold(replace(from_line(line), request=request))
    return board.sessions[sid]


def answered(sid: str, request: str, pid: int) -> dict[str, Any]:
    return {"session_id": sid, "request": request, "choice": "allow", "way": "keys", "pid": pid}


def test_an_answer_marks_the_question_that_it_was_sent_to() -> None:
    """Of that process: another one of the same session asks for itself; nor one asked later."""
    board = Board()
    asks(board, "s", 1, "first")
    asks(board, "s", 2, "second")
    for pid, request in ((1, "first"), (2, "other")):
        board.fold(from_line({"t": 20.0, "answer": answered("s", request, pid)}))
    s = board.sessions["s"]
    blocks = [b for run in (s, *s.aside.values()) for b in run.blocks.values()]
    assert {b.request: b.sent for b in blocks} == {"first": True, "second": False}


@pytest.mark.parametrize("named", [{"id": NAME}, {}])
def test_an_answer_without_the_name_of_its_request_is_logged_with_it(
    desk: Desk, named: dict[str, str]
) -> None:
    """Bound by the digest alone; without the name nobody would know that an answer was sent."""
    desk.terminal = Typewriter(desk, SCREEN)
    digest = desk.request()["request"]["digest"]
    assert desk.answer(request="", digest=digest, **named)["way"] == "keys"
    assert [line["request"] for line in desk.told] == [NAME, NAME]


RACE = """
import sys, time
from pathlib import Path
from bellboard.storage.answers import Claim, Claims
claims, begin = Claims(Path(sys.argv[1])), float(sys.argv[2])
for n in range(200):
    while time.time() < begin + n / 200:
        pass
    if claims.claim(f"{n + 1:08}.1.PermissionRequest", Claim(sys.argv[3])) is None:
        print(n)
"""


def test_of_two_programs_in_the_same_moment_one_answers(home: Home, desk: Desk) -> None:
    """Two machines may answer through two hosts; of 200 races, each answer counts once."""
    argv = [sys.executable, "-c", RACE, str(home.bellboard), str(time.time() + 1.0)]
    env = home.env | {"PYTHONPATH": os.pathsep.join(sys.path)}
    both = [
        subprocess.Popen([*argv, by], env=env, stdout=subprocess.PIPE, text=True)
        for by in ("box", "laptop")
    ]
    won = sorted(int(n) for each in both for n in each.communicate()[0].split())
    assert won == [*range(200)]


# ---------------------------------------------------------------- something else


@pytest.mark.parametrize(
    "made", [lambda d: d[:8], lambda d: f"{d} ", lambda d: [d], lambda d: True]
)
def test_what_is_almost_its_digest_is_refused(desk: Desk, made: Callable[[str], object]) -> None:
    hook = desk.waits()
    digest = desk.request()["request"]["digest"]
    refused(desk, desk.answer(digest=made(digest)), CHANGED)
    assert hook.said == []


@pytest.mark.parametrize("what", ["link", "endless", "pipe", "directory", "empty", "bytes", "gone"])
def test_what_was_planted_in_place_of_the_event_is_refused(desk: Desk, what: str) -> None:
    """At once: nothing waits for it, or reads what it leads to."""
    hook = desk.waits()
    digest = desk.request()["request"]["digest"]
    event = desk.folder / NAME
    other = event.rename(desk.home.root / "event")
    {
        "link": lambda: event.symlink_to(other),
        "endless": lambda: event.symlink_to("/dev/zero"),
        "pipe": lambda: os.mkfifo(event, 0o600),
        "directory": event.mkdir,
        "empty": event.touch,
        "bytes": lambda: event.write_bytes(b"\0\xff" * 999),
        "gone": lambda: None,
    }[what]()
    reply = desk.answer(digest=digest)
    refused(desk, reply, reply["why"])
    assert reply["why"].startswith("its request ")
    assert hook.said == []


NAMES = ("../../claims", "a/b", "..", "\0", "\ud800", "x" * (10 << 20), ["x"], 7)


@pytest.mark.parametrize("field", ["request", "id", "session_id"])
@pytest.mark.parametrize("name", NAMES, ids=map(str, range(len(NAMES))))
def test_a_name_that_names_nothing_is_refused_and_cut(desk: Desk, field: str, name: object) -> None:
    hook = desk.waits()
    digest = desk.request()["request"]["digest"]
    given = {"session_id": "s", "request": "", "choice": "allow", "digest": digest, field: name}
    with pytest.raises(
        Declined, match=r"already been answered|in the terminal first|no longer exists"
    ):
        asyncio.run(desk.answering().answer(given))
    assert len(json.dumps(desk.told[-1])) < 2000
    assert hook.said == []


# ---------------------------------------------------------------- somewhere else


def test_a_suspended_process_is_not_answered(desk: Desk) -> None:
    """The process would take the answer whenever somebody continues it."""
    hook = desk.waits()
    digest = desk.request()["request"]["digest"]
    os.kill(desk.pid, signal.SIGSTOP)
    eventually(lambda: desk.request().get("why"))
    refused(desk, desk.answer(digest=digest), f"process {desk.pid} is suspended{THERE}")
    os.kill(desk.pid, signal.SIGCONT)
    eventually(lambda: "request" in desk.request())
    assert desk.answer(digest=digest)["outcome"] == "taken"
    assert said(hook.said[0])["decision"] == {"behavior": "allow"}


@pytest.fixture
def behind(home: Home) -> Iterator[int]:
    """Return a process in the background of its terminal: another program reads the keys."""
    script = f"import os; os.setpgid(0, 0); os.execv({SLEEP!r}, ['claude', '600'])"
    ours, theirs = pty.openpty()
    code = (
        f"import os, subprocess, sys, time\n"
        f"print(subprocess.Popen([sys.executable, '-c', {script!r}]).pid, flush=True)\n"
        f"time.sleep(600)"
    )
    # the leader of the terminal's session opens it, and so it becomes its own
    shell = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.open({os.ttyname(theirs)!r}, os.O_RDWR)\n{code}"],
        env=home.env,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert shell.stdout is not None
    pid = int(shell.stdout.readline())
    eventually(lambda: argv_of(pid)[0] == "claude")
    yield pid
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    shell.kill()
    shell.communicate()
    os.close(ours)
    os.close(theirs)


@pytest.mark.skipif(sys.platform != "linux", reason="this system has no /proc")
def test_a_program_in_front_of_the_agent_gets_no_keys(home: Home, behind: int) -> None:
    """A second CLI in front may ask the same as the CLI in the background."""
    desk = Desk(home, behind)
    terminal = desk.terminal = Typewriter(desk, SCREEN)
    refused(desk, desk.answer(), f"another program is in front of it in its terminal{THERE}")
    assert terminal.keys == ""
    desk.waits()
    assert desk.answer()["way"] == "hook"


@pytest.fixture
def cat(tmux: Server) -> Pane:
    return tmux.open(["cat"])


def typing(tmux: Server, pane: Pane) -> str:
    """Type a 1 into a pane; return why not."""
    terminal = keyboard.PaneTerminal(str(tmux.socket), pane.id, pane.tty)
    try:
        terminal.rows()
        terminal.type(keyboard.Press("1"))
    except Declined as why:
        return str(why)
    return ""


def test_keys_that_tmux_gives_to_others_too_are_not_typed(tmux: Server, cat: Pane) -> None:
    """With synchronize-panes, keys would also answer the questions of other panes."""
    split = ("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", cat.id, "cat")
    other = Pane(tmux, tmux.run(*split).strip())
    tmux.run("set-option", "-w", "-t", cat.id, "synchronize-panes", "on")
    why = "its tmux pane shares its keys with other panes (synchronize-panes)"
    assert typing(tmux, cat) == f"{why}; go there"
    tmux.run("set-option", "-w", "-t", cat.id, "synchronize-panes", "off")
    assert typing(tmux, cat) == ""
    cat.shows("1")
    assert other.text().strip() == ""


def test_a_pane_in_copy_mode_gets_no_keys(tmux: Server, cat: Pane) -> None:
    """Keys are commands of that mode. The session can still be looked at."""
    cat.type("hello")
    cat.shows("hello")
    tmux.run("copy-mode", "-t", cat.id)
    why = "its tmux pane is in copy mode, which would take the keys"
    assert typing(tmux, cat) == f"{why}; go there"
    assert keyboard.PaneTerminal(str(tmux.socket), cat.id, cat.tty).read() == ["hello"]
    tmux.run("send-keys", "-t", cat.id, "-X", "cancel")
    assert typing(tmux, cat) == ""


# ---------------------------------------------------------------- never


def test_a_clock_that_jumps_back_keeps_nobody_waiting(desk: Desk) -> None:
    """The question then seems to come from the future, and its dialog to be drawn soon."""
    desk.becomes(since=time.time() + 3600)
    desk.terminal = Typewriter(desk, "")
    begun = time.monotonic()
    assert [way["name"] for way in desk.request()["request"]["ways"]] == ["go"]
    assert time.monotonic() < begun + 20


def test_the_same_request_of_two_sessions_has_two_digests(
    desk: Desk, processes: Callable[..., int]
) -> None:
    """A request read in one session cannot be answered in another, whatever its name."""
    digests = {desk.request()["request"]["digest"]}
    desk.asks(session_id="t")
    desk.s = replace(desk.s, previous=("t",))
    digests.add(desk.request()["request"]["digest"])
    pid = processes()
    desk.asks(pid=pid)
    desk.pid = pid
    desk.s = desk.session_of()
    digests.add(desk.request()["request"]["digest"])
    assert len(digests) == 3


OPENED = """
vim.cmd.enew()
vim.fn.termopen({ 'cat' })
return vim.api.nvim_get_chan_info(vim.bo.channel).pty
"""


def test_a_terminal_that_its_neovim_has_closed_gets_no_key(nvim: Editors) -> None:
    """Closed while its request was being read; what shows there now is not typed into."""
    editor = nvim("0.12", {"float": {"enabled": False}})
    terminal = keyboard.BufferTerminal(str(editor.socket), editor.lua(OPENED))
    terminal.type(keyboard.Press("1"))
    eventually(lambda: terminal.rows() == ["1"])
    assert not terminal.type(keyboard.Press("2", rows=("another",)))
    editor.command("bwipeout!")
    with pytest.raises(Declined, match="its Neovim no longer has its terminal"):
        terminal.rows()
    assert not terminal.type(keyboard.Press("3"))
    editor.close()
    with pytest.raises(Declined):
        terminal.rows()
