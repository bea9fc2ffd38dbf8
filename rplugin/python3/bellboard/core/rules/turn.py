"""Rules for the turn: how it starts, goes on, ends, is interrupted or fails."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..events import Event
from ..options import Options
from ..session import ABSENT, NO_WORK, Agent, Session
from .life import see_aside
from .steps import (
    ask_no_more,
    ask_on,
    begin_tool,
    break_crew,
    complete,
    die,
    end_tool,
    end_tools,
    give_back,
    is_busy,
    newest_question,
    of_agents,
    own,
    rest,
    roll_call,
    survivors,
    turn_to_work,
)

RESTS: Final = frozenset({"idle", "completed", "error", "background"})


def work(s: Session, e: Event, o: Options) -> str | None:
    """A prompt started a turn."""
    if s.over < e.t < s.stopped:  # its own Stop arrived first, and ended nothing
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
        s.queued += e.kind == "prompt"
        if not e.prompt_id:  # it may have started a turn after all
            s.began = max(s.began, e.t)
        s.active = max(s.active, e.t)
        return None
    if e.kind == "prompt":
        s.tasks = s.tasks_done = 0
    s.queued, s.tools = 0, of_agents(s.tools)
    ask_no_more(s)
    s.prompted = e.kind != "registry busy"
    s.began = max(s.began, e.t) if s.prompted else s.began
    s.prompt_id, s.said_id = e.prompt_id, ""
    s.rested, s.rested_since = "" if s.prompted or s.turn != ABSENT else "idle", e.t
    turn_to_work(s, e.t)
    return None


def joins(s: Session, e: Event) -> bool:
    """Return whether a prompt was queued in the running turn: then it has the same id.

    Without ids, it was if the turn asks nothing, or if its dialog is still open.
    """
    if s.turn != "working" or e.kind == "registry busy":
        return False
    if e.prompt_id and s.prompt_id:
        return e.prompt_id == s.prompt_id
    p = own(s)
    asked = any(b.shown and not b.agent for b in s.blocks.values())
    return s.prompted and not s.held and (not asked or (p is not None and p.says == "waiting"))


def wake(s: Session, e: Event, o: Options) -> str | None:
    """Its main thread is working."""
    if s.turn != ABSENT and e.t <= s.over + o.swap:
        return "older than the end of the turn"
    turn_to_work(s, e.t)
    s.rested = ""
    return go_on(s, e, o)


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
        s.active = max(s.active, e.t)
        s.rested = ""  # a turn, and not only a command
        s.prompt_id = e.prompt_id or s.prompt_id
        if s.held in ("stop", "esc", "fail", "refused") and e.t > s.stopped:
            s.held, s.held_until = "", 0.0  # that was not the end
    else:
        if e.kind == "said prompt":
            s.said_id = e.prompt_id
            s.began = s.began if s.hooked else max(s.began, e.t)
        if s.hooked and e.kind == "said tool":
            return None  # hooks report its tools
        if not s.hooked and e.name.startswith("transcript"):
            s.rested = ""  # a turn, and not only a command
            s.held = s.held if e.t <= s.stopped else ""
    if e.kind in ("tool", "granted", "said tool"):
        begin_tool(s, e)
    elif e.kind in ("tool end", "said result"):
        end_tool(s, e)
        if e.spawned:
            agent = s.agents.get(e.spawned) or Agent(e.spawned, "", e.t)
            s.agents = {**s.agents, e.spawned: replace(agent, apart=True)}
    elif e.kind == "batch":
        s.queued = 0  # the CLI takes the queued prompts
        end_tools(s, "", e.t)
    return None


def finish(s: Session, e: Event, o: Options) -> str | None:
    """The turn is over once the CLI is at rest: Stop hooks or agents may keep it working."""
    s.stopped = max(s.stopped, e.t)
    if e.t < s.began:
        s.queued = 0  # that prompt started a turn
        return "older than the prompt"
    if e.kind == "rest" and s.held == "fail":
        return "it has failed"
    ask_no_more(s)
    s.wakeups = e.wakeups
    if e.tasks is None:
        s.agents = survivors(s)
    s.tools = of_agents(s.tools)
    if e.tasks is not None:
        before = s.agents
        s.agents, s.shells = roll_call(s, e.tasks, e.t)
        if not any(x.type in NO_WORK for x in e.tasks):  # teammates are listed by other ids
            gone = before.keys() - s.agents.keys()
            s.blocks = {k: b for k, b in s.blocks.items() if b.agent not in gone}
    if s.agents:
        turn_to_work(s, e.t, held="count" if e.tasks is None else "report")
        return None
    p = own(s)
    if p is not None and p.says == "busy":
        turn_to_work(s, e.t, held="stop")
    elif p is not None and p.says and (p.says == "waiting" or p.at < s.began):
        turn_to_work(s, e.t, held="stop")
        s.held_until = e.t + o.settle  # it has not reported this turn yet, and may never
    elif not (p and p.says) and s.prompt_id and s.said_id == s.prompt_id:
        turn_to_work(s, e.t, held="stop")
        s.held_until = e.t + o.hooks
    else:
        complete(s, e.t)
    return None


def sent_on(s: Session, e: Event, o: Options) -> str | None:
    """A Stop hook made it continue: that was not the end."""
    if e.t < s.stopped - o.swap or e.t < s.began:
        return "older than the newest Stop"
    s.stopped = s.last_words = 0.0
    s.prompted = True
    turn_to_work(s, max(s.active, s.began))
    return None


def amend(s: Session, e: Event, o: Options) -> str | None:
    """Better evidence of how the turn ended, which was only inferred."""
    if e.kind == "stop":
        s.stopped = max(s.stopped, e.t)
        s.wakeups = e.wakeups
    unheard = e.kind == "said end" and not s.hooked and e.t >= s.active
    if not (s.interrupted or unheard) or e.t < s.began or e.t > s.over + o.settle:
        return recount(s, e, o) if e.kind == "stop" else "no turn was running"
    if e.kind in ("stop", "said end"):  # an interrupted turn has neither
        complete(s, e.t)
        return None
    return fail(s, e, o)


def catch_up(s: Session, e: Event, o: Options) -> str | None:
    """Another turn ended: its prompt was queued, and nothing else reported it."""
    if not (e.prompt_id and s.prompt_id and e.prompt_id != s.prompt_id and e.t > s.over):
        return "no turn ran"
    return finish(s, e, o)


def recount(s: Session, e: Event, o: Options) -> str | None:
    """No turn was running, but it lists the shells that are."""
    if catch_up(s, e, o) is None:
        return None
    if e.tasks is None:
        return "no turn was running"
    before = s.turn
    s.agents, s.shells = roll_call(s, e.tasks, e.t)
    s.wakeups = e.wakeups
    if s.shells and before != "background":
        s.turn, s.unseen = "background", before == "completed"
    elif not s.shells and before == "background":
        s.turn, s.unseen = ("completed" if s.unseen else "idle"), False
    else:
        return "no turn was running"
    return None


def fail(s: Session, e: Event, o: Options) -> str | None:
    """The turn failed, once the CLI is at rest: it may go on with a queued prompt."""
    if e.t < max(s.began, s.active if e.kind == "said error" else 0.0):
        return "older than the prompt"
    ask_no_more(s)
    p = own(s)
    if p is not None and p.says == "busy":
        turn_to_work(s, s.active, held="fail")  # its hooks run beside the CLI: no sign of work
        s.error = e.error
    else:
        die(s, e.t, e.error)
    return None


def flunk(s: Session, e: Event, o: Options) -> str | None:
    """Its log says that the turn failed, whatever its hook said of the end."""
    if refused := _not_its_end(s, e, o):
        return refused
    if s.turn != "completed":
        return fail(s, e, o)
    die(s, e.t, e.error)
    return None


def call_off(s: Session, e: Event, o: Options) -> str | None:
    """Its log says that the turn was interrupted, whatever its hook said of the end."""
    if refused := _not_its_end(s, e, o):
        return refused
    break_crew(s)
    rest(s, e.t, interrupted=True)
    return None


def _not_its_end(s: Session, e: Event, o: Options) -> str | None:
    if e.t < s.began:
        return "older than the prompt"
    if s.turn == "completed" and e.t > s.over + o.settle:
        return "no turn was running"
    return None


def break_off(s: Session, e: Event, o: Options) -> str | None:
    """The turn was interrupted; a queued prompt starts at once, background agents go on."""
    if e.prompt_id and s.prompt_id and e.prompt_id not in (s.prompt_id, s.said_id):
        return "another turn was interrupted"
    if e.t < max(s.active, newest_question(s, agents=False)):
        return "older than the newest hook"
    if (p := own(s)) and p.says == "busy":
        if p.at > e.t - o.settle:
            return "the CLI started working after that"
        if not s.hooked or (p.was == "idle" and not (s.agents or s.queued or s.blocks)):
            return "its session file decides that"  # such a line may be a second late
    break_crew(s)
    ask_on(s)
    if s.queued:
        s.queued -= 1
        s.held = ""  # the registry, which is as old, may say that it is at rest
    elif s.agents:
        s.held = "esc"  # the registry may say that they are not running
    elif s.held == "stop":
        complete(s, s.stopped)
    else:
        rest(s, e.t, interrupted=True)
    return None


def turn_away(s: Session, e: Event, o: Options) -> str | None:
    """A hook of the user refused the prompt, so it starts no turn."""
    if e.t < s.began:
        return "older than the prompt"
    if s.held:
        return "the end of another turn is pending"
    if is_busy(s):
        s.held = "refused"  # its session file says when it is at rest
    else:
        rest(s, e.t, interrupted=True)
    return None


def missed(s: Session, e: Event, o: Options) -> str | None:
    """The CLI has been idle for a minute: the end of the turn was missed."""
    if s.tools or s.agents:
        return "a tool or an agent is running"
    if s.held == "stop":
        complete(s, s.stopped)
    elif s.held == "fail":
        die(s, e.t, s.error)
    else:
        rest(s, e.t)
    return None


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
    s.compacting = 0.0
    if s.rested and not is_busy(s):  # else hooks run, and the file says when it is at rest
        give_back(s, e.t)
    return None


def fade(s: Session, e: Event, o: Options) -> str | None:
    """It seems to be working, but has been silent for a long time."""
    s.stale = True
    return None
