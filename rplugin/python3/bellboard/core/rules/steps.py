"""Steps that several rules share; each leaves the record consistent."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from ..events import SPAWNS, Event, Task
from ..session import (
    ABSENT,
    AT_WORK,
    NO_WORK,
    Agent,
    Block,
    Crew,
    Finished,
    Process,
    Run,
    Session,
    Shell,
    Tool,
    status_of,
)
from ..shown import squeezed

MOST_FINISHED: Final = 8  # tools and threads to remember as finished
MOST_LEFT: Final = 8  # processes to remember that left a session
MOVES_ON: Final = frozenset({"clear", "resume", "fork", "rekeyed"})


def turn_to_work(s: Session, t: float, held: str = "") -> None:
    s.turn = "working"
    s.active = max(s.active, t)
    s.held, s.held_until = held, 0.0
    s.unseen = s.interrupted = s.presumed = s.inferred = False
    s.error = s.retrying = ""
    s.trusted_until = 0.0


def work_between(s: Session, t: float) -> None:
    """Set a session to work that no prompt set to work; its status comes back when it rests."""
    before, error = s.turn, s.error
    since = s.over if status_of(s) == "blocked" else s.since
    turn_to_work(s, t)
    s.rested = before if before != "unknown" and s.began <= s.over else ""
    s.rested_since = since
    s.error = error if s.rested == "error" else ""


def hold(s: Session, held: str) -> None:
    """Hold back an end, which is not evidence of work."""
    turn_to_work(s, s.active, held)


def rest(s: Session, t: float, interrupted: bool = False) -> None:
    """Put a session at rest, with nothing to announce."""
    s.turn = "background" if s.shells and not interrupted and s.turn == "background" else "idle"
    s.over = max(s.over, t)
    drop_tools(s, {}, t)
    s.queue, s.rested, s.prompted = (), "", False
    s.held, s.held_until, s.trusted_until, s.compacting = "", 0.0, 0.0, 0.0
    s.unseen = s.presumed = s.inferred = False
    s.interrupted = interrupted
    s.error = s.retrying = ""


def own(s: Session) -> Process | None:
    """Return the process of this run, with what its session file says."""
    return s.processes.get(s.pid)


def has_ended(s: Session) -> bool:
    """Return whether its last words came but no Stop: Esc may have killed the hook."""
    return not (s.rested or s.queue) and s.last_words > max(s.began, s.active, s.sent)


def is_busy(s: Session) -> bool:
    """Return whether the registry says that it is working."""
    p = s.processes.get(s.pid)
    return p is not None and p.says == "busy"


def complete(s: Session, t: float) -> None:
    rest(s, t)
    s.agents = {}
    s.turn, s.unseen = ("background", True) if s.shells else ("completed", False)


def die(s: Session, t: float, error: str) -> None:
    """Put a session at rest after an error."""
    rest(s, t)
    s.turn, s.error = "error", error


def give_back(s: Session, t: float) -> None:
    """Restore the status from before a busy time that no prompt started."""
    turn, since = s.rested, s.rested_since
    error, unseen = s.error, turn == "background" and s.unseen
    rest(s, t)
    s.turn = "idle" if turn == "background" and not s.shells else turn
    s.since, s.error, s.unseen, s.presumed = since, error, unseen, True


def end(s: Session, t: float, reason: str, pid: int) -> None:
    """End a run, and the session unless another process still has it."""
    crew = Crew()
    if reason in MOVES_ON:
        crew = Crew(s.agents, s.shells, of_agents(s.tools), of_agents(s.blocks))
    # Its Stop had come, or it was only busy with a command, such as the one that exits.
    turn = "completed" if s.held == "stop" else s.rested or s.turn
    how = {"turn": turn, "since": s.since, "error": s.error}
    rest(s, t)
    s.turn, s.blocks, s.agents, s.shells = ABSENT, {}, {}, ()
    s.recent, s.finished = {}, ()
    s.hooked = False
    s.wakeups = 0
    s.crew = crew
    s.processes = {p: x for p, x in s.processes.items() if p not in (pid, s.pid)}
    if s.processes or s.aside:
        s.left = {**dict(list(s.left.items())[1 - MOST_LEFT :]), s.pid: t}
        s.aside = {p: begun(s.aside.get(p) or Run(pid=p), t) for p in {**s.aside, **s.processes}}
        # Nobody has looked yet: which process ended does not matter.
        if how["turn"] in ("completed", "error"):
            s.aside = {p: replace(r, **how) if r.turn == "idle" else r for p, r in s.aside.items()}
        return
    s.viewers, s.prompts, s.left = {}, (), {}
    s.ended, s.end_reason, s.ended_pid = t, reason, pid


def take_back(s: Session) -> None:
    """Give the session back what it left running."""
    crew, s.crew = s.crew, Crew()
    s.agents, s.shells, s.tools, s.blocks = crew.agents, crew.shells, crew.tools, crew.blocks


def begun(run: Run, t: float) -> Run:
    """Return the run of a process that now has the session alone: at rest unless known."""
    return run if run.turn != ABSENT else replace(run, turn="idle", since=t)


def end_questions(s: Session, ended: set[str], t: float) -> None:
    if not ended:
        return
    s.blocks = {k: b for k, b in s.blocks.items() if k not in ended}
    s.answered = max(s.answered, t)


def ask_no_more(s: Session) -> None:
    """End the questions of the main thread; others stay open."""
    if s.blocks:
        s.blocks = {k: b for k, b in s.blocks.items() if b.agent or is_of_file(s, b)}


def newest_question(s: Session, agents: bool = True) -> float:
    """Return when it last asked somebody; with `agents=False`, only in the main thread."""
    asked = (b.since for b in s.blocks.values() if not b.waits and (agents or not b.agent))
    return max(asked, default=0.0)


def is_waiting(s: Session) -> bool:
    """Return whether the session file says that something waits for an answer."""
    p = own(s)
    return p is not None and p.says == "waiting" and bool(p.asks)


def is_of_file(s: Session, b: Block) -> bool:
    """Return whether only the session file reports a question: nothing says who asks it."""
    p = own(s)  # a title or a server may fall silent, and then hooks say more
    is_file = p is not None and not p.shown and is_waiting(s)
    return is_file and not (b.agent or b.tool or b.key or b.inferred)


def ask_on(s: Session) -> bool:
    """Without hooks, keep asking while the session file says so: another thread is asking."""
    p = own(s)
    if s.hooked or p is None or not is_waiting(s):
        return False
    s.blocks = {**s.blocks, ":": Block(p.asks, p.at, tool=p.tool, shown=True)}
    return True


def prove_questions(s: Session) -> None:
    """Treat questions seen on a screen as proven where session file and transcript agree."""
    if is_alone(s):
        return
    for slot, block in s.blocks.items():
        if block.inferred and not block.tool_id:
            same = [(i, t) for i, t in s.tools.items() if is_what(t, block)]
            if len(same) == 1:
                tool_id, tool = same[0]
                proven = replace(block, tool_id=tool_id, detail=tool.detail, inferred=False)
                s.blocks = {**s.blocks, slot: proven}


def is_what(tool: Tool, asked: Block) -> bool:
    """Return whether a tool is the one on a screen, which may wrap text or shorten a path."""
    if (tool.name, tool.agent) != (asked.tool, asked.agent):
        return False
    said, read = squeezed(tool.detail), squeezed(asked.detail)
    return not read or said == read or said.endswith(f"/{read}")


def is_alone(s: Session) -> bool:
    """Return whether only the transcript or the screen shows its state."""
    p = s.processes.get(s.pid)
    return not s.hooked and not (p is not None and p.says)


def is_blind(s: Session) -> bool:
    """Return whether only its screen shows its status, or what it asks."""
    asked = (b for b in s.blocks.values() if b.shown and (b.inferred or not b.detail))
    return is_alone(s) or (not s.hooked and any(asked))


def roll_call(
    s: Session, listed: tuple[Task, ...], t: float
) -> tuple[dict[str, Agent], tuple[Shell, ...]]:
    """Return the agents and shells that a Stop lists as running."""
    known = {x.id: x for x in s.shells}
    agents = {
        x.id: replace(s.agents.get(x.id) or Agent(x.id, x.type, t, x.description), apart=True)
        for x in listed
        if x.type in AT_WORK
    }
    shells = tuple(
        known.get(x.id) or Shell(x.id, x.type, t, x.description)
        for x in listed
        if x.type not in AT_WORK | NO_WORK
    )
    return agents, shells


# ---------------------------------------------------------------- threads and their tools


def of_agents(things: dict[str, Block] | dict[str, Tool]) -> dict[str, Any]:
    """Return what belongs to subagents, not to the main thread."""
    return {k: x for k, x in things.items() if x.agent}


def survivors(s: Session) -> dict[str, Agent]:
    """Return the agents that outlive the turn; one whose tool never ended was interrupted."""
    return {i: a for i, a in s.agents.items() if a.apart or outlives(s, a.since)}


def outlives(s: Session, since: float) -> bool:
    """Return whether a subagent's start is older than every tool that still runs a subagent."""
    spawns = [t.since for t in s.tools.values() if t.name in SPAWNS and not t.agent]
    return not spawns or since < min(spawns)


def break_crew(s: Session, t: float) -> None:
    """Drop what ended with the turn: tools, questions, and agents that run only within it."""
    agents = survivors(s)
    s.blocks = {
        k: b
        for k, b in s.blocks.items()
        if b.agent and (b.agent in agents or (b.agent not in s.agents and outlives(s, b.since)))
    }
    drop_tools(s, {k: x for k, x in of_agents(s.tools).items() if x.agent in agents}, t)
    s.agents = agents


def drop_tools(s: Session, kept: dict[str, Tool], t: float) -> None:
    """End all tools but those; that they ended, which may be reported late, is then no news."""
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


def end_tools(s: Session, agent: str, t: float) -> None:
    """End all tools of a thread."""
    if s.tools:
        s.tools = {i: x for i, x in s.tools.items() if x.agent != agent}
    finish(s, Finished(t, agent))


def finish(s: Session, what: Finished) -> None:
    """Remember what has finished: simultaneous hooks may arrive in either order."""
    s.finished = (*s.finished[1 - MOST_FINISHED :], what)


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
