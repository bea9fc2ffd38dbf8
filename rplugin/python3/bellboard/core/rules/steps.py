"""The steps of rules: changes of a session's record, and of its tools."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from ..events import MATE, SPAWNS, Event, Task
from ..request import squeezed
from ..session import (
    ABSENT,
    AT_WORK,
    NO_WORK,
    RUNS,
    Block,
    Crew,
    Finished,
    Run,
    Session,
    Shell,
    Stated,
    Subagent,
    Tool,
    is_nested,
    says,
    status_of,
)
from ..sources import is_hearsay

# Steps about threads and their tools; each leaves the record consistent.


MOST_FINISHED: Final = 8  # tools and threads to remember as finished


def of_agents(things: dict[str, Block] | dict[str, Tool]) -> dict[str, Any]:
    """Return the entries of subagents, without those of the main thread."""
    return {k: x for k, x in things.items() if x.agent}


def survivors(s: Session) -> dict[str, Subagent]:
    """Return the agents that outlive the turn: none that a running tool waits for."""
    waits = waits_for_agent(s)
    return {i: a for i, a in s.agents.items() if a.apart or not waits}


def waits_for_agent(s: Session) -> bool:
    """Return whether a tool of the main thread runs a subagent."""
    return any(t.name in SPAWNS and not t.agent for t in s.tools.values())


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
        tool = Tool(e.tool, e.t, e.tool_key, e.detail, e.agent, writes=e.writes)
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
    """Return whether a tool had finished before that time, by the records."""
    return bool(tool_id) and any(f.tool_id == tool_id and f.t < t for f in s.finished)


def end_tools(s: Session, agent: str, t: float) -> None:
    """End all tools of a thread."""
    if s.tools:
        s.tools = {i: x for i, x in s.tools.items() if x.agent != agent}
    finish(s, Finished(t, agent))


def finish(s: Session, what: Finished) -> None:
    """Remember a tool that has finished: simultaneous hooks may arrive in either order."""
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


# Steps that several rules share; each leaves the record consistent.


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


def take_back_end(s: Session, t: float) -> None:
    """Drop an end that is held back, as its main thread worked after it: that was not the end."""
    if s.held in ("stop", "fail", "esc") and t > s.stopped:
        s.held, s.held_until = "", 0.0


def rest(s: Session, t: float, interrupted: bool = False) -> None:
    """Put a session at rest, with nothing to announce."""
    s.turn = "background" if s.shells and (interrupted or s.turn == "background") else "idle"
    s.over = max(s.over, t)
    drop_tools(s, {}, t)
    s.queue, s.rested, s.prompted = (), "", False
    s.held, s.held_until, s.trusted_until, s.compacting = "", 0.0, 0.0, 0.0
    s.unseen = s.presumed = s.inferred = s.silent = s.quiet = False
    s.interrupted = interrupted
    s.error = s.retrying = ""


def has_ended(s: Session) -> bool:
    """Return whether its last words came but no Stop: Esc may have killed the hook."""
    worked = s.active if s.hooked else s.over  # a file may say long afterwards that it works
    return not (s.rested or s.queue) and s.last_words > max(s.began, worked, s.sent)


def is_busy(s: Session) -> bool:
    """Return whether the registry says that a turn runs."""
    return says(s) in RUNS


def is_at_work(s: Session) -> bool:
    """Return whether the registry says that it is working, or would, if no dialog hid it."""
    return is_busy(s) or (says(s) == "waiting" and bool(s.agents))


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
    # The turn had its Stop, or was only busy with a command, such as `/exit`.
    turn = "completed" if s.held == "stop" else s.rested or s.turn
    how = {"turn": turn, "since": s.since, "error": s.error}
    rest(s, t)
    s.turn, s.blocks, s.agents, s.shells = ABSENT, {}, {}, ()
    s.recent, s.finished = {}, ()
    if s.hooked and s.own_report is not None:  # the next session of its process has its word
        s.own_report = replace(s.own_report, records={})
    s.hooked = False
    s.wakeups = 0
    s.stated, s.stood, s.leads, s.overruled = Stated(), True, 0.0, 0.0
    s.crew = crew
    s.processes = {p: x for p, x in s.processes.items() if p not in (pid, s.pid)}
    if s.processes or s.aside:
        s.left = {**dict(list(s.left.items())[1 - MOST_LEFT :]), s.pid: t}
        s.aside = {p: begun(s.aside.get(p) or Run(pid=p), t) for p in {**s.aside, **s.processes}}
        # Nobody has looked yet: which process ended does not matter.
        if how["turn"] in ("completed", "error") and not is_nested(s):
            s.aside = {p: replace(r, **how) if r.turn == "idle" else r for p, r in s.aside.items()}
        return
    s.viewers, s.prompts, s.left = {}, (), {}
    s.ended, s.end_reason, s.ended_pid = t, reason, pid


def take_back(s: Session) -> None:
    """Give a session its crew back, which it left running."""
    crew, s.crew = s.crew, Crew()
    s.agents, s.shells, s.tools, s.blocks = crew.agents, crew.shells, crew.tools, crew.blocks


def begun(run: Run, t: float) -> Run:
    """Return the run of a process that now has the session alone; a new run is at rest."""
    return run if run.turn != ABSENT else replace(run, turn="idle", since=t)


def end_questions(s: Session, ended: set[str], e: Event) -> None:
    if not ended:
        return
    if not all(s.blocks[k].reminded for k in ended):
        s.unreminded = max(s.unreminded, e.t)
    s.blocks = {k: b for k, b in s.blocks.items() if k not in ended}
    s.answered = max(s.answered, e.t)


def overruled(s: Session, e: Event) -> set[str]:
    """Return the questions that a statement ends.

    A report alone ends none that it never showed, nor does the title of a terminal with threads.
    """
    is_sure = e.about != "report" and not is_hearsay(s, e.about)
    return {k for k, b in s.blocks.items() if b.stated or not b.key or is_sure}


def ask_no_more(s: Session, e: Event) -> None:
    """End the questions of the main thread that are older than this; others stay open."""
    if not s.blocks:
        return
    old = {k for k, b in s.blocks.items() if b.since <= e.t and not b.agent}
    end_questions(s, {k for k in old if not is_of_file(s, s.blocks[k])}, e)


def break_crew(s: Session, e: Event) -> None:
    """Drop the parts of a turn that ended: tools, questions, and agents that run only within it."""
    agents = survivors(s)
    kept = {k for k, b in s.blocks.items() if b.agent and b.agent in agents}
    end_questions(s, s.blocks.keys() - kept, e)
    drop_tools(s, {k: x for k, x in of_agents(s.tools).items() if x.agent in agents}, e.t)
    s.agents = agents


def newest_question(s: Session, agents: bool = True) -> float:
    """Return when it last asked somebody; with `agents=False`, only in the main thread."""
    asked = (b.since for b in s.blocks.values() if not b.waits and (agents or not b.agent))
    return max(asked, default=0.0)


def newest_told(s: Session) -> float:
    """Return when a hook or a screen last reported a question; a session file may take it back."""
    told = (b.since for b in s.blocks.values() if (b.key or b.inferred) and not b.waits)
    return max(told, default=0.0)


def is_waiting(s: Session) -> bool:
    """Return whether the session file says that something waits for an answer."""
    return says(s) == "waiting" and bool(s.stated.asks)


def is_of_file(s: Session, b: Block) -> bool:
    """Return whether a question is known only from the session file, and so not who asks it."""
    # A title or a server does not count: it may stop reporting, and hooks are better then.
    is_file = s.stated.source in ("file", "report") and is_waiting(s)
    is_file = is_file and (bool(s.agents) or not s.overruled)
    return is_file and not (b.agent or b.tool or b.key or b.inferred)


def ask_on(s: Session) -> bool:
    """Without hooks, keep a question open while the session file has one: another thread asks."""
    x = s.stated
    if s.hooked or not is_waiting(s):
        return False
    s.blocks = {**s.blocks, ":": Block(x.asks, x.at, tool=x.tool, detail=x.detail, shown=True)}
    return True


def prove_questions(s: Session) -> None:
    """Name the tool of a question that a screen or own report showed, once the tool is logged.

    Session file and transcript agree then, so nothing is inferred any more.
    """
    if is_alone(s):
        return
    for slot, block in s.blocks.items():
        if not block.tool_id and (block.inferred or not s.hooked):
            same = [(i, t) for i, t in s.tools.items() if is_what(t, block)]
            if len(same) == 1:
                tool_id, x = same[0]
                known = {"tool": x.name, "tool_id": tool_id, "detail": x.detail}
                s.blocks = {**s.blocks, slot: replace(block, **known, inferred=False)}


def is_what(tool: Tool, asked: Block) -> bool:
    """Return whether a screen shows this tool; screens wrap text and shorten paths."""
    if not asked.inferred:
        return not (asked.tool or tool.agent or asked.agent) and names(asked.detail, tool)
    if (tool.name, tool.agent) != (asked.tool, asked.agent):
        return False
    said, read = squeezed(tool.detail), squeezed(asked.detail)
    return not read or said == read or said.endswith(f"/{read}")


def names(said: str, tool: Tool) -> bool:
    """Return whether a program's words about a question name that tool: `approve Bash: make`."""
    told = squeezed(f"{tool.name}: {tool.detail}")
    return bool(tool.detail) and squeezed(said).endswith(told)


