"""Whole hosts in a fleet: what happens on one machine is on the board of another."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bellboard.storage.machines import Mailbox
from bellboard.storage.spool import Spool
from rig import home as homes
from rig import warm
from rig.home import Home
from rig.host.following import Reader
from rig.host.hosting import RecordedHost, put
from rig.host.ringing import Desktop
from rig.machines import nats
from rig.shell import Shell, simulated
from rig.tmux import Server
from rig.waiting import eventually

pytestmark = [
    pytest.mark.skipif(not nats.program(), reason="nats-server is not installed"),
]


class JoinedHome:
    """A home of its own that has joined the fleet."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.home = name, homes.build()
        self.hosts: list[RecordedHost] = []
        self.bellboard("fleet", "join", url, "--team", "t", "--machine", name)

    def bellboard(self, *words: str, code: int = 0) -> str:
        done = warm.run(["-m", "bellboard", *words], env=self.home.env, timeout=60)
        assert code == done.returncode, done.stdout + done.stderr
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start bellboard beside the test."""
        argv = [sys.executable, "-m", "bellboard", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, env=self.home.env, stdout=pipe, stderr=pipe, text=True)

    def host(self, **how: object) -> RecordedHost:
        self.hosts.append(RecordedHost(self.home, f"host-{len(self.hosts)}", **how))
        return self.hosts[-1].is_up()

    def event(self, event: str, session: str = "s", **fields: object) -> None:
        put(Spool(self.home.bellboard), event, session, **fields)

    def asks(self, session: str = "s") -> None:
        """Have a session ask for permission."""
        for event in ("SessionStart", "UserPromptSubmit"):
            self.event(event, session)
        self.event("PermissionRequest", session, tool_name="Bash", tool_input={"command": "make"})


Join = Callable[[str], JoinedHome]


@pytest.fixture
def machine(there: nats.Server) -> Iterator[Join]:
    """machine(name) → one that has joined; no host runs there yet."""
    made: list[JoinedHome] = []

    def one(name: str) -> JoinedHome:
        made.append(JoinedHome(name, there.url))
        return made[-1]

    yield one
    for each in made:
        for host in each.hosts:
            host.kill()
        homes.remove(each.home)


def test_a_question_there_is_shown_here_and_answered_from_here(
    machine: Join,
) -> None:
    """Blocked there, blocked here; what is asked of it from here happens there; it ends."""
    dev, laptop = machine("dev"), machine("laptop")
    there, here = dev.host(), laptop.host()
    dev.event("SessionStart")
    here.shows({"dev/claude/s": "idle"})
    dev.asks()
    here.shows({"dev/claude/s": "blocked"})
    asked = Mailbox(laptop.home.bellboard, "dev")
    name = asked.ask({"do": "label", "session_id": "s", "label": "the parser"})
    assert {"ok": True} == eventually(lambda: asked.take_reply(name))
    eventually(lambda: "the parser" == here.sessions["dev/claude/s"].get("label"))
    assert {"s": "blocked"} == there.shown
    dev.event("SessionEnd")
    here.shows({})


def test_another_host_takes_over_and_nothing_is_announced_twice(
    machine: Join,
) -> None:
    """The publisher or the reader may be killed."""
    dev, laptop = machine("dev"), machine("laptop")
    first, here = dev.host(), laptop.host()
    dev.event("SessionStart")
    here.shows({"dev/claude/s": "idle"})
    second = dev.host()
    first.kill()
    dev.asks()
    here.shows({"dev/claude/s": "blocked"})
    assert {"s": "blocked"} == second.shown
    eventually(lambda: ("dev/claude/s", "blocked") in here.live)
    here.kill()
    dev.event("PostToolUse", tool_name="Bash")
    again = laptop.host()
    again.shows({"dev/claude/s": "working"})
    dev.event("Stop")
    again.shows({"dev/claude/s": "completed"})
    eventually(lambda: ("dev/claude/s", "completed") in again.live)
    told = [status for host in (here, again) for sid, status in host.live]
    assert 1 == told.count("blocked")
    assert 1 == told.count("completed")


def test_of_two_answers_at_once_one_counts(machine: Join) -> None:
    """The other machine of the fleet is told that its answer came too late."""
    dev, laptops = machine("dev"), [machine("one"), machine("two")]
    tmux = Server(dev.home)
    try:
        pane = simulated(tmux)
        dev.host()
        hosts = [laptop.host() for laptop in laptops]
        for host in hosts:
            eventually(lambda host=host: "blocked" in host.shown.values())
        sid = next(iter(hosts[0].shown))
        said = json.loads(laptops[0].bellboard("answer", sid, "--json"))
        words = ("answer", sid, "allow", "--digest", said["request"]["digest"], "--json")
        answers = [laptop.start(*words) for laptop in laptops]
        told = [answer.communicate(timeout=60)[0] for answer in answers]
        assert [0, 1] == sorted(answer.returncode for answer in answers), told
        pane.shows("tests pass")
    finally:
        tmux.close()


def test_of_a_fleet_one_machine_rings(machine: Join) -> None:
    """One of two machines with a desktop rings; the machine itself once both are gone."""
    ladder = {"notify": False, "desktop": 0, "command": 0}
    dev, laptops = machine("dev"), [machine("one"), machine("two")]
    rings = dev.home.file("ring", '#!/bin/sh\necho "$1" >>"$0.rung"\n')
    rings.chmod(0o755)
    often = {"blocked": ladder, "min_interval": 0}
    there = dev.host(config={"notices": {**often, "command": [str(rings)]}})
    desktops = [Desktop(laptop.home) for laptop in laptops]
    hosts = [
        laptop.host(config={"notices": {**often, "desktop": "notify-send"}}) for laptop in laptops
    ]

    def rung() -> tuple[int, int]:
        own = Path(f"{rings}.rung")
        count = len(own.read_text().splitlines()) if own.exists() else 0
        return sum(len(d.titles) for d in desktops), count

    dev.event("SessionStart", "a")
    for host in hosts:
        host.shows({"dev/claude/a": "idle"})
    eventually(lambda: "left to" in there.health["notices"])
    eventually(lambda: all("fleet" not in host.notes for host in hosts))
    for n, session in enumerate(("a", "b"), 1):
        dev.asks(session)
        eventually(lambda n=n: rung() == (n, 0), "one desktop")
        for host in hosts:
            eventually(lambda host=host, s=session: host.shown[f"dev/claude/{s}"] == "blocked")
    for host in hosts:
        host.kill(signal.SIGTERM)
    eventually(lambda: "left to" not in there.health["notices"])
    eventually(lambda: rung() == (2, 2), "what still waits")
    dev.asks("c")
    eventually(lambda: rung() == (2, 3), "its own command")


def test_who_follows_over_a_link_and_who_does_in_the_fleet_do_not_both_ring(
    machine: Join,
) -> None:
    """The fleet grants a notification once, over a link or not."""
    dev, laptop = machine("dev"), machine("laptop")
    dev.host()
    here, link = laptop.host(), Reader(dev.home)
    mailbox = Mailbox(laptop.home.bellboard, "dev")

    def by_link(session: str, token: str) -> bool:
        reply = link.ask("claim", session_id=session, token=token, **about)
        return bool(reply.ok and reply.more["granted"])

    def by_fleet(session: str) -> bool:
        def granted() -> list[bool]:
            name = mailbox.ask({"do": "claim", "session_id": session, **about})
            reply = eventually(lambda: mailbox.take_reply(name))
            assert reply["ok"], reply  # not until it knows whether others have a screen
            return [bool(reply["granted"])]

        return eventually(granted)[0]

    about = {"status": "blocked", "effect": "notice desktop"}
    try:
        for session in ("a", "b"):
            dev.asks(session)
        here.shows({"dev/claude/a": "blocked", "dev/claude/b": "blocked"})
        assert by_fleet("a")
        assert not by_link("a", "1")
        assert by_link("b", "2")
        assert not by_fleet("b")
        assert by_link("b", "2"), "the first reply may have been lost"
    finally:
        link.process.kill()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_what_setup_prints_is_all_that_a_team_needs(home: Home, tmp_path: Path, host: str) -> None:
    """Each step is done as it is printed, for the name or the address of a host."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    port, folder = free_port(), tmp_path / "team"

    def bellboard(*words: str, code: int = 0) -> tuple[str, str]:
        done = warm.run(["-m", "bellboard", "fleet", *words], env=home.env, timeout=60)
        assert code == done.returncode, done.stdout + done.stderr
        return done.stdout, done.stderr

    members = ("--member", "dev=publish", "--member", "bob=read", "--team", "core")
    conf, said = bellboard("setup", str(folder), *members, "--host", host, "--port", str(port))
    steps = [line.partition(". ")[2] for line in said.splitlines()]
    made = next(step for step in steps if "openssl" in step).partition("openssl ")[2]
    subprocess.run([openssl, *shlex.split(made)], check=True, capture_output=True)
    (folder / "server.conf").write_text(conf)
    argv = [nats.program(), "-c", str(folder / "server.conf")]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as server:
        try:
            word = next(step for step in steps if "--create" in step).split()
            eventually(lambda: "exist" in bellboard(*word[2:])[0])
            join = steps[-1].replace("MEMBER", str(folder / "bob")).split()
            ca = str(folder / "server.pem")
            out, _ = bellboard(*[ca if w == "server.pem" else w for w in join[4:]])
            assert out.startswith("joined core as bob; this machine is ")
            assert bellboard("status")[0].count("no machine publishes yet") == 1
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "name each member"),
        ("--member alice=read --only alcie=dev", "--only alcie=dev limits nobody"),
        ("--member alice=answer", "whoever may answer has to read as well: alice=read,answer"),
        ("--member alice=read:dev", "expected MEMBER=ROLES, with roles of publish[:MACHINE], read"),
        ("--member dev=publish:a,publish:b", "dev=publish:a,publish:b: expected MEMBER=ROLES"),
        ("--member a=read --member A=read,answer", "two members are called A"),
        ("--member a=publish:dev --member b=publish:dev", "two members publish the machine dev"),
    ],
)
def test_a_fleet_that_is_not_what_it_seems_leaves_no_folder(
    shell: Shell, words: str, why: str
) -> None:
    """Who answers without reading sees all the same; a role with a machine limited nobody."""
    folder = shell.home.root / "credentials"
    assert why in shell.fails("fleet", "setup", str(folder), "--team", "core", *words.split())
    assert not folder.exists()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@pytest.mark.parametrize("runs", [True, False], ids=["at once", "from the next host on"])
