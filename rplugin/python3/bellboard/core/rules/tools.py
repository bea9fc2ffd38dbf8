"""Steps about threads and their tools; each leaves the record consistent."""

from __future__ import annotations

from typing import Any, Final

from ..events import SPAWNS, Event
from ..session import Agent, Block, Finished, Session, Tool

MOST_FINISHED: Final = 8  # tools and threads to remember as finished


def of_agents(things: dict[str, Block] | dict[str, Tool]) -> dict[str, Any]:
    """Return what belongs to subagents, not to the main thread."""
    return {k: x for k, x in things.items() if x.agent}


def survivors(s: Session) -> dict[str, Agent]:
    """Return the agents that outlive the turn: none that a running tool waits for."""
    waits = any(t.name in SPAWNS and not t.agent for t in s.tools.values())
    return {i: a for i, a in s.agents.items() if a.apart or not waits}


def drop_tools(s: Session, kept: dict[str, Tool], t: float) -> None:
    """End all tools but the kept ones; a late report of their end then changes nothing."""
    for tool_id, tool in s.tools.items():
        if tool_id not in kept:
            finish(s, Finished(t, tool.agent, tool.name, tool_id, tool.key))
    s.tools = kept


def tool_slot(e: Event) -> str:
    return e.tool_id or f"{e.agent}?{e.tool}"


def begin_tool(s: Session, e: Event) -> None:
    """Remember a running tool."""
    if not has_finished(s, e):
        tool = Tool(e.tool, e.t, e.tool_key, e.detail, e.agent)
        s.tools = {**s.tools, tool_slot(e): tool}


def end_tool(s: Session, e: Event) -> None:
    slot = tool_slot(e)
    was = s.tools.get(slot)
    if was is not None:
        s.tools = {i: t for i, t in s.tools.items() if i != slot}
    tool = e.tool or (was.name if was else "")
    finish(s, Finished(e.t, e.agent, tool or "?", e.tool_id, was.key if was else 0))


def name_of(s: Session, tool_id: str) -> str:
    """Return the name of a tool that has finished, or nothing: its result in the log has none."""
    known = (f.tool for f in s.finished if f.tool_id == tool_id and f.tool not in ("", "?"))
    return next(known, "") if tool_id else ""


def had_finished(s: Session, tool_id: str, t: float) -> bool:
    """Return whether a tool is known to have finished before that time."""
    return bool(tool_id) and any(f.tool_id == tool_id and f.t < t for f in s.finished)


def end_tools(s: Session, agent: str, t: float) -> None:
    """End all tools of a thread."""
    if s.tools:
        s.tools = {i: x for i, x in s.tools.items() if x.agent != agent}
    finish(s, Finished(t, agent))


def finish(s: Session, what: Finished) -> None:
    """Remember what has finished: simultaneous hooks may arrive in either order."""
    s.finished = (*s.finished[1 - MOST_FINISHED :], what)


def has_ended_since(s: Session, agent: str, t: float) -> bool:
    """Return whether a subagent has ended since that time."""
    return any(f.agent == agent and not f.tool and f.t >= t for f in s.finished)


def has_finished(s: Session, e: Event) -> bool:
    """Return whether the tool or thread of an event has finished since."""
    for f in s.finished:
        if f.t <= e.t or f.agent != e.agent:
            continue
        if not f.tool:
            return True
        if f.tool_id and e.tool_id:
            if f.tool_id == e.tool_id:
                return True
        elif f.tool == e.tool and f.key in (0, e.tool_key):
            return True
    return False
