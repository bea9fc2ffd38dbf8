"""Rules for the turn: how it starts and goes on; compaction, which is not a turn, and silence."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..events import MATE, Event
from ..options import Options
from ..session import ABSENT, Agent, Session, own, says
from ..sources import set_aside
from .life import see_aside
from .steps import (
    ask_no_more,
    complete,
    give_back,
    is_busy,
    take_back,
    take_back_end,
    turn_to_work,
)
from .tools import begin_tool, end_tool, end_tools, has_ended_since, tool_slot

RESTS: Final = frozenset({"idle", "completed", "error", "background"})
MOST_MATES: Final = 15  # members of a team to remember, before the newest
#: Hooks about past work: the CLI does not wait for them if another stops the turn, so they may come
#: after its end.
PAST: Final = frozenset({"tool end", "batch"})


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


def wake(s: Session, e: Event, o: Options) -> str | None:
    """Its main thread is working."""
    is_sure = e.in_order and e.kind not in PAST
    if s.turn != ABSENT and e.t <= s.over + (0.0 if is_sure else o.swap):
        return "older than the end of the turn"
    if s.turn in RESTS and says(s) in ("idle", "shell") and s.stood and e.kind != "activity":
        is_told = e.kind == "tool" and s.stated.source == "report" and is_file_busy(s)
        if not (s.overruled or is_told):
            return "what states its status says that it rests"
        set_aside(s)  # it does not keep up, or its session file and a tool say otherwise
    if e.tool_id and any(f.tool_id == e.tool_id for f in s.finished):
        return "its tool has finished"
    turn_to_work(s, e.t)
    return go_on(s, e, o)


def is_file_busy(s: Session) -> bool:
    """Return whether its session file or server says that it works, whatever its report says."""
    p = own(s)
    return p is not None and p.states.says == "busy" and not p.doubted


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
    agent = agent or Agent(e.spawned, "", e.t)
    agent = replace(agent, type=e.agent_type or agent.type, apart=True)
    s.agents = {**s.agents, e.spawned: agent}
    if e.agent_type == MATE:
        s.mates = (*s.mates[-MOST_MATES:], e.spawned)


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


def listen(s: Session, e: Event, o: Options) -> str | None:
    """It is working, but has reported nothing for a while: its screen may say why."""
    s.silent = True
    return None


def fade(s: Session, e: Event, o: Options) -> str | None:
    """It is working, but has reported nothing for a long time."""
    s.quiet = True
    return None
