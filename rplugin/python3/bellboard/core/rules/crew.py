"""Rules for subagents, teammates and tasks: they never wake, complete or end their session."""

from __future__ import annotations

from msgspec.structs import replace

from ..events import MATE, Event
from ..options import Options
from ..session import Session, Subagent
from . import rule
from .steps import (
    begin_tool,
    complete,
    die,
    end_questions,
    end_tools,
    has_finished,
    hold,
    is_at_work,
    rest,
    take_back_end,
)


@rule
def enlist(s: Session, e: Event, o: Options) -> str | None:
    """A subagent started."""
    if has_finished(s, e):
        return "it has ended since"
    known = s.agents.get(e.agent) or Subagent(e.agent, e.agent_type, e.t)
    kind = MATE if e.agent in s.mates else known.type or e.agent_type
    s.agents = {**s.agents, e.agent: replace(known, type=kind)}
    return None


@rule
def use_tool(s: Session, e: Event, o: Options) -> str | None:
    """A subagent is using a tool."""
    if s.turn == "unknown":
        hold(s, s.held)  # its turn had or had not ended, as before
    begin_tool(s, e)
    return None


@rule
def dismiss(s: Session, e: Event, o: Options) -> str | None:
    """A subagent ended; after the last one, its report follows."""
    ended = {k for k, b in s.blocks.items() if b.agent and b.agent == e.agent}
    end_questions(s, ended, e)
    if e.agent:
        end_tools(s, e.agent, e.t)
    agent = e.agent or next((i for i, a in s.agents.items() if a.type == e.agent_type), "")
    if agent not in s.agents:
        return None if ended else "no such agent is running"
    s.agents = {i: a for i, a in s.agents.items() if i != agent}
    if s.held == "stop" and not e.agent:
        take_back_end(s, e.t)  # it was the end of the subagent's turn
    elif s.held and not s.agents:
        s.held_until = e.clock + o.report  # if this is read late, so is the report
    return None


@rule
def give_up(s: Session, e: Event, o: Options) -> str | None:
    """No report followed: the turn is over."""
    s.held_until = 0.0
    if is_at_work(s):
        return "the CLI is still working"
    if s.held == "fail":
        die(s, e.t, s.error)
    elif s.held == "esc":
        rest(s, e.t, interrupted=True)
    else:
        agents = s.agents if s.held == "stop" else {}  # in the background; they go on
        complete(s, e.t)
        s.agents = agents
    return None


@rule
def count(s: Session, e: Event, o: Options) -> str | None:
    """A task was added to its list, or completed."""
    if e.kind == "task":
        s.tasks += 1
    else:
        s.tasks_done += 1
        s.tasks = max(s.tasks, s.tasks_done)
    return None


@rule
def retire(s: Session, e: Event, o: Options) -> str | None:
    """A teammate is waiting for its lead."""
    s.teammate, s.member = True, e.member or s.member
    s.blocks = {}
    rest(s, e.t)
    return None


@rule
def disband(s: Session, e: Event, o: Options) -> str | None:
    """The last member of the team has ended."""
    s.team, s.team_over = (), 0.0
    return None
