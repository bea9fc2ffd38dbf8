"""The place of trials with machines: a laptop with hosts, and machines with a CLI each."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rig import home as homes
from rig.agents import agent
from rig.agents.agent import Agent
from rig.agents.api import Api
from rig.fetched import claude_code
from rig.home import Home
from rig.host.hosting import Change, RecordedHost, opened
from rig.host.ringing import Desktop
from rig.machines.apart import unable
from rig.machines.loopback import Watch
from rig.machines.ssh import PROGRAM, Container, Machine
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually

BELLS: Final = {"blocked": {"notify": False, "desktop": 0, "command": False}}
RINGS: Final = {"notices": {"desktop": "notify-send", "min_turn": 0, "min_interval": 0, **BELLS}}


@dataclass
class Station:
    """A machine, or a container, with a model of its own, and a CLI once it is started."""

    machine: Machine | Container
    api: Api
    watch: Watch
    desktop: Desktop
    clis: list[Agent] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def home(self) -> Home:
        return self.machine.home

    def start(self, session: str = "cli") -> Agent:
        """Start a CLI there, ready for a prompt, with the hooks of this checkout."""
        folder = self.home.project / session
        folder.mkdir(exist_ok=True)
        launch = agent.prepare(self.home, self.api, self.watch, version=claude_code.VERSION)
        launch = replace(launch, cwd=folder)
        if not self.clis:
            self.machine.bellboard("hooks", "install", "--yes", "--cli", claude_code.VERSION)
        self.clis.append(self.resume(launch, session))
        return self.clis[-1]

    def resume(self, launch: agent.Launch, session: str) -> Agent:
        """Run a CLI in a new pane."""
        tmux = self.machine.tmux
        pane = tmux.open(launch.command, session=session, cwd=launch.cwd, columns=110, lines=45)
        cli = Agent(launch, pane)
        cli.ready()
        return cli

    def id(self, cli: Agent) -> str:
        """Return what its session is called on other machines."""
        return f"{self.name}/claude/{cli.events('SessionStart')[-1]['session_id']}"

    @property
    def history(self) -> list[Change]:
        """Return the transitions that it decided."""
        return history(self.home)


class Laptop:
    """A machine that follows others, with as many hosts as are started."""

    def __init__(self) -> None:
        self.home = homes.build()
        self.desktop = Desktop(self.home)
        self.tmux = Server(self.home)
        self.hosts: list[RecordedHost] = []

    def follow(self, *stations: Station) -> None:
        for station in stations:
            machine = station.machine
            how = machine.ssh if isinstance(machine, Machine) else machine.enter
            self.bellboard("machine", "add", station.name, "--", *how)

    def host(self, name: str = "laptop", **config: Any) -> RecordedHost:
        """Start a host, and wait until it has published."""
        self.hosts.append(RecordedHost(self.home, name, measured=True, config={**RINGS, **config}))
        return self.hosts[-1].is_up()

    def bellboard(self, *args: str) -> str:
        """Run bellboard; return what it prints."""
        return self.asked(*args)[1]

    def asked(self, *args: str) -> tuple[int, str]:
        argv = [PROGRAM, *args]
        how: dict[str, Any] = {"env": self.home.env, "capture_output": True, "text": True}
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=PATIENCE, **how)
        return done.returncode, done.stdout + done.stderr

    def answer(self, sid: str, choice: str = "allow") -> dict[str, Any]:
        """Answer what a session asks now; return the outcome."""
        request = self.request(sid)
        said = self.bellboard("answer", sid, choice, "--digest", request["digest"], "--json")
        assert said.startswith("{"), said
        return dict(json.loads(said))

    def request(self, sid: str) -> dict[str, Any]:
        """Wait until what a session asks can be answered; return it."""

        def look() -> dict[str, Any]:
            said = self.bellboard("answer", sid, "--json")
            assert said.startswith("{"), said
            found: dict[str, Any] = json.loads(said).get("request", {})
            assert found.get("choices"), said
            return found

        return eventually(look, f"what {sid} asks")

    @property
    def history(self) -> list[Change]:
        return history(self.home)

    def close(self) -> None:
        for host in self.hosts:
            host.kill()
        self.tmux.close()
        homes.remove(self.home)


def history(home: Home) -> list[Change]:
    with opened(home.bellboard) as shared:
        return [(c.t, c.session_id, c.before, c.after, c.rule) for c in shared.store.history()]


@contextlib.contextmanager
def stations(*names: str, apart: bool | None = None) -> Iterator[list[Station]]:
    """Start machines, each with a model; end them and all that was started there."""
    apart = not unable() if apart is None else apart
    with contextlib.ExitStack() as ending:
        yield [_station(Machine(name, apart=apart), ending) for name in names]


@contextlib.contextmanager
def contained() -> Iterator[Station]:
    with contextlib.ExitStack() as ending:
        yield _station(Container(), ending)


def _station(machine: Machine | Container, ending: contextlib.ExitStack) -> Station:
    ending.callback(machine.close)
    inside = machine.place.inside
    api, watch = (ending.enter_context(inside(make)) for make in (Api, Watch))
    watch.old = True  # it is not asked where others connect: a machine apart has no way out
    return Station(machine, api, watch, Desktop(machine.home))


@contextlib.contextmanager
def laptops(count: int = 1) -> Iterator[list[Laptop]]:
    made: list[Laptop] = []
    try:
        made.extend(Laptop() for _ in range(count))
        yield made
    finally:
        for laptop in made:
            laptop.close()


def becomes(host: RecordedHost, sid: str, status: str | None, within: float = PATIENCE) -> float:
    """Wait until a host has published that status; return when it did."""

    def look() -> bool:
        assert host.process.poll() is None, "the host has ended"
        assert host.shown.get(sid) == status, f"{sid}: {host.shown}; {host.notes}"
        return True

    eventually(look, within=within)
    return float(host.messages[-1]["at"])
