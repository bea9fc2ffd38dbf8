"""Hooks wait only while a host is there to answer, and never longer than their question stands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.cli import main
from bellboard.cli.runner import Runner
from bellboard.core.session import Block, Session
from bellboard.hosting.hook_pipes import OFFERED, UNHEARD, HookPipes
from bellboard.storage import state_folder
from bellboard.storage.event_file import Item
from bellboard.storage.spool import Spool
from bellboard.storage.store import Store
from bellboard.system.processes import started_of
from rig.home import Home
from rig.host.hosting import Mounts, RecordedHost, opened, put
from rig.host.session_files import write_session_file
from rig.host.waiting_hook import Hook
from rig.waiting import eventually

BASH = {"tool_name": "Bash", "tool_input": {"command": "make"}}


class HookedFolder:
    """A state folder with hosts, and the CLI's hooks."""

    def __init__(self, home: Home, start: Callable[..., RecordedHost]) -> None:
        self.spool = Spool(home.bellboard)
        self.start = start
        self.hooks: list[Hook] = []
        # what runs the hooks
        self.cli = subprocess.Popen(["sleep", "600"])

    def turn(self, state: str) -> None:
        assert main(["answers", state]) == 0

    @property
    def pipes(self) -> dict[str, bool]:
        return self.spool.pipes.found()

    @property
    def offered(self) -> int:
        return sum(not taken for taken in self.pipes.values())

    def ask(self, session: str = "s", **more: Any) -> Hook:
        """Let a hook ask, once there is a pipe for it."""
        eventually(lambda: self.offered >= 8)
        given = {"prompt_id": f"{len(self.hooks)}", "session_id": session, **more}
        hook = Hook(self.spool.home, pid=self.cli.pid, **given)
        self.hooks.append(hook)
        return hook

    def asks(self, host: RecordedHost, session: str = "s", **more: Any) -> Hook:
        """Let a hook ask, and wait until a host shows it, and not the question before."""
        eventually(lambda: host.shown.get(session) != "blocked")
        hook = self.ask(session, **more)
        eventually(lambda: host.shown.get(session) == "blocked")
        return hook

    def goes_on(self, session: str = "s") -> None:
        """The user answered in the terminal."""
        put(self.spool, "PostToolUse", session, prompt_id=f"{len(self.hooks)}", **BASH)

    @property
    def asked(self) -> Item:
        """The question of the hook that has taken a pipe, once it is folded."""
        name = self.spool.pipes.owner(self.pipe)
        return eventually(lambda: self.spool.questions.read(name))

    @property
    def pipe(self) -> str:
        return next((name for name, taken in self.pipes.items() if taken), "")


@pytest.fixture
def folder(
    home: Home, start: Callable[..., RecordedHost], monkeypatch: pytest.MonkeyPatch
) -> Iterator[HookedFolder]:
    monkeypatch.setenv("BELLBOARD_HOME", str(home.bellboard))
    made = HookedFolder(home, start)
    yield made
    made.cli.kill()
    made.cli.wait()
    for hook in made.hooks:
        hook.end()


class Offering:
    """The pipes that a host would offer in such a folder, and its database."""

    def __init__(self, folder: HookedFolder) -> None:
        self.store, self.pipes = Store(folder.spool.home), HookPipes(folder.spool)

    def run(self, **sessions: Session) -> float:
        return self.pipes.run(self.store, sessions)


@pytest.fixture
def offering(folder: HookedFolder) -> Iterator[Offering]:
    folder.spool.prepare()
    folder.turn("on")
    made = Offering(folder)
    yield made
    made.pipes.close()
    made.store.close()


