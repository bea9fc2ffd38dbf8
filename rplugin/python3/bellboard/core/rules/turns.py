"""How a turn begins and ends, and a session with it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..events import MATE, Event
from ..options import Options
from ..session import ABSENT, RUNS, Crew, Process, Session, Subagent, own, says, says_itself
from ..sources import TERMINAL, set_aside
from . import rule
from .steps import (
    MOVES_ON,
    ask_no_more,
    ask_on,
    begin_tool,
    break_crew,
    complete,
    die,
    drop_tools,
    end,
    end_tool,
    end_tools,
    give_back,
    has_ended,
    has_ended_since,
    hold,
    is_at_work,
    is_busy,
    newest_question,
    of_agents,
    rest,
    roll_call,
    survivors,
    take_back,
    take_back_end,
    tool_slot,
    turn_to_work,
    waits_for_agent,
)

# Rules for the life of a session: how it is listed, opened again, and ends.


@rule
def begin(s: Session, e: Event, o: Options) -> str | None:
    """A new session, at rest; what its process already runs in the background goes on."""
    # Where a session starts with its first prompt, title or log may say that before the hook runs.
    if s.turn != ABSENT and (s.hooked or s.turn == "working"):
        return "already listed"
    here = Crew(s.agents, s.shells, of_agents(s.tools), of_agents(s.blocks))
    s.crew = s.crew if s.crew != Crew() else here
    rest(s, e.t)
    take_back(s)
    s.turn = "background" if e.status == "shell" or s.shells else "idle"
    # Nothing ended, so simultaneous events count, as does everything while the status is unknown.
    s.over = 0.0 if e.kind == "states nothing" else e.t - o.swap
    if s.agents:
        turn_to_work(s, e.t - o.swap, held="moved")
    if e.from_hook and s.stated.says:  # its file may not have changed yet
        s.stated, s.stood = replace(s.stated, at=max(s.stated.at, e.t)), False
    return None


@rule
def reopen(s: Session, e: Event, o: Options) -> str | None:
    """It was opened in another process, at rest; how it ended elsewhere counts as seen."""
    if s.turn != ABSENT and (e.origin.pid is None or ((p := own(s)) and p.hooked)):
        s.opened = max(s.opened, e.t)
        return "already open in the same process"
    see_aside(s)
    s.hooked = False
    return begin(s, e, o)


def see_aside(s: Session) -> None:
    """Mark its other runs as seen: whoever opens it or types into it has seen them."""
    if s.aside and not s.headless:
        s.aside = {
            pid: replace(
                r,
                turn=seen(r.turn),
                rested=seen(r.rested),
                unseen=False,
                # if its Stop has come, that is seen too
                held="moved" if r.held == "stop" else r.held,
            )
            for pid, r in s.aside.items()
        }


def seen(turn: str) -> str:
    """Return the status after somebody has looked."""
    return "idle" if turn in ("completed", "error") else turn


@rule
def leave(s: Session, e: Event, o: Options) -> str | None:
    """It ended."""
    if e.kind == "end" and e.t < max(s.began - o.swap, s.opened):
        return "it has begun again since"
    p, said = own(s), s.stated
    if e.kind != "end":
        s.processes, s.aside = {}, {}
    end(s, e.t, e.source or e.kind, e.origin.pid or s.pid)
    if s.turn == ABSENT and s.end_reason in MOVES_ON and p is not None and said.says in RUNS:
        # SessionEnd hooks may run for a long time before the process begins its next session.
        s.processes = {p.pid: p}
        s.stated, s.stood = replace(said, at=max(said.at, e.t)), False
    return None


@rule
def depart(s: Session, e: Event, o: Options) -> str | None:
    """Its process is gone."""
    gone = s.processes.get(e.pid or 0)
    if gone is None:
        return "not its process"
    if e.started and gone.started and e.started != gone.started:
        return "an earlier process had the same pid"
    if says_itself(s) and s.turn in ("completed", "error"):  # that stays until it is seen
        s.processes = {pid: p for pid, p in s.processes.items() if pid != gone.pid}
        return None
    end(s, e.t, "process gone", gone.pid)
    return None


@rule
def lose_pane(s: Session, e: Event, o: Options) -> str | None:
    """Its pane is gone: it ended, unless its process is known to run."""
    s.pane = s.pane_tty = ""
    if s.pid not in s.processes:
        end(s, e.t, "pane gone", 0)
    return None


# Rules for the turn: how it starts and goes on; compaction, which is not a turn, and silence.


RESTS: Final = frozenset({"idle", "completed", "error", "background"})
MOST_MATES: Final = 15  # members of a team to remember, before the newest
#: Hooks about past work: the CLI does not wait for them if another stops the turn, so they may come
#: after its end.
PAST: Final = frozenset({"tool end", "batch"})


@rule
def work(s: Session, e: Event, o: Options) -> str | None:
    """A prompt started a turn."""
    if s.over < e.t < s.stopped:  # its own Stop arrived first
        if s.held:
            return "its end is already known"
        complete(s, s.stopped)
        s.since = s.stopped
        return None
    if e.t < s.over and s.turn != ABSENT:
        return "older than the end of the turn"
    if e.kind == "prompt":
        see_aside(s)
        s.submitted = s.submitted if e.t < s.submitted else 0.0
    if e.kind == "prompt" and o.prompts and e.prompt:
        s.prompts = (*s.prompts, e.prompt)[-o.prompts :]
    if joins(s, e):
        began_it = not s.prompted and e.t < s.active  # its tools were reported before it
        s.queue += (e.t,) if e.kind == "prompt" and not began_it else ()
        s.prompted = s.prompted or began_it
        if not e.prompt_id:  # it may have started a turn after all
            s.began = max(s.began, e.t)
        s.active = max(s.active, e.t)
        return None
    if e.kind == "prompt":
        s.tasks = s.tasks_done = 0
    if s.turn == ABSENT:
        take_back(s)
    s.queue = ()
    s.tools = {k: x for k, x in s.tools.items() if x.agent or x.since > e.t}
    ask_no_more(s, e)
    s.prompted = e.kind != "states busy"
    s.began = max(s.began, e.t) if s.prompted else s.began
    s.prompt_id, s.said_id = e.prompt_id, ""
    s.rested, s.rested_since = "" if s.prompted or s.turn != ABSENT else "idle", e.t
    turn_to_work(s, e.t)
    return None


def joins(s: Session, e: Event) -> bool:
    """Return whether a prompt was queued in the running turn: then it has the same id.

    Without ids, it was if the turn asks nothing, or if its dialog is still open.
    """
    if s.turn != "working" or e.kind == "states busy":
        return False
    if e.prompt_id and s.prompt_id:
        return e.prompt_id == s.prompt_id
    asked = any(b.shown and not b.agent for b in s.blocks.values())
    return s.prompted and not s.held and (not asked or says(s) == "waiting")


@rule
def wake(s: Session, e: Event, o: Options) -> str | None:
    """Its main thread is working."""
    is_sure = e.in_order and e.kind not in PAST
    if s.turn != ABSENT and e.t <= s.over + (0.0 if is_sure else o.swap):
        return "older than the end of the turn"
    if s.turn in RESTS and says(s) in ("idle", "shell") and s.stood and e.kind != "activity":
        is_told = e.kind == "tool" and s.stated.source == "report" and is_file_busy(s)
        is_anothers = e.kind == "tool" and s.origin.many and s.stated.source in TERMINAL
        if not (s.overruled or is_told or is_anothers):
            return "what states its status says that it rests"
        if not is_anothers:
            set_aside(s)  # it does not keep up, or its session file and a tool say otherwise
    if e.tool_id and any(f.tool_id == e.tool_id for f in s.finished):
        return "its tool has finished"
    turn_to_work(s, e.t)
    return go_on(s, e, o)


def is_file_busy(s: Session) -> bool:
    """Return whether its session file or server says that it works, whatever its report says."""
    p = own(s)
    return p is not None and p.states.says in RUNS and not p.doubted


@rule
def go_on(s: Session, e: Event, o: Options) -> str | None:
    """The turn goes on."""
    if e.from_hook and s.turn != "working":  # a subagent's question hides the turn
        return wake(s, e, o)
    s.retrying = ""
    s.trusted_until = 0.0
    s.inferred = False
    if s.compacting:
        s.compacting = max(s.compacting, e.t)
    if e.from_hook:
        if e.kind not in PAST:
            s.active = max(s.active, e.t)
        s.rested = ""  # a turn, and not only a command
        s.prompt_id = e.prompt_id or s.prompt_id
        is_late = s.held != "stop" or e.t <= s.stopped + o.outweigh  # our hook may run late
        if s.held and (e.kind not in PAST or not is_late or s.held == "esc"):
            take_back_end(s, e.t)
    else:
        if e.kind == "said prompt":
            s.said_id = e.prompt_id
            s.rested = "" if e.t > s.over else s.rested  # a turn, although no hook reports it
            s.began = s.began if s.hooked else max(s.began, e.t)
        if s.hooked and e.kind == "said tool":
            return None  # hooks report its tools
        if not s.hooked and e.name.startswith("transcript"):
            s.rested = ""  # a turn, and not only a command
            s.held = s.held if e.t <= s.stopped else ""
    if e.kind in ("tool", "granted", "said tool"):
        begin_tool(s, e)
    elif e.kind in ("tool end", "said result"):
        tool = s.tools.get(tool_slot(e)) if e.spawned else None
        end_tool(s, e)
        if e.spawned:
            leave_to_itself(s, e, tool.since if tool is not None else e.t)
    elif e.kind == "batch":
        s.queue = ()  # the CLI takes the queued prompts
        end_tools(s, "", e.t)
    return None


def leave_to_itself(s: Session, e: Event, began: float) -> None:
    """Let a subagent outlive the turn: the tool that began at that time left it running."""
    agent = s.agents.get(e.spawned)
    if agent is None and has_ended_since(s, e.spawned, began):
        return
    agent = agent or Subagent(e.spawned, "", e.t)
    agent = replace(agent, type=e.agent_type or agent.type, apart=True)
    s.agents = {**s.agents, e.spawned: agent}
    if e.agent_type == MATE:
        s.mates = (*s.mates[-MOST_MATES:], e.spawned)


@rule
def compact(s: Session, e: Event, o: Options) -> str | None:
    """It is compacting: working now, and as before afterwards."""
    if s.turn in RESTS:
        s.rested, s.rested_since = s.turn, s.since
    elif s.turn != "working" and e.source == "manual":
        # A manual compaction starts at the prompt, so at rest.
        s.rested, s.rested_since = "idle", e.t
    s.turn = "working"
    s.compacting = s.active = max(s.active, e.t)
    return None


@rule
def compacted(s: Session, e: Event, o: Options) -> str | None:
    """The compaction is over."""
    if not s.compacting:
        return "no compaction was running"
    if not e.from_hook and e.t < s.compacting:
        return "an earlier compaction"
    s.compacting = 0.0
    if s.rested and not is_busy(s):  # else hooks run, and the file says when it is at rest
        give_back(s, e.t)
    return None


@rule
def listen(s: Session, e: Event, o: Options) -> str | None:
    """It is working, but has reported nothing for a while: its screen may say why."""
    s.silent = True
    return None


@rule
def fade(s: Session, e: Event, o: Options) -> str | None:
    """It is working, but has reported nothing for a long time."""
    s.quiet = True
    return None


# Rules for the end of a turn: how it is over, fails, or is interrupted.


COMMAND: Final = "command"  # the source of a refusal that is the CLI's own
#: What reports the end of a turn → how that ended.
HOW: Final = {
    **dict.fromkeys(("stop", "rest", "said end"), "stop"),
    **dict.fromkeys(("failure", "said error", "said failure"), "fail"),
    **dict.fromkeys(("interrupt", "said cancel"), "esc"),
}


@rule
def finish(s: Session, e: Event, o: Options) -> str | None:
    """The turn is over once the CLI is at rest: Stop hooks or agents may keep it working."""
    if e.anyones and waits_for_agent(s):
        return "a subagent's turn is over, and the session waits for that"
    if not e.again and s.began <= s.sent and e.t <= s.sent + o.outweigh:
        return "a Stop hook has already continued that turn"
    if s.team and not s.agents and is_busy(s):
        set_aside(s)  # the file of a lead whose mates run in panes of their own stays busy
    s.stopped, s.sent = max(s.stopped, e.t), 0.0
    if e.t < s.began:
        s.queue = ()  # that prompt started a turn
        return "older than the prompt"
    if e.kind == "rest" and s.held == "fail":
        return "the turn has failed"
    if e.kind == "rest" and s.retrying:  # it gave up between two tries, and no try failed for good
        return break_off(s, e, o)
    ask_no_more(s, e)
    if e.anyones and s.agents:
        hold(s, "stop")
        s.held_until = e.clock + o.report  # if it was a subagent's, that follows
        return None
    s.wakeups = e.wakeups
    if e.tasks is None:
        s.agents = survivors(s)
    if s.tools:  # the end of one that runs on starts no turn
        drop_tools(s, of_agents(s.tools), e.t)
    if e.tasks is not None:
        s.agents, s.shells = roll_call(s, e.tasks, e.t)
    if s.agents:
        hold(s, "count" if e.tasks is None else "report")
        return None
    p = own(s)
    if is_busy(s):
        hold(s, "stop")
    elif not says(s) and s.said_id and s.said_id in (s.prompt_id, e.prompt_id):
        hold(s, "stop")
        s.held_until = max(e.t + o.hooks, e.clock + o.settle)  # what follows may be read late, too
    elif s.queue or is_unheard(s, p):
        hold(s, "stop")
        s.held_until = e.clock + o.settle  # it may never report this turn, nor that prompt start
    else:
        complete(s, e.t)
    return None


def is_unheard(s: Session, p: Process | None) -> bool:
    """Return whether the session file has not reported the turn, or not since a host started."""
    if says(s):
        return says(s) == "waiting" or s.stated.at < s.began
    return p is not None and bool(p.file_session) and not p.states.at


@rule
def sent_on(s: Session, e: Event, o: Options) -> str | None:
    """A Stop hook made it continue: that was not the end."""
    # The CLI did not wait for our hook, so that the Stop may be stamped later.
    if e.t < max(s.stopped - o.outweigh, s.began, s.started):
        return "older than the newest Stop"
    s.stopped, s.sent = 0.0, e.t
    s.prompted = True
    turn_to_work(s, max(s.active, s.began))
    return None


@rule
def amend(s: Session, e: Event, o: Options) -> str | None:
    """Better evidence of how the last turn ended."""
    how = HOW[e.kind]
    if how == "stop":
        s.stopped = max(s.stopped, e.t)
        if e.prompt_id and e.prompt_id != s.prompt_id and e.t > s.over:
            return finish(s, e, o)  # another turn, whose prompt was queued
    # The hook of the same turn may start much later on a busy machine.
    same = bool(e.prompt_id) and e.prompt_id == s.prompt_id
    runs = s.turn in ("working", "unknown")
    is_its = runs or same or e.t <= s.over + (o.outweigh if s.presumed else o.settle)
    if not (max(s.began, s.started, s.active - o.swap) <= e.t and is_its):
        return recount(s, e)
    if how == "fail":
        if s.turn == "error" and (s.error or not e.error):
            return "no turn is running"
        die(s, e.t, e.error)
    elif e.kind == "interrupt" and (e.inferred or not s.presumed):
        return "no turn is running"
    elif how == "esc":
        break_crew(s, e)
        rest(s, e.t, interrupted=True)
    elif s.interrupted and not s.presumed and e.kind != "stop":
        return recount(s, e)  # some versions log the end of an interrupted turn like any other
    elif s.turn == "background":
        s.unseen, s.interrupted, s.presumed = True, False, False
        recount(s, e)
    elif s.turn == "idle" and (s.presumed or s.interrupted or not s.hooked):
        complete(s, e.t)
    else:
        return recount(s, e)
    return None


def recount(s: Session, e: Event) -> str | None:
    """List the agents and shells that still run after a Stop; no turn was running."""
    if e.kind != "stop" or e.tasks is None:
        return "no turn was running"
    before = s.turn
    s.agents, s.shells = roll_call(s, e.tasks, e.t)
    s.wakeups = e.wakeups
    if s.shells and before != "background":
        s.turn, s.unseen = "background", before == "completed"
    elif not (s.shells or s.agents) and before == "background":
        s.turn, s.unseen = ("completed" if s.unseen else "idle"), False
    else:
        return "no turn was running"
    return None


@rule
def fail(s: Session, e: Event, o: Options) -> str | None:
    """The turn failed, once the CLI is at rest: it may go on with a queued prompt."""
    if e.t < s.began:
        return "older than the prompt"
    if e.anyones and waits_for_agent(s):
        return "a subagent's turn failed, and the session waits for that"
    ask_no_more(s, e)
    error = e.error or s.error  # its hook and its log: one of them may have no words for it
    if is_at_work(s) and not s.inferred:
        hold(s, "fail")  # the CLI goes on while its hooks run
        s.error = error
    else:
        die(s, e.t, error)
    return None


@rule
def break_off(s: Session, e: Event, o: Options) -> str | None:
    """The turn was interrupted; a queued prompt starts at once, background agents go on."""
    if e.prompt_id and s.prompt_id and e.prompt_id not in (s.prompt_id, s.said_id):
        return "another turn was interrupted"
    if e.t < max(s.began, s.active - o.swap, newest_question(s, agents=False)):
        return "older than the newest hook"
    if e.inferred and 0.0 < e.at <= s.began + o.swap:  # our hook of that ran after the prompt's
        return "it rested before a queued prompt"
    if e.inferred and s.held in ("report", "count"):
        return "the turn has ended, and its agents go on"  # that it rests is no news
    if says(s) == "busy" and not (e.from_hook or s.agents or s.queue or s.blocks):
        s.held = s.held or "esc" * s.origin.many  # else its terminal may mean another thread
        return "its session file decides that"  # a line may be a second late
    break_crew(s, e)
    ask_on(s)
    if s.queue and not e.from_hook:  # a hook reports the end; if a prompt starts, its own says so
        s.queue = s.queue[1:]
        s.held, s.held_until = "", 0.0  # the registry, which is as old, may say that it is at rest
    elif s.agents:
        s.held = "esc"  # the registry may say that they are not running
    elif s.held == "stop" or has_ended(s):  # only its hooks were still running
        complete(s, max(s.stopped, s.last_words))
    elif s.held == "fail":
        die(s, e.t, s.error)
    else:
        rest(s, e.t, interrupted=True)
        s.inferred = e.inferred
    return None


@rule
def reject(s: Session, e: Event, o: Options) -> str | None:
    """A hook of the user refused the prompt or stopped the turn, or a command could not be run."""
    if e.t < s.began:
        return "older than the prompt"
    if not _is_refused(s, e):
        return "another command could not be run"
    if s.held:
        return "the end of another turn is pending"
    break_crew(s, e)
    rest(s, e.t, interrupted=e.source != COMMAND)
    s.presumed = True  # some CLIs also report a normal end, after a refusal within the turn
    return None


def _is_refused(s: Session, e: Event) -> bool:
    """Return whether a refusal is of the newest prompt: others may run beside a turn."""
    return e.source != COMMAND or s.prompt.partition(" ")[0] == e.detail


@rule
def missed(s: Session, e: Event, o: Options) -> str | None:
    """Nothing has happened for a minute: the turn is over."""
    if s.tools or s.agents:
        return "a tool or an agent is running"
    if e.t < max(s.began, s.active) + o.outweigh:  # a prompt came just in time
        return "it has worked since"
    if s.held == "stop":
        complete(s, s.stopped)
    elif s.held == "fail":
        die(s, e.t, s.error)
    else:
        rest(s, e.t)
    return None