def test_who_leaves_sees_nothing_of_the_others(machine: Join, runs: bool) -> None:
    """The others are gone; its own board stays as it is."""
    dev, laptop = machine("dev"), machine("laptop")
    dev.host()
    here = laptop.host()
    dev.event("SessionStart")
    laptop.event("SessionStart", "own")
    here.shows({"dev/claude/s": "idle", "own": "idle"})
    status = json.loads(laptop.bellboard("fleet", "status", "--json"))
    assert status["v"] == 1
    assert {"dev", "laptop"} == set(status["machines"])
    assert [] == status["notes"]
    if not runs:
        here.kill()
    laptop.bellboard("fleet", "leave")
    (here if runs else laptop.host()).shows({"own": "idle"})
    laptop.bellboard("fleet", "leave", code=1)


LOADS = """
import asyncio, sys
from pathlib import Path
from bellboard.hosting.host import Host

def push(message):
    if {p["session_id"] for p in message["sessions"]} >= set(sys.argv[2:]):
        host.stop()

host = Host(Path(sys.argv[1]), push)
asyncio.run(host.run())
loaded = [m for m in sys.modules if m.split(".")[0] in ("nats", "nkeys")]
print(loaded + [m for m in sys.modules if m.startswith("bellboard.fleet")])
"""