def test_a_hook_waits_for_an_answer_until_its_question_ends(folder: HookedFolder) -> None:
    """An answer arrives; what is answered in the terminal sends it away; nothing is left."""
    host = folder.start()
    assert folder.pipes == {}
    folder.turn("on")
    hook = folder.asks(host)
    assert hook.waits
    item = folder.asked
    assert folder.spool.pipes.send(folder.pipe, item.name, item.payload, b'{"yes":1}')
    assert hook.printed() == b'{"yes":1}\n'
    folder.goes_on()
    eventually(lambda: len(folder.pipes) == folder.offered == 8)
    hook = folder.asks(host)
    folder.goes_on()
    assert hook.printed() == b""
    eventually(lambda: len(folder.pipes) == folder.offered == 8)
    hook = folder.asks(host)
    folder.turn("off")
    assert hook.printed() == b""
    eventually(lambda: folder.pipes == {})
    folder.turn("on")
    eventually(lambda: folder.offered == 8)


def test_pipes_of_nobody_are_removed_a_few_at_a_time(
    folder: HookedFolder, offering: Offering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20,000 blocked a host for two seconds."""
    for n in range(1, 4):
        (folder.spool.home / f"answers/2147483647.{n}").touch()
    monkeypatch.setattr(state_folder, "SLICE", 0.0)
    for left in (2, 1):
        assert offering.run() == 0.0
        assert left == sum(name.startswith("2147483647") for name in folder.pipes)
    assert offering.run() > 0.0
    assert folder.offered == len(folder.pipes) == OFFERED


def test_a_pipe_of_a_dead_host_is_removed_although_its_pid_lives_again(
    folder: HookedFolder, offering: Offering
) -> None:
    """A hook would take it, and nobody could answer."""
    old, new = f"{os.getppid()}.{10**18}", f"{os.getppid()}.{time.time_ns()}"
    for name in (old, new):
        os.mkfifo(folder.spool.home / "answers" / name)
    for _ in range(2):
        offering.run()
        assert (old in folder.pipes, new in folder.pipes) == (False, True)


@pytest.mark.parametrize(
    ("more", "facts"),
    [({}, {"blocks": {}}), ({"agent": "a1"}, {}), ({}, {"headless": True})],
    ids=["over", "of a subagent", "without a terminal"],
)
def test_a_hook_is_sent_away_at_once(
    folder: HookedFolder, offering: Offering, more: dict[str, str], facts: dict[str, Any]
) -> None:
    """The question is over, or the CLI would show no dialog while the hook waits."""
    offering.run()
    hook = folder.ask()
    pipe = eventually(lambda: folder.pipe)
    block = Block("permission", 1.0, pipe=pipe)
    asks = Session("s", turn="working", blocks={":": block})
    away = replace(asks, **{"blocks": {":": replace(block, **more)}, **facts})
    for s, waits in ((asks, True), (away, False)):
        offering.pipes.note_changed({"s"})
        offering.run(s=s)
        assert (pipe in folder.pipes) == waits
    assert hook.printed() == b""


def test_a_host_that_cannot_fold_keeps_no_hook_waiting(
    folder: HookedFolder, offering: Offering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would see the question; the state may change within a second."""
    offering.run()
    hook = folder.ask()
    eventually(lambda: True in folder.pipes.values())
    assert 0.0 < offering.pipes.go_blind() <= UNHEARD
    assert hook.waits
    monkeypatch.setattr("bellboard.hosting.hook_pipes.UNHEARD", 0.0)
    offering.pipes.go_blind()
    assert folder.pipes == {}
    assert hook.printed() == b""


def test_a_host_that_can_write_nothing_keeps_no_hook_waiting(
    folder: HookedFolder, home: Home, mount: Mounts
) -> None:
    """On a full disk, no hook reports that you answered in the terminal."""
    spool = folder.spool.home / "spool"
    folder.spool.prepare()
    mount("-t", "tmpfs", "-o", "mode=700", "tmpfs", at=spool)
    host = folder.start()
    folder.turn("on")
    hook = folder.asks(host)
    eventually(lambda: not any(folder.spool.new.iterdir()), "an empty spool")
    mount("-o", "remount,ro", at=spool, again=True)
    write_session_file(home, "busy", "other")
    assert hook.printed() == b""
    mount("-o", "remount,rw", at=spool, again=True)
    eventually(lambda: folder.offered == OFFERED, "pipes for the next hooks")


def test_a_hook_goes_when_its_cli_has_died(folder: HookedFolder) -> None:
    """Killed, so that it ends no hook; its session ends."""
    host = folder.start()
    folder.turn("on")
    put(folder.spool, "SessionStart")
    hook = folder.asks(host)
    folder.cli.kill()
    assert hook.printed() == b""


def test_a_hook_whose_event_asks_nothing_goes(folder: HookedFolder) -> None:
    """The second of two hooks for one question goes, too: plugin and settings may each have one."""
    host = folder.start()
    folder.turn("on")
    first = folder.asks(host)
    second = folder.ask(prompt_id="0")
    assert second.printed() == b""
    assert first.waits
    eventually(lambda: sorted(folder.pipes.values()) == [False] * 8 + [True])


def test_a_hook_waits_on_while_any_host_lives(folder: HookedFolder) -> None:
    """The one that offered its pipe is closed; of the others one is suspended, and none is left."""
    one = folder.start("one")
    folder.turn("on")
    hook = folder.asks(one)
    two, three = folder.start("two"), folder.start("three")
    eventually(lambda: two.shown.get("s") == three.shown.get("s") == "blocked")
    one.kill(signal.SIGTERM)
    eventually(lambda: folder.offered == 16)
    assert hook.waits
    pipe = folder.pipe
    assert pipe.startswith(f"{one.pid}.")
    two.process.send_signal(signal.SIGSTOP)
    folder.goes_on()
    assert hook.printed() == b""
    eventually(lambda: pipe not in folder.pipes)
    two.process.send_signal(signal.SIGCONT)
    hook = folder.asks(three)
    eventually(lambda: two.shown.get("s") == "blocked")
    two.kill()
    three.kill()
    assert hook.printed() == b""
    four = folder.start("four")
    eventually(lambda: {int(name.partition(".")[0]) for name in folder.pipes} == {four.pid})
    four.kill(signal.SIGTERM)
    assert folder.pipes == {}


def test_host_and_cli_killed_at_once_leave_nothing(folder: HookedFolder) -> None:
    """No process, and no file once a host is there again."""
    host = folder.start()
    folder.turn("on")
    hook = folder.asks(host)

    def is_known() -> bool:  # only of a process that was seen alive does a later host know its end
        with opened(folder.spool.home) as shared:
            return any(p.started for p in shared.board.sessions["s"].processes.values())

    eventually(is_known, "the start of its process")
    os.kill(folder.cli.pid, signal.SIGKILL)
    host.kill()
    assert hook.printed() == b""
    again = folder.start("again")
    eventually(lambda: {int(name.partition(".")[0]) for name in folder.pipes} == {again.pid})
    eventually(lambda: again.shown == {})
    kept = [path for path in Path(folder.spool.home, "answers").iterdir() if path.is_file()]
    eventually(lambda: not [path for path in kept if path.exists()])


# What is in the spool may have been forged, as by a program in a sandbox that may write there.

HARMLESS, TRUE, ALLOW = "ls", "rm -rf build", b'{"allow":1}'


class Forger:
    """Writes events like a hook's, with another command, and facts of its own."""

    def __init__(self, spool: Spool, item: Item, other: int) -> None:
        self.spool, self.item = spool, item
        self.elsewhere: dict[str, Any] = {"session_id": "t", "pid": other}  # of another session

    def __call__(self, name: str = "", **facts: Any) -> None:
        item, origin = self.item, self.item.origin or {}
        pid, pipe = facts.pop("pid", origin["pid"]), facts.pop("pipe", item.pipe)
        head = f"bellboard 1\0agent=claude\0event={item.event}\0pid={pid}\0pipe={pipe}\0\0"
        given = {"tool_name": "Bash", "session_id": "s", "hook_event_name": item.event, **facts}
        draft = self.spool.home / "spool/tmp/forged"
        draft.write_text(head + json.dumps({**given, "tool_input": {"command": HARMLESS}}))
        draft.rename(self.spool.new / (name or f"00004711.{time.time_ns()}.PermissionRequest"))

    def twice(self) -> None:
        self(**self.elsewhere)
        self(**self.elsewhere)

    def of_nobody(self) -> None:
        free = next(name for name, taken in self.spool.pipes.found().items() if not taken)
        self(pipe=free, **self.elsewhere)


#: Whose event names the pipe → whether what the hook asks is shown and answered all the same.
FORGED: dict[str, tuple[Callable[[Forger], object], bool]] = {
    "of the same session": (lambda f: f(), False),
    "of another tool": (lambda f: f(tool_name="Write"), True),
    "of another session": (lambda f: f(session_id="t"), False),  # its process has changed to it
    "of another process": (lambda f: f(**f.elsewhere), True),
    "of no process": (lambda f: f(session_id="t", pid=0), True),
    "of a subagent": (lambda f: f(agent_id="a1"), True),
    "before it": (lambda f: f("00000001.1.PermissionRequest", **f.elsewhere), True),
    "with its name": (lambda f: f(f.item.name), False),
    "with its name, of another": (lambda f: f(f.item.name, **f.elsewhere), False),
    "with its name, and a number": (lambda f: f(f"{f.item.name}.0", **f.elsewhere), True),
    "with its name in capitals": (lambda f: f(f.item.name.upper(), **f.elsewhere), True),
    "twice": (Forger.twice, True),
    "of nobody": (Forger.of_nobody, True),
    "outside": (lambda f: f(pipe="../answers/1.1", **f.elsewhere), True),
    "that is none": (lambda f: f(pipe="9" * 5000, **f.elsewhere), True),
}


@pytest.mark.parametrize("how", FORGED)
@pytest.mark.parametrize("is_folded", [False, True], ids=["unread", "read"])
def test_an_answer_reaches_only_the_hook_of_what_was_shown(
    home: Home,
    processes: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    is_folded: bool,
) -> None:
    """Another event names the same pipe, before it or after it was read, in each way."""
    monkeypatch.setattr(os, "environ", home.env)
    spool = Spool(home.bellboard)
    spool.prepare()
    for _ in range(2):
        spool.pipes.offer()
    pid, other = processes(), processes()
    hook = Hook(spool.home, pid=pid, tool_input={"command": TRUE})
    make, is_shown = FORGED[how]
    try:
        item = spool.read(eventually(spool.scan)[0])
        assert item and item.pipe
        with opened(spool.home) as shared:
            if is_folded:
                shared.turn(time.time())
            make(Forger(spool, item, other))
            shared.turn(time.time())
            for each in (pid, other):
                known = {"pid": each, "alive": True, "started": started_of(each)}
                spool.write({"t": time.time(), "process": known})
            shared.turn(time.time())
            runner, shown = Runner(shared, "a test"), []
            asked = [*shared.board.sessions.values()]
            for sid, name in [(s.session_id, b.request) for s in asked for b in s.blocks.values()]:
                about = {"session_id": sid, "request": name}
                request = runner.do("request", about).get("request", {"parts": []})
                about |= {"choice": "allow", "digest": request.get("digest")}
                if [part.get("text") for part in request["parts"]] == [TRUE]:
                    assert request["way"] == "hook"
                    shown.append(about)
                else:
                    assert runner.do("answer", about).get("outcome") != "taken"
            assert hook.waits
            assert len(shown) == (is_shown or (is_folded and "its name" in how))
            if shown:
                assert spool.pipes.send(item.pipe, item.name, item.payload, ALLOW)
                assert hook.printed() == ALLOW + b"\n"
            else:
                spool.pipes.dismiss(item.pipe)
                assert hook.printed() == b""
    finally:
        hook.end()
