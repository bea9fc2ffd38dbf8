"""Actions of a user on another machine's session: answer, label, look, go. A real sshd."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bellboard.storage.spool import Spool
from rig import ROOT
from rig.home import Home
from rig.machines.ssh import Machine, machines, set_followed
from rig.shell import bellboard, simulated
from rig.tmux import Server
from rig.waiting import eventually

PYTHON = {"PYTHONPATH": str(ROOT / "rplugin/python3")}


class Far:
    """A machine with a simulated agent that asks, and a host here that follows it."""

    def __init__(self, home: Home, machine: Machine) -> None:
        self.home, self.machine = home, machine
        machine.bellboard("list")  # makes its spool
        self.pane = simulated(machine.tmux, "work")
        Spool(home.bellboard).prepare()
        set_followed(home.bellboard, {"dev": machine.ssh})
        self.host = subprocess.Popen(
            [sys.executable, "-m", "bellboard", "serve"],
            env=home.env | PYTHON,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def bellboard(self, *args: str, code: int = 0) -> str:
        return bellboard(self.home, *args, code=code)

    def session(self, **wanted: Any) -> dict[str, Any]:
        """Wait until the session is shown here with these values; return it."""

        def look() -> Any:
            listed = json.loads(self.bellboard("list", "--json"))["sessions"]
            return next((p for p in listed if wanted.items() <= p.items()), None)

        return dict(eventually(look, f"a session with {wanted}"))

    def close(self) -> None:
        self.host.terminate()
        self.host.wait()


@pytest.fixture
def far(home: Home) -> Iterator[Far]:
    with machines("dev") as (machine,):
        made = Far(home, machine)
        yield made
        made.close()


def shown(server: Server) -> list[str]:
    """Return the panes that clients show."""
    return server.run("list-clients", "-F", "#{pane_id}").split()


@pytest.fixture
def sid(far: Far) -> str:
    """The id of its session here, which asks."""
    return str(far.session(machine="dev", status="blocked")["session_id"])


def test_it_is_answered_labelled_and_looked_at_over_the_link(far: Far, sid: str) -> None:
    """The machine decodes the request; a label comes back as that machine shows it."""
    request = json.loads(far.bellboard("answer", sid, "--json"))["request"]
    assert (request["session_id"], sid[:11]) == (sid, "dev/claude/")
    for words, code, said in (
        ("list --machine dev", 0, "dev:"),
        ("list --machine box", 1, "no sessions of machine box"),
        (f"label {sid} HEAVY", 0, ""),
        (f"park {sid}", 0, "parked"),
        (f"set {sid} idle", 1, "this has to be done on dev itself"),
        (f"answer {sid}", 0, "rm -rf build && make all"),
        (f"answer {sid} allow --digest {'0' * 16}", 1, "the request has changed since you read it"),
        (f"answer {sid} allow --digest {request['digest']}", 0, "dev:project: it went on after "),
    ):
        assert said in far.bellboard(*words.split(), code=code), words
    far.pane.shows("tests pass")
    shown = far.session(session_id=sid, status="completed", label="HEAVY")
    assert "parked" in shown["markers"]
    turn = json.loads(far.bellboard("show", sid, "--json"))["turn"]
    assert (turn["session_id"], turn["note"][:17]) == (sid, "only what its hoo")
    assert turn["text"]


def test_a_jump_goes_to_the_terminal_that_shows_the_machine_or_opens_one(
    far: Far, sid: str, tmux: Server
) -> None:
    """The one it opens shows exactly that pane; the next jump finds it."""
    far.machine.tmux.open(["sleep", "600"], session="work")
    far.machine.tmux.run("select-window", "-t", "work:1")
    goto = f'"{sys.executable}" -m bellboard goto {sid}'
    env = PYTHON | {"TERM": "xterm-256color"}
    opened = tmux.open(["sh", "-c", f"{goto}; sleep 600"], env=env, session="opened")
    opened.shows("rm -rf build")
    assert shown(far.machine.tmux) == [far.pane.id]
    far.machine.tmux.run("select-window", "-t", "work:1")
    user = tmux.open(["sh"], env=env, session="user")
    tmux.attach("user")
    user.type(f"{goto}; echo exit code $?\n")
    user.shows("exit code 0")
    eventually(lambda: shown(tmux) == [opened.id], "the terminal that was opened before")
    assert shown(far.machine.tmux) == [far.pane.id]


def test_while_the_link_is_down_errands_fail_at_once(far: Far, sid: str) -> None:
    """No errand waits for a reply that cannot come."""
    far.machine.crash()
    eventually(lambda: "stale" in far.session(session_id=sid)["markers"], "a stale session")
    for command in (("label", sid, "HEAVY"), ("goto", sid), ("answer", sid)):
        assert "the link is down: " in far.bellboard(*command, code=1)
    assert "cannot be reached" in far.bellboard("list")
    far.machine.boot()