@pytest.mark.parametrize("follows", [False, True], ids=["in no fleet", "in a fleet"])
def test_a_host_loads_nothing_of_a_fleet(machine: Join, home: Home, follows: bool) -> None:
    """A program of its own follows the other machine, whose sessions the host shows."""
    if follows:
        dev, home = machine("dev"), machine("laptop").home
        dev.host()
        dev.event("SessionStart")
    words = [sys.executable, "-c", LOADS, str(home.bellboard), *["dev/claude/s"][: int(follows)]]
    done = subprocess.run(
        words, env=home.env, capture_output=True, text=True, check=True, timeout=60
    )
    assert "[]\n" == done.stdout


def test_a_fleet_program_that_is_killed_loses_nothing(machine: Join) -> None:
    """Nothing is announced twice, on either side, and no row is marked meanwhile."""
    dev, laptop = machine("dev"), machine("laptop")
    there, here = dev.host(), laptop.host()
    dev.event("SessionStart")
    here.shows({"dev/claude/s": "idle"})
    steps = [("UserPromptSubmit", "working"), ("Stop", "completed")] * 3
    for n, (event, status) in enumerate(steps):
        for host in ((there,), (here,), (there, here))[n // 2]:
            program_of(host).kill()
        dev.event(event)
        here.shows({"dev/claude/s": status})
    assert [("dev/claude/s", "completed")] * 3 == [x for x in here.live if x[1] == "completed"]
    assert not any(p.get("stale") for message in here.messages for p in message["sessions"])
    eventually(lambda: not any("fleet" in about for about in here.notes))


def test_no_second_program_takes_part(machine: Join) -> None:
    """Somebody may start one by hand: a member's request is carried out once."""
    dev = machine("dev")
    host = dev.host()
    program_of(host)
    said = dev.bellboard("fleet", "run", code=1)
    assert f"process {host.pid} takes part already" in said


def program_of(host: RecordedHost) -> psutil.Process:
    """Return the process that takes part in the fleet for a host."""

    def look() -> psutil.Process:
        try:
            children = psutil.Process(host.pid).children(recursive=True)
            named = [p for p in children if p.cmdline()[-2:] == ["fleet", "run"]]
            return next(p for p in named if p.name() != "sh")
        except (psutil.Error, StopIteration):
            raise LookupError from None  # not yet, or no longer

    return eventually(look)