def is_alone(s: Session) -> bool:
    """Return whether only the transcript or the screen shows its state."""
    return not s.hooked and not says(s)


def is_blind(s: Session) -> bool:
    """Return whether only the screen shows the status of a session, or its question."""
    if s.record:
        return False  # its terminal shows its board
    if is_alone(s):
        return True
    asked = (b for b in s.blocks.values() if b.shown and not b.key)
    return any(b.inferred or not b.detail for b in asked)


def needs_screen(s: Session) -> bool:
    """Return whether to read the screen: nothing else shows the status, or the question.

    Of a request to the model that failed nothing else tells, until the next attempt.
    """
    if is_blind(s):
        return True
    return s.turn == "working" and bool(s.retrying or ((s.silent or s.quiet) and not s.tools))


def roll_call(
    s: Session, listed: tuple[Task, ...], t: float
) -> tuple[dict[str, Subagent], tuple[Shell, ...]]:
    """Return the agents and shells that a Stop lists as running."""
    known = {x.id: x for x in s.shells}
    agents = {
        x.id: replace(s.agents.get(x.id) or Subagent(x.id, x.type, t, x.description), apart=True)
        for x in listed
        if x.type in AT_WORK
    }
    if any(x.type in NO_WORK for x in listed):  # under other ids, and also those at rest
        agents |= {i: a for i, a in s.agents.items() if a.type == MATE}
    shells = tuple(
        known.get(x.id) or Shell(x.id, x.type, t, x.description)
        for x in listed
        if x.type not in AT_WORK | NO_WORK
    )
    return agents, shells
