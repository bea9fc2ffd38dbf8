"""The machine against a deliberately naive model: what it should show if nothing is odd.

The model gets what happens in the CLI, seconds apart and in order, and knows no times, guards or
witnesses.  Two sessions alternate, each in up to two processes.  None may affect another, and a
session shows its most urgent process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.session import is_listed, question_of, status_of
from rig.examples import examples
from rig.host.strategies import SESSIONS, T0

STEP = 4.0  # seconds: longer than any hold or tolerance
TOOLS = ("Bash", "Edit", "AskUserQuestion")
MOST_URGENT = ("blocked", "working", "error", "completed", "background", "idle")


class Who(NamedTuple):
    """A process of a session."""

    sid: str
    pid: int

    @property
    def tty(self) -> str:
        return f"/dev/pts/{self.pid}"


PROCESSES = [Who(sid, 100 + 10 * n + p) for n, sid in enumerate(SESSIONS[:2]) for p in (0, 1)]
processes = st.sampled_from(PROCESSES)
agents = st.sampled_from(["x1", "x2"])


@dataclass
class Naive:
    """The simplest model of a process."""

    turn: str = "absent"
    prompt_id: str = ""
    asking: set[tuple[str, str]] = field(default_factory=set)  # who, for which tool
    agents: set[str] = field(default_factory=set)
    shell: bool = False
    queued: int = 0  # prompts that were typed ahead
    waiting_for_agents: bool = False
    broken_off: bool = False  # what it waits for ends a turn that was interrupted
    said: str = "absent"  # its status after the previous step
    since: int = 0

    @property
    def status(self) -> str:
        return "blocked" if self.asking else self.turn

    def main_asks_no_more(self) -> None:
        self.asking = {(who, tool) for who, tool in self.asking if who}


class Life(RuleBasedStateMachine):
    """Random steps; after each, the board must show what the model says."""

    def __init__(self) -> None:
        super().__init__()
        self.board = Board()
        self.t = T0
        self.model = {who: Naive() for who in PROCESSES}
        self.n = 0

    def fold(self, **line: Any) -> None:
        self.t += STEP
        for told in self.board.fold(from_line({"t": self.t, **line})):
            assert told.event.kind != "junk", told.event.why
        self.board.advance(self.t + STEP / 2)

    def hook(self, who: Who, name: str, **fields: Any) -> None:
        self.n += 1  # so that no event is a duplicate
        told = {"session_id": who.sid, "hook_event_name": name, "n": self.n, **fields}
        self.fold(hook=told, origin={"pid": who.pid, "tty": who.tty})

    def registry(self, who: Who, status: str, **more: Any) -> None:
        since = int((self.t + STEP) * 1000)
        record = {"sessionId": who.sid, "status": status, "statusUpdatedAt": since, **more}
        self.fold(registry={"pid": who.pid, "record": record})

    def of_session(self, sid: str) -> dict[Who, Naive]:
        """Return the running processes of a session."""
        return {w: m for w, m in self.model.items() if w.sid == sid and m.turn != "absent"}

    @initialize(some=st.sets(processes))
    def are_at_work(self, some: set[Who]) -> None:
        for who in sorted(some):
            self.is_prompted(who)

    @rule(who=processes)
    def starts(self, who: Who) -> None:
        others = [m for w, m in self.of_session(who.sid).items() if w != who]
        listed = self.model[who].turn != "absent"
        self.hook(who, "SessionStart", source="resume" if others and not listed else "startup")
        if listed:
            return
        self.model[who] = Naive("idle")
        self.sees(who)

    def sees(self, who: Who) -> None:
        """Opening it or typing into it marks the ends of its other processes as seen."""
        for w, m in self.of_session(who.sid).items():
            if w != who and m.turn in ("completed", "error"):
                m.turn = "idle"

    @rule(who=processes)
    def is_prompted(self, who: Who) -> None:
        if self.model[who].turn == "absent":
            self.starts(who)
        m = self.model[who]
        m.prompt_id = f"turn {self.n}"
        self.hook(who, "UserPromptSubmit", prompt=f"do {self.n}", prompt_id=m.prompt_id)
        m.turn, m.queued = "working", 0
        m.waiting_for_agents = m.broken_off = False
        m.main_asks_no_more()
        self.sees(who)

    @rule(who=processes)
    def is_typed_ahead(self, who: Who) -> None:
        """A queued prompt belongs to the running turn, and ends nothing."""
        m = self.model[who]
        if m.turn == "working" and m.prompt_id and not m.waiting_for_agents:
            self.hook(who, "UserPromptSubmit", prompt=f"and {self.n}", prompt_id=m.prompt_id)
            m.queued += 1
            self.sees(who)

    @rule(who=processes, tool=st.sampled_from(TOOLS[:2]))
    def runs_a_tool(self, who: Who, tool: str) -> None:
        m = self.model[who]
        if m.turn == "absent":
            return
        self.hook(who, "PreToolUse", tool_name=tool)
        self.hook(who, "PostToolUse", tool_name=tool)
        m.turn = "working"
        if m.broken_off:  # that was not its end
            m.waiting_for_agents = m.broken_off = False
        m.asking.discard(("", tool))

    @rule(who=processes, tool=st.sampled_from(TOOLS))
    def asks(self, who: Who, tool: str) -> None:
        m = self.model[who]
        if m.turn == "absent":
            return
        self.hook(who, "PermissionRequest", tool_name=tool, tool_input={"command": str(self.n)})
        m.turn = "working"
        m.asking.add(("", tool))

    @rule(who=processes, tool=st.sampled_from(TOOLS), ok=st.booleans())
    def is_answered(self, who: Who, tool: str, ok: bool) -> None:
        m = self.model[who]
        if ("", tool) not in m.asking:
            return
        self.hook(who, "PostToolUse" if ok else "PostToolUseFailure", tool_name=tool)
        m.asking.discard(("", tool))

    @rule(who=processes, agent=agents)
    def starts_an_agent(self, who: Who, agent: str) -> None:
        if self.model[who].turn != "working":
            return
        self.hook(who, "SubagentStart", agent_id=agent, agent_type="Explore")
        self.model[who].agents.add(agent)

    @rule(who=processes, agent=agents)
    def its_agent_asks(self, who: Who, agent: str) -> None:
        m = self.model[who]
        if agent not in m.agents:
            return
        self.hook(who, "PermissionRequest", tool_name="Bash", agent_id=agent)
        m.asking.add((agent, "Bash"))

    @rule(who=processes, agent=agents)
    def its_agent_goes_on(self, who: Who, agent: str) -> None:
        m = self.model[who]
        if m.turn == "absent":
            return
        self.hook(who, "PostToolUse", tool_name="Bash", agent_id=agent)
        m.asking.discard((agent, "Bash"))

    @rule(who=processes, agent=agents)
    def its_agent_ends(self, who: Who, agent: str) -> None:
        m = self.model[who]
        if agent not in m.agents:
            return
        self.hook(who, "SubagentStop", agent_id=agent, agent_type="Explore")
        self.board.advance(self.t + STEP)
        m.agents.discard(agent)
        m.asking = {(asker, tool) for asker, tool in m.asking if asker != agent}
        if m.waiting_for_agents and not m.agents:
            over = "idle" if m.broken_off else "completed"
            m.turn, m.waiting_for_agents = ("background" if m.shell else over), False
            m.broken_off = False

    @rule(who=processes, shell=st.booleans())
    def stops(self, who: Who, shell: bool) -> None:
        m = self.model[who]
        if m.turn != "working":
            return
        tasks = [{"id": x, "type": "subagent", "status": "running"} for x in sorted(m.agents)]
        if shell:
            tasks.append({"id": "b1", "type": "shell", "status": "running"})
        self.hook(who, "Stop", background_tasks=tasks)
        m.main_asks_no_more()
        m.queued = False
        m.shell = shell
        if m.agents:
            m.waiting_for_agents = True
        else:
            m.turn = "background" if shell else "completed"

    @rule(who=processes)
    def fails(self, who: Who) -> None:
        m = self.model[who]
        if m.turn != "working":
            return
        self.hook(who, "StopFailure", error="rate_limit")
        m.main_asks_no_more()
        m.turn, m.queued = "error", 0
        m.waiting_for_agents = m.broken_off = False

    @rule(who=processes)
    def is_interrupted(self, who: Who) -> None:
        """Esc, which only the registry reports."""
        m = self.model[who]
        if m.turn != "working" or m.waiting_for_agents:
            return
        self.registry(who, "idle")
        self.model[who] = Naive("idle")
        self.registry(who, "", nothing="more")

    @rule(who=processes)
    def is_interrupted_by_its_transcript(self, who: Who) -> None:
        """Esc in the transcript of one process: agents and shells go on, a queued prompt starts."""
        m = self.model[who]
        if m.turn != "working" or m.waiting_for_agents or not m.prompt_id:
            return
        said = {"type": "user", "message": {"content": "[Request interrupted by user]"}}
        entry = {**said, "promptId": m.prompt_id}
        self.fold(transcript={"session_id": who.sid, "entry": entry})
        m.main_asks_no_more()
        if m.queued:
            m.queued -= 1
        elif m.agents:
            m.waiting_for_agents = m.broken_off = True
        else:
            m.turn = "background" if m.shell else "idle"

    @rule(sid=st.sampled_from(SESSIONS))
    def is_jumped_to(self, sid: str) -> None:
        self.fold(goto={"session_id": sid})
        if (shown := self.shown(sid)) is not None:
            m = self.model[shown]
            if m.status in ("completed", "error"):
                m.turn = "idle"

    @rule(who=processes)
    def ends(self, who: Who) -> None:
        self.hook(who, "SessionEnd", reason="other")
        self.is_gone(who)

    @rule(who=processes)
    def dies(self, who: Who) -> None:
        if self.model[who].turn == "absent":
            return
        self.fold(process={"pid": who.pid, "alive": False})
        self.is_gone(who)

    def is_gone(self, who: Who) -> None:
        """The end of the process stays unseen if another process of the session is at rest."""
        m, self.model[who] = self.model[who], Naive()
        for other in self.of_session(who.sid).values():
            if other.turn == "idle" and m.turn in ("completed", "error"):
                other.turn = m.turn
                other.said, other.since = other.status, m.since

    @rule()
    def another_host_takes_over(self) -> None:
        for sid in self.board.sessions:
            self.board.dirty.add(sid)
        other = Board()
        other.load((k, body) for k, body in self.board.take_dirty() if body is not None)
        self.board = other

    def shown(self, sid: str) -> Who | None:
        """Return the shown process of a session: the most urgent, then the last changed."""
        there = self.of_session(sid)
        return min(
            there,
            key=lambda w: (MOST_URGENT.index(there[w].status), -there[w].since),
            default=None,
        )

    @invariant()
    def the_board_shows_what_the_model_says(self) -> None:
        for m in self.model.values():
            if m.status != m.said:
                m.said, m.since = m.status, self.n
        for sid in SESSIONS:
            s, who = self.board.sessions.get(sid), self.shown(sid)
            if who is None:
                assert s is None or not is_listed(s)
                continue
            m = self.model[who]
            assert s is not None
            assert status_of(s) == m.status
            there = self.of_session(sid)
            assert there[Who(sid, s.pid)].status == m.status
            assert s.tty == Who(sid, s.pid).tty, "the terminal is that of the shown process"
            question = question_of(s)
            if question is not None:
                assert (question.agent, question.tool) in there[Who(sid, s.pid)].asking


TestLife = Life.TestCase
TestLife.pytestmark = [pytest.mark.core]
TestLife.settings = settings(examples(200), stateful_step_count=50)
