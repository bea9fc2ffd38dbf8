"""Steps that several rules take; each leaves the record whole."""

from __future__ import annotations

from typing import Final

from ..events import Event, Task
from ..session import (
    ABSENT,
    AT_WORK,
    NO_WORK,
    Agent,
    Finished,
    Session,
    Shell,
    Tool,
)

MOST_FINISHED: Final = 8  # remembered: what one moment can hold


def turn_to_work(s: Session, t: float, held: str = "") -> None:
    s.turn = "working"
    s.active = max(s.active, t)
    s.held, s.held_until = held, 0.0
    s.unseen = s.interrupted = s.inferred = False
    s.error = s.retrying = ""
    s.trusted_until = 0.0


def rest(s: Session, t: float, interrupted: bool = False) -> None:
    """At rest, with nothing to tell."""
    s.turn = "background" if s.shells and not interrupted and s.turn == "background" else "idle"
    s.over = max(s.over, t)
    s.tools, s.queued, s.rested, s.prompted = {}, 0, "", False
    s.held, s.held_until, s.trusted_until, s.compacting = "", 0.0, 0.0, 0.0
    s.unseen, s.interrupted, s.inferred = False, interrupted, False
    s.error = s.retrying = ""


def is_busy(s: Session) -> bool:
    """The registry says that it is at work."""
    for p in s.processes.values():  # noqa: SIM110 - after every event: a generator costs as much
        if p.says == "busy":
            return True
    return False


def complete(s: Session, t: float) -> None:
    rest(s, t)
    s.agents = {}
    s.turn, s.unseen = ("background", True) if s.shells else ("completed", False)


def give_back(s: Session, t: float) -> None:
    """A busy time that no prompt began is over: what was there before stands again."""
    turn, since = s.rested, s.rested_since
    error, unseen = s.error, turn == "background" and s.unseen
    rest(s, t)
    s.turn = "idle" if turn == "background" and not s.shells else turn
    s.since, s.error, s.unseen = since, error, unseen


def end(s: Session, t: float, reason: str, pid: int) -> None:
    """Not listed any more; what a resume would want is kept."""
    rest(s, t)
    s.turn, s.blocks, s.agents, s.shells = ABSENT, {}, {}, ()
    s.processes, s.viewers, s.recent, s.finished = {}, {}, {}, ()
    s.prompts = ()
    s.ended, s.end_reason, s.ended_pid = t, reason, pid
    s.hooked = False
    s.wakeups = 0


def end_questions(s: Session, ended: set[str], t: float) -> None:
    if not ended:
        return
    asked = {s.blocks[k].key for k in ended}
    s.recent = {k: x for k, x in s.recent.items() if k not in asked}  # it may ask the same again
    s.blocks = {k: b for k, b in s.blocks.items() if k not in ended}
    s.answered = max(s.answered, t)


def ask_no_more(s: Session) -> None:
    """What the main thread asked is over; subagents in the background ask on."""
    if s.blocks:
        s.blocks = {k: b for k, b in s.blocks.items() if b.agent}


def newest_question(s: Session) -> float:
    return max((b.since for b in s.blocks.values()), default=0.0)


def is_alone(s: Session) -> bool:
    """Nothing but the transcript tells of it."""
    return not s.hooked and not any(p.says for p in s.processes.values())


def roll_call(
    s: Session, listed: tuple[Task, ...], t: float
) -> tuple[dict[str, Agent], tuple[Shell, ...]]:
    """The agents and the shells that a Stop lists as running."""
    known = {x.id: x for x in s.shells}
    agents = {
        x.id: s.agents.get(x.id) or Agent(x.id, x.type, t, x.description)
        for x in listed
        if x.type in AT_WORK
    }
    shells = tuple(
        known.get(x.id) or Shell(x.id, x.type, t, x.description)
        for x in listed
        if x.type not in AT_WORK | NO_WORK
    )
    return agents, shells


# ---------------------------------------------------------------- tools


def tool_slot(e: Event) -> str:
    return e.tool_id or f"{e.agent}?{e.tool}"


def begin_tool(s: Session, e: Event) -> None:
    if not has_finished(s, e):
        tool = Tool(e.tool, e.t, e.tool_key, e.detail)
        s.tools = {**s.tools, tool_slot(e): tool}


def end_tool(s: Session, e: Event) -> None:
    slot = tool_slot(e)
    was = s.tools.get(slot)
    if was is not None:
        s.tools = {i: t for i, t in s.tools.items() if i != slot}
    tool = e.tool or (was.name if was else "")
    finish(s, Finished(e.t, e.agent, tool or "?", e.tool_id, was.key if was else 0))


def finish(s: Session, what: Finished) -> None:
    """Remember what came to its end: hooks of one moment may be told in either order."""
    s.finished = (*s.finished[1 - MOST_FINISHED :], what)


def has_finished(s: Session, e: Event) -> bool:
    """Whether the tool or the thread that an event tells of has come to its end since."""
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
