"""The place of proofs of answers: a home, a model, tmux, and CLIs with our hooks."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bellboard.core.request import Answer
from bellboard.storage.spool import Spool
from rig import home as homes
from rig import warm
from rig.agents import agent
from rig.agents.agent import Agent, Launch
from rig.agents.api import Api, Request
from rig.editor import Editor
from rig.fetched import claude_code
from rig.home import Home
from rig.machines.loopback import Watch
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually

PROGRAM: Final = (sys.executable, "-m", "bellboard")
QUIET: Final = {"float": {"enabled": False}}
CAN: Final = "return require('bellboard.answer.keys').can()"
OPEN: Final = """
local open = require('bellboard.answer.keys').now()
return open and open.request.parts and open.request.parts[1].text or ''
"""


@dataclass
class Place:
    """Everything that a proof runs in; `start` starts a CLI in it."""

    home: Home
    api: Api
    watch: Watch
    tmux: Server
    spool: Spool
    version: str = claude_code.VERSION
    hooked: bool = True  # with the hooks of this checkout
    started: list[Agent] = field(default_factory=list)

    def start(self, name: str, args: Sequence[str] = (), **how: Any) -> Agent:
        """Start a CLI in a folder of that name, ready for a prompt."""
        launch = self.prepare(name, args=args, **how)
        self.started.append(Agent.start(launch, self.tmux, name, self.watch))
        return self.started[-1]

    def prepare(self, name: str, **how: Any) -> Launch:
        """Make a folder of that name, with hooks; return how to start a CLI there."""
        folder = self.home.project / name
        folder.mkdir(exist_ok=True)
        given: dict[str, Any] = {"version": self.version, "cwd": folder, **how}
        launch = agent.prepare(self.home, self.api, self.watch, **given)
        if self.hooked and not self.started:
            self.run("hooks", "install", "--yes", "--cli", self.version)
        return launch

    def form(self) -> tuple[str, ...]:
        """Return the arguments of a CLI with a server that asks for a form."""
        return agent.elicitation(self.home)

    def run(self, *args: str) -> str:
        """Run `bellboard`; return what it prints."""
        done = warm.run(["-m", "bellboard", *args], env=self.home.env)
        return done.stdout or done.stderr

    def session(self, cli: Agent) -> str:
        return str(cli.events("SessionStart")[-1]["session_id"])

    def asked(self, cli: Agent, way: str = "") -> dict[str, Any]:
        """Wait until its request can be answered, best in that way; return it.

        A plan and a question are asked first by the hook before the tool, which waits for nothing.
        """
        sid = self.session(cli)

        def look() -> dict[str, Any]:
            said = self.run("answer", sid, "--json")
            assert said.startswith("{"), f"{said}\n{cli.text()}"
            found: dict[str, Any] = json.loads(said).get("request", {})
            assert found.get("choices"), f"{said}\n{cli.text()}"
            assert way in ("", found["way"]), f"{said}\n{cli.text()}"
            return found

        try:
            return eventually(look, f"what {sid} asks")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.run('explain', sid)}") from None

    def give(self, request: dict[str, Any], answer: Answer) -> dict[str, Any]:
        """Answer a request with `bellboard answer`; return the outcome."""
        more = ["--message", answer.message] if answer.message else []
        more += ["--command", answer.input] if answer.input is not None else []
        for question, said in answer.answers.items():
            for each in [said] if isinstance(said, str) else said:
                more += ["--answer", f"{question}={each}"]
        for name, value in answer.content.items():
            more += ["--field", f"{name}={value}"]
        about = [request["session_id"], answer.choice, "--digest", request["digest"]]
        said = self.run("answer", *about, *more, "--json")
        if not said.startswith("{"):
            return {"ok": False, "why": said.strip()}
        reply: dict[str, Any] = json.loads(said)
        return reply

    def next(self, scenario: str, step: int = 1) -> Request:
        """Wait for the model's request that follows a tool; return it."""
        return eventually(
            lambda: next((r for r in self.api.played(scenario) if r.step == step), None),
            f"step {step} of {scenario}",
        )

    def left(self) -> list[str]:
        """Return the pipes that a hook has taken."""
        return [name for name, is_taken in self.spool.pipes.found().items() if is_taken]


@contextlib.contextmanager
def place(version: str = claude_code.VERSION) -> Iterator[Place]:
    """Build it; end everything that was started in it."""
    home = homes.build()
    tmux = Server(home)
    try:
        with Api() as api, Watch() as watch:
            watch.old = True
            spool = Spool(home.bellboard)
            spool.prepare()
            yield Place(home, api, watch, tmux, spool, version)
    finally:
        tmux.close()
        homes.remove(home)


@contextlib.contextmanager
def serving(made: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Run a host with answers on."""
    host = subprocess.Popen([*PROGRAM, "serve"], env=made.home.env, stdout=subprocess.DEVNULL)
    try:
        answers_on(made)
        yield host
    finally:
        host.terminate()
        host.wait(PATIENCE)


def answers_on(made: Place) -> None:
    made.run("answers", "on")
    eventually(made.spool.pipes.found, "a pipe")


def look() -> dict[str, Any]:
    """Return how an editor of a proof is started."""
    more: dict[str, Any] = {"lua": "", "peers": (), "args": (), "env": {}, "ui": True}
    return {"config": QUIET, "columns": 100, "lines": 40, **more}


def shown(editor: Editor, before: str) -> str:
    command = str(editor.lua(OPEN))
    return command if command != before else ""
