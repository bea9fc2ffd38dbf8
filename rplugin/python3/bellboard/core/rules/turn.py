"""Rules of the turn: how it begins, goes on, ends, breaks off and dies."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..events import Event
from ..options import Options
from ..session import ABSENT, NO_WORK, Agent, Finished, Session
from .steps import (
    ask_no_more,
    begin_tool,
    complete,
    end,
    end_tool,
    give_back,
    is_alone,
    is_busy,
    newest_question,
    rest,
    roll_call,
    turn_to_work,
)
from .steps import finish as remember

RESTS: Final = frozenset({"idle", "completed", "error", "background"})
SPAWNS: Final = frozenset({"Agent", "Task"})  # tools that run a subagent


def begin(s: Session, e: Event, o: Options) -> str | None:
    """It is listed, at rest."""
    if s.turn != ABSENT and s.hooked:
        return "it is listed already"
    s.blocks, s.tools = {}, {}
    rest(s, e.t)
    s.turn = "background" if e.status == "shell" else "idle"
    s.over = e.t - o.swap  # nothing ended: what comes in the same moment counts
    return None


def reopen(s: Session, e: Event, o: Options) -> str | None:
    """Opened in another process, it begins at rest."""
    if e.origin.pid is None or ((p := s.processes.get(e.origin.pid)) and p.hooked):
        return "the same process has it already"
    s.blocks = {}
    rest(s, e.t)
    return None


def leave(s: Session, e: Event, o: Options) -> str | None:
    """It ended."""
    pid = e.origin.pid
    if e.kind == "end" and pid in s.processes and leaves_to_others(s, pid, e.t):
        return "another process still has it"
    end(s, e.t, e.source or e.kind, pid or next(iter(s.processes), 0))
    return None


def depart(s: Session, e: Event, o: Options) -> str | None:
    """Its process is gone."""
    gone = s.processes.get(e.pid or 0)
    if gone is None:
        return "not its process"
    if e.started and gone.started and e.started != gone.started:
        return "an earlier process had the same number"
    if leaves_to_others(s, gone.pid, e.t):
        return "another process still has it"
    end(s, e.t, "process gone", gone.pid)
    return None


def leaves_to_others(s: Session, pid: int | None, t: float) -> bool:
    """One process leaves; what the others say counts anew, as now they say it alone."""
    others = {
        p: replace(x, at=t, stood=False) if x.says else x
        for p, x in s.processes.items()
        if p != pid
    }
    if others:
        s.processes = others
    return bool(others)


def lose_pane(s: Session, e: Event, o: Options) -> str | None:
    """Its pane is gone: so is it, if no process of it is known, else only its address."""
    s.pane = s.pane_tty = ""
    if not s.processes:
        end(s, e.t, "pane gone", 0)
    return None


def work(s: Session, e: Event, o: Options) -> str | None:
    """A prompt begins a turn."""
    if s.over < e.t < s.stopped:  # its own Stop was told before it, and ended nothing
        complete(s, s.stopped)
        s.since = s.stopped
        return None
    if e.t < s.over and s.turn != ABSENT:
        return "older than the end of the turn"
    goes_on = s.turn == "working" and s.prompted and not s.held
    if e.kind == "prompt":
        if goes_on:
            s.queued += 1
        else:
            s.tasks = s.tasks_done = 0
        if o.prompts and e.prompt:
            s.prompts = (*s.prompts, e.prompt)[-o.prompts :]
    if not goes_on:
        s.tools = {}
    ask_no_more(s)
    s.prompted = e.kind != "registry busy"
    s.began = max(s.began, e.t) if s.prompted else s.began
    turn_to_work(s, e.t)
    s.rested = ""
    return None


def wake(s: Session, e: Event, o: Options) -> str | None:
    """Its main thread is at work."""
    if s.turn != ABSENT and e.t <= s.over + o.swap:
        return "older than the end of the turn"
    turn_to_work(s, e.t)
    s.rested = ""
    return go_on(s, e, o)


def go_on(s: Session, e: Event, o: Options) -> str | None:
    """News of the turn that runs."""
    if e.from_hook and s.turn != "working":  # a subagent's question stands before it
        return wake(s, e, o)
    s.retrying = ""
    s.trusted_until = 0.0
    if s.compacting:
        s.compacting = max(s.compacting, e.t)
    if e.from_hook:
        s.active = max(s.active, e.t)
    elif not is_alone(s):
        return None  # the hooks tell of its tools
    if e.kind in ("tool", "said tool"):
        begin_tool(s, e)
    elif e.kind in ("tool end", "said result", "said denial"):
        end_tool(s, e)
    elif e.kind == "batch":
        s.tools = {}
        remember(s, Finished(e.t))
    return None


def finish(s: Session, e: Event, o: Options) -> str | None:
    """The turn is over; agents or a queued prompt may keep it at work."""
    s.stopped = max(s.stopped, e.t)
    queued, s.queued = s.queued, 0
    if e.t < s.began:
        return "older than the prompt"
    ask_no_more(s)
    s.wakeups = e.wakeups
    if e.tasks is None:
        s.agents = survivors(s)
    s.tools = {}
    if e.tasks is not None:
        before = s.agents
        s.agents, s.shells = roll_call(s, e.tasks, e.t)
        if not any(x.type in NO_WORK for x in e.tasks):  # teammates are listed by another id
            gone = before.keys() - s.agents.keys()
            s.blocks = {k: b for k, b in s.blocks.items() if b.agent not in gone}
    if s.agents:
        turn_to_work(s, e.t, held="count" if e.tasks is None else "report")
        return None
    if queued and is_busy(s):
        turn_to_work(s, e.t, held="queue")
        return None
    complete(s, e.t)
    return None


def survivors(s: Session) -> dict[str, Agent]:
    """The agents that go on without a turn: one whose own tool never ended was broken off."""
    aborted = [t.since for t in s.tools.values() if t.name in SPAWNS and not t.agent]
    return {i: a for i, a in s.agents.items() if not aborted or a.since < min(aborted)}


def amend(s: Session, e: Event, o: Options) -> str | None:
    """A better witness of how the turn ended, where that had only been inferred."""
    if e.kind == "stop":
        s.stopped = max(s.stopped, e.t)
        s.wakeups = e.wakeups
    if not s.interrupted or e.t < s.began or e.t > s.over + o.settle:
        return recount(s, e, o) if e.kind == "stop" else "no turn ran"
    if e.kind == "stop":
        complete(s, e.t)
        return None
    return fail(s, e, o)


def recount(s: Session, e: Event, o: Options) -> str | None:
    """No turn ran, but it tells which shells still do."""
    if e.tasks is None:
        return "no turn ran"
    before = s.turn
    s.agents, s.shells = roll_call(s, e.tasks, e.t)
    s.wakeups = e.wakeups
    if s.shells and before != "background":
        s.turn, s.unseen = "background", before == "completed"
    elif not s.shells and before == "background":
        s.turn, s.unseen = ("completed" if s.unseen else "idle"), False
    else:
        return "no turn ran"
    return None


def fail(s: Session, e: Event, o: Options) -> str | None:
    """The turn died of an error."""
    if e.t < max(s.began, s.active if e.kind == "said error" else 0.0):
        return "older than the prompt"
    ask_no_more(s)
    rest(s, e.t)
    s.turn, s.error = "error", e.error
    return None


def break_off(s: Session, e: Event, o: Options) -> str | None:
    """A person interrupted the turn; a queued prompt starts at once, background agents go on."""
    if e.t < max(s.active, newest_question(s)):
        return "older than the newest hook"
    if any(p.says == "busy" and p.at > e.t - o.settle for p in s.processes.values()):
        return "the CLI went to work after that"
    s.blocks = {}
    s.agents = survivors(s)
    s.tools = {}
    if s.queued:
        s.queued -= 1
        turn_to_work(s, e.t)
    elif s.agents:
        s.held = "esc"  # and the registry, which is as old, may tell that they do not
    else:
        rest(s, e.t, interrupted=True)
    return None


def missed(s: Session, e: Event, o: Options) -> str | None:
    """The CLI has waited for a minute: the end of the turn was missed."""
    if s.tools or s.agents:
        return "a tool or an agent runs"
    rest(s, e.t)
    return None


def compact(s: Session, e: Event, o: Options) -> str | None:
    """The context is compacted: at work, and afterwards as before."""
    if s.turn in RESTS:
        s.rested, s.rested_since = s.turn, s.since
    elif s.turn != "working" and e.source == "manual":
        s.rested, s.rested_since = "idle", e.t  # whatever it was: at the prompt, it rests
    s.turn = "working"
    s.compacting = s.active = max(s.active, e.t)
    return None


def compacted(s: Session, e: Event, o: Options) -> str | None:
    """The compaction is over."""
    if not s.compacting:
        return "none ran"
    s.compacting = 0.0
    if s.rested and not (e.kind == "compaction quiet" and is_busy(s)):
        give_back(s, e.t)
    return None


def fade(s: Session, e: Event, o: Options) -> str | None:
    """At work, as far as is known, but long silent."""
    s.stale = True
    return None
