"""A tmux server with a session of ours, terminals attached to it, and a shell."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bellboard.storage.spool import Spool
from bellboard.system import tmux as tmux_module
from bellboard.system.tmux import Tmux
from rig import warm
from rig.home import Home
from rig.host.hosting import opened
from rig.tmux import Pane, Server
from rig.waiting import PATIENCE, eventually

PREFIX = "\x02"


class Room:
    """A tmux server with a session of ours, terminals attached to it, and a shell."""

    def __init__(self, home: Home, tmux: Server, outside: Server) -> None:
        self.home, self.tmux, self.outside = home, tmux, outside
        self.spool = Spool(home.bellboard)
        self.spool.prepare()
        self.socket = str(tmux.socket)
        self.env = home.env | {"TMUX": f"{self.socket},1,0"}
        self.running: list[warm.Program] = []

    def bellboard(self, *args: str, code: int = 0, **env: str) -> str:
        """Run a command in this tmux; return its output and its errors."""
        done = warm.run(["-m", "bellboard", *args], env=self.env | env)
        assert done.returncode == code, done.stderr or done.stdout
        return done.stdout + done.stderr

    def host(self) -> None:
        """Start a host without an editor."""
        self.running.append(warm.Program(["-m", "bellboard", "serve"], env=self.home.env))
        eventually(lambda: self.spool.hosts.alive(), "a host")

    def attach(self, session: str) -> Pane:
        """Attach a terminal to a session; return its tty, which is the client's name."""
        inner = [
            "env",
            "-u",
            "TMUX",
            "tmux",
            "-u",
            "-S",
            self.socket,
            "attach",
            "-t",
            f"={session}",
        ]
        pane = self.outside.open(inner, session=f"out{len(self.clients())}")
        eventually(lambda: pane.tty in self.clients(), "the client")
        return pane

    def clients(self) -> list[str]:
        return self.tmux.run("list-clients", "-F", "#{client_name}").split()

    def shown(self) -> dict[str, str]:
        """Return the pane that each client shows."""
        return {c.name: c.pane for c in Tmux(self.socket).clients() or ()}

    def agent(self, pane: Pane, session: str, event: str, **payload: Any) -> None:
        """Run the hook of an agent in that pane."""
        told = {"session_id": session, "hook_event_name": event, "cwd": f"/w/{session}", **payload}
        origin = {"pid": pane.pid, "tmux": self.socket, "pane": pane.id, "tty": pane.tty}
        self.spool.write({"t": time.time(), "hook": told, "origin": origin})

    def done(self, pane: Pane, session: str) -> None:
        """Complete a turn of an agent in that pane."""
        for event in ("SessionStart", "UserPromptSubmit", "Stop"):
            self.agent(pane, session, event, prompt="do it")

    def status(self, session: str) -> str:
        """Return a session's status from the host, or from a command if there is none."""
        listed = json.loads(self.bellboard("list", "--json"))["sessions"]
        return {p["session_id"]: str(p["status"]) for p in listed}.get(session, "")

    def views(self) -> dict[str, str]:
        """Return the pane that each client looks at; none if it looks away."""
        self.bellboard("status")
        with opened(self.home.bellboard) as shared:
            return {name: v.pane for name, v in shared.board.ledger.views.items()}


@pytest.fixture
def room(home: Home, tmux: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    monkeypatch.setattr(tmux_module, "PATIENCE", PATIENCE)
    outside = Server(home, "outside.sock")
    made = Room(home, tmux, outside)
    yield made
    outside.close()
    for process in made.running:
        process.terminate()
        process.wait()
