"""Run a walk through real CLIs in private terminals, and record everything."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import psutil

from live.account import Line
from live.claude import ClaudeStage
from live.play import slowed
from live.published import Published
from live.stage import CLOSING, How
from live.walks.actions import TERMINALS, Action, Walk
from live.walks.screens import Screens
from live.witness import Listing, Witness
from rig import home as homes
from rig.agents.agent import Agent, elicitation
from rig.agents.api import Api
from rig.machines.loopback import Watch
from rig.tmux import Pane
from rig.waiting import eventually, rest

THINKS: Final = 0.4  # seconds before each answer of the model
UP: Final = 20.0  # seconds for a CLI to start
FREEZE: Final = 2.5  # seconds
AFTER: Final = 1.5  # seconds for something frozen or restarted to catch up
CALM: Final = 3.0  # seconds at the end in which everything must be right
TYPED: Final = 0.15  # seconds between a text and Enter


@dataclass
class Walked:
    """The record of a walk, from which it is judged or written as a trace."""

    walk: Walk
    trace: list[Line] = field(default_factory=list)
    changes: list[Line] = field(default_factory=list)
    ended: dict[int, float] = field(default_factory=dict)
    excused: list[tuple[float, float]] = field(
        default_factory=list
    )  # nothing could show the right status then
    disagreements: list[str] = field(
        default_factory=list
    )  # between the CLI's two accounts of itself
    misplaced: list[str] = field(default_factory=list)
    trouble: str = ""


class Walker:
    """Carries out the actions of a walk."""

    def __init__(self, walk: Walk, stage: ClaudeStage) -> None:
        self.seen = Walked(walk)
        self._stage = stage
        self._witness = stage.witness
        self._panes: dict[int, Agent] = {}  # terminal → its CLI
        for event, command in walk.hooks:
            stage.user_hook(event, command)

    def walk(self) -> None:
        """Carry out the walk; skip actions that are impossible."""
        for action in self.seen.walk.actions:
            if CLOSING.is_set():
                return
            self._witness.note(f"does {action}")
            with contextlib.suppress(AssertionError, ProcessLookupError):  # it ended meanwhile
                getattr(self, f"_{action.name}")(action)
            rest(action.pause)
        rest(CALM)
        self._look(self.seen.walk.actions[-1])

    def _agent(self, action: Action) -> Agent | None:
        agent = self._panes.get(action.terminal)
        return agent if agent and agent.pid not in self._witness.ended else None

    def _start(self, action: Action) -> None:
        """Start a CLI in a terminal without one."""
        if self._agent(action):
            return
        args = action.text.split()
        servers = elicitation(self._stage.home)
        agent = self._stage.start(*servers, *args, shell=True, ready=False)
        self._panes[action.terminal] = agent
        shown = r"(?m)^\s*[❯>]\s|Resume|trust"
        with contextlib.suppress(AssertionError):
            agent.pane.shows(shown, within=UP)

    def _type(self, action: Action) -> None:
        if agent := self._agent(action):
            agent.pane.type(action.text)

    def _enter(self, action: Action, text: str) -> None:
        if agent := self._agent(action):
            agent.pane.type(text)
            rest(TYPED)
            agent.press("Enter")

    def _prompt(self, action: Action) -> None:
        self._enter(action, f"play:{action.text} please")

    def _queue(self, action: Action) -> None:
        self._enter(action, action.text)

    def _command(self, action: Action) -> None:
        self._enter(action, action.text)

    def _press(self, action: Action) -> None:
        if agent := self._agent(action):
            agent.press(*action.text.split())

    def _signal(self, action: Action) -> None:
        if action.text == "host":
            with self._excused():
                self._stage.published.restart()
            return
        agent = self._agent(action)
        if agent is None:
            return
        if action.text == "kill":
            os.kill(agent.pid, signal.SIGKILL)
            return
        pids = {
            "freeze cli": [agent.pid],
            "freeze host": [self._stage.published.pid],
            "freeze both": [agent.pid, self._stage.published.pid],
        }[action.text]
        with self._excused():
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                rest(FREEZE)
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def _excused(self) -> Iterator[None]:
        since = time.time()
        try:
            yield
        finally:
            self.seen.excused.append((since, time.time() + AFTER))

    def _move(self, action: Action) -> None:
        """Move the terminal elsewhere in tmux."""
        agent, other = self._agent(action), self._panes.get((action.terminal + 1) % TERMINALS)
        server = self._stage.server
        if agent is None or server is None or not isinstance(agent.pane, Pane):
            return
        mine = agent.pane.id
        if action.text == "resize-window":
            server.run("resize-window", "-t", mine, "-x", "100", "-y", "40")
        elif action.text == "break-pane":
            server.run("break-pane", "-d", "-s", mine)
        elif other and isinstance(other.pane, Pane):
            where = ("-v",) if action.text == "join-pane" else ()
            server.run(action.text, "-d", *where, "-s", mine, "-t", other.pane.id)

    def _look(self, action: Action) -> None:
        """Check that each listed session has the terminal of one of its processes."""
        now = time.time()
        try:
            eventually(self._places_agree, within=2)
        except AssertionError as error:
            if not any(a < now < b for a, b in self.seen.excused):
                self.seen.misplaced.append(str(error))
                self._witness.note(f"misplaced: {error}")

    def _places_agree(self) -> bool:
        where = {a.pid: a.pane for a in self._stage.clis if a.pid not in self._witness.ended}
        for row in self._stage.published.rows():
            pane = where.get(row.get("pid", 0))
            if pane is None:
                if psutil.pid_exists(row.get("pid", 0)):
                    continue  # a job of the CLI, without a terminal
                raise AssertionError(f"{row['session_id']} is in {row.get('pid')}, which is over")
            if isinstance(pane, Pane) and row.get("pane") != pane.id:
                raise AssertionError(f"{row['pid']} is shown in {row.get('pane')}, not {pane.id}")
        return True


def walked(walk: Walk) -> Walked:
    """Run a walk with its own CLIs and host."""
    home = homes.build()
    published = None
    try:
        with Api() as api, Watch() as watch, Witness(home) as witness:
            api.scenarios = slowed(api.scenarios, THINKS)
            published = Published(home)
            where = (How(walk.version), home, api, watch, published, witness, home.bellboard)
            stage = ClaudeStage(*where)
            walker = Walker(walk, stage)
            seen = walker.seen
            try:
                with Listing(home, walk.version, witness) as listing, Screens(stage) as screens:
                    walker.walk()
                seen.disagreements = [*listing.disagreements, *screens.disagreements]
            except Exception as error:  # any kind: what was recorded is judged anyway
                seen.trouble = f"{type(error).__name__}: {error}"
            seen.trace = witness.trace()  # before everything is closed
            seen.changes = list(published.changes)
            seen.ended = dict(witness.ended)
            seen.excused += witness.starved
            if refused := published.refused():
                seen.trouble = "\n".join([seen.trouble, *refused]).strip()
            stage.close()
        return seen
    finally:
        if published:
            published.close()
        homes.remove(home)
