"""The machine against a deliberately naive one: what it should show when nothing is odd.

The model is told what happens in the CLI, seconds apart and in order, and knows no times, no
guards and no witnesses.  Three sessions take turns, so that none may touch another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bellboard.core.board import Board
from bellboard.core.evidence import from_line
from bellboard.core.session import is_listed, question_of, status_of
from strategies import SESSIONS, T0

STEP = 4.0  # seconds: nothing is held back, forgiven or waited for that long
PIDS = {sid: 100 + n for n, sid in enumerate(SESSIONS)}
TOOLS = ("Bash", "Edit", "AskUserQuestion")


@dataclass
class Naive:
    """A session as one would draw it on a napkin."""

    turn: str = "absent"
    asking: set[tuple[str, str]] = field(default_factory=set)  # who, for which tool
    agents: set[str] = field(default_factory=set)
    shell: bool = False
    waiting_for_agents: bool = False

    @property
    def status(self) -> str:
        return "blocked" if self.asking else self.turn

    def main_asks_no_more(self) -> None:
        self.asking = {(who, tool) for who, tool in self.asking if who}


class Life(RuleBasedStateMachine):
    """Sessions live; after each step the board shows what the model says."""

    def __init__(self) -> None:
        super().__init__()
        self.board = Board()
        self.t = T0
        self.model = {sid: Naive() for sid in SESSIONS}
        self.n = 0

    def tell(self, **line: Any) -> None:
        self.t += STEP
        for told in self.board.fold(from_line({"t": self.t, **line})):
            assert told.event.kind != "junk", told.event.why
        self.board.advance(self.t + STEP / 2)

    def hook(self, sid: str, name: str, **fields: Any) -> None:
        self.n += 1  # nothing is told twice
        told = {"session_id": sid, "hook_event_name": name, "n": self.n, **fields}
        self.tell(hook=told, origin={"pid": PIDS[sid]})

    def registry(self, sid: str, status: str, **more: Any) -> None:
        since = int((self.t + STEP) * 1000)
        record = {"sessionId": sid, "status": status, "statusUpdatedAt": since, **more}
        self.tell(registry={"pid": PIDS[sid], "record": record})

    def listed(self, sid: str) -> bool:
        return self.model[sid].turn != "absent"

    @rule(sid=st.sampled_from(SESSIONS))
    def starts(self, sid: str) -> None:
        self.hook(sid, "SessionStart", source="startup")
        if not self.listed(sid):
            self.model[sid] = Naive("idle")

    @rule(sid=st.sampled_from(SESSIONS))
    def is_prompted(self, sid: str) -> None:
        m = self.model[sid]
        if not self.listed(sid):
            self.starts(sid)
        self.hook(sid, "UserPromptSubmit", prompt=f"do {self.n}")
        m = self.model[sid]
        m.turn, m.waiting_for_agents = "working", False
        m.main_asks_no_more()

    @rule(sid=st.sampled_from(SESSIONS), tool=st.sampled_from(TOOLS[:2]))
    def runs_a_tool(self, sid: str, tool: str) -> None:
        m = self.model[sid]
        if not self.listed(sid):
            return
        self.hook(sid, "PreToolUse", tool_name=tool)
        self.hook(sid, "PostToolUse", tool_name=tool)
        m.turn = "working"
        m.asking.discard(("", tool))

    @rule(sid=st.sampled_from(SESSIONS), tool=st.sampled_from(TOOLS))
    def asks(self, sid: str, tool: str) -> None:
        m = self.model[sid]
        if not self.listed(sid):
            return
        self.hook(sid, "PermissionRequest", tool_name=tool, tool_input={"command": str(self.n)})
        m.turn = "working"
        m.asking.add(("", tool))

    @rule(sid=st.sampled_from(SESSIONS), tool=st.sampled_from(TOOLS), ok=st.booleans())
    def is_answered(self, sid: str, tool: str, ok: bool) -> None:
        m = self.model[sid]
        if ("", tool) not in m.asking:
            return
        self.hook(sid, "PostToolUse" if ok else "PostToolUseFailure", tool_name=tool)
        m.asking.discard(("", tool))

    @rule(sid=st.sampled_from(SESSIONS), agent=st.sampled_from(["x1", "x2"]))
    def starts_an_agent(self, sid: str, agent: str) -> None:
        if self.model[sid].turn != "working":
            return
        self.hook(sid, "SubagentStart", agent_id=agent, agent_type="Explore")
        self.model[sid].agents.add(agent)

    @rule(sid=st.sampled_from(SESSIONS), agent=st.sampled_from(["x1", "x2"]))
    def its_agent_asks(self, sid: str, agent: str) -> None:
        m = self.model[sid]
        if agent not in m.agents:
            return
        self.hook(sid, "PermissionRequest", tool_name="Bash", agent_id=agent)
        m.asking.add((agent, "Bash"))

    @rule(sid=st.sampled_from(SESSIONS), agent=st.sampled_from(["x1", "x2"]))
    def its_agent_goes_on(self, sid: str, agent: str) -> None:
        m = self.model[sid]
        if not self.listed(sid):
            return
        self.hook(sid, "PostToolUse", tool_name="Bash", agent_id=agent)
        m.asking.discard((agent, "Bash"))

    @rule(sid=st.sampled_from(SESSIONS), agent=st.sampled_from(["x1", "x2"]))
    def its_agent_ends(self, sid: str, agent: str) -> None:
        m = self.model[sid]
        if agent not in m.agents:
            return
        self.hook(sid, "SubagentStop", agent_id=agent, agent_type="Explore")
        self.board.advance(self.t + STEP)
        m.agents.discard(agent)
        m.asking = {(who, tool) for who, tool in m.asking if who != agent}
        if m.waiting_for_agents and not m.agents:
            m.turn, m.waiting_for_agents = ("background" if m.shell else "completed"), False

    @rule(sid=st.sampled_from(SESSIONS), shell=st.booleans())
    def stops(self, sid: str, shell: bool) -> None:
        m = self.model[sid]
        if m.turn != "working":
            return
        tasks = [{"id": x, "type": "subagent", "status": "running"} for x in sorted(m.agents)]
        if shell:
            tasks.append({"id": "b1", "type": "shell", "status": "running"})
        self.hook(sid, "Stop", background_tasks=tasks)
        m.main_asks_no_more()
        m.shell = shell
        if m.agents:
            m.waiting_for_agents = True
        else:
            m.turn = "background" if shell else "completed"

    @rule(sid=st.sampled_from(SESSIONS))
    def fails(self, sid: str) -> None:
        m = self.model[sid]
        if m.turn != "working":
            return
        self.hook(sid, "StopFailure", error="rate_limit")
        m.main_asks_no_more()
        m.turn, m.waiting_for_agents = "error", False

    @precondition(lambda self: any(m.turn in ("working",) for m in self.model.values()))
    @rule(sid=st.sampled_from(SESSIONS))
    def is_interrupted(self, sid: str) -> None:
        """Esc, which only the registry tells."""
        m = self.model[sid]
        if m.turn != "working" or m.waiting_for_agents:
            return
        self.registry(sid, "idle")
        self.model[sid] = Naive("idle")
        self.registry(sid, "", nothing="more")

    @rule(sid=st.sampled_from(SESSIONS))
    def is_jumped_to(self, sid: str) -> None:
        self.tell(goto={"session_id": sid})
        m = self.model[sid]
        if m.status in ("completed", "error"):
            m.turn = "idle"

    @rule(sid=st.sampled_from(SESSIONS))
    def ends(self, sid: str) -> None:
        self.hook(sid, "SessionEnd", reason="other")
        self.model[sid] = Naive()

    @rule()
    def another_host_takes_over(self) -> None:
        for sid in self.board.sessions:
            self.board.dirty.add(sid)
        other = Board()
        other.load((k, body) for k, body in self.board.take_dirty() if body is not None)
        self.board = other

    @invariant()
    def the_board_shows_what_the_model_says(self) -> None:
        shown = {
            sid: status_of(s) if (s := self.board.sessions.get(sid)) and is_listed(s) else "absent"
            for sid in SESSIONS
        }
        assert shown == {sid: m.status for sid, m in self.model.items()}
        for sid, m in self.model.items():
            question = question_of(self.board.sessions[sid]) if m.asking else None
            assert question is None or (question.agent, question.tool) in m.asking


TestLife = Life.TestCase
TestLife.pytestmark = [pytest.mark.pure]
TestLife.settings = settings(max_examples=2 * settings.default.max_examples, stateful_step_count=50)
