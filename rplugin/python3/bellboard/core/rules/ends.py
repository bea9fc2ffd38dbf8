"""Rules for the end of a turn: how it is over, fails, or is interrupted."""

from __future__ import annotations

from typing import Final

from ..events import Event
from ..options import Options
from ..session import Process, Session, own, says
from ..sources import set_aside
from .steps import (
    ask_no_more,
    ask_on,
    break_crew,
    complete,
    die,
    has_ended,
    hold,
    is_at_work,
    is_busy,
    newest_question,
    rest,
    roll_call,
    turn_to_work,
)
from .tools import of_agents, survivors

COMMAND: Final = "command"  # the source of a refusal that is the CLI's own
#: What reports the end of a turn → how that ended.
HOW: Final = {
    **dict.fromkeys(("stop", "rest", "said end"), "stop"),
    **dict.fromkeys(("failure", "said error", "said failure"), "fail"),
    "said cancel": "esc",
}


def finish(s: Session, e: Event, o: Options) -> str | None:
    """The turn is over once the CLI is at rest: Stop hooks or agents may keep it working."""
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
    s.wakeups = e.wakeups
    if e.tasks is None:
        s.agents = survivors(s)
    s.tools = of_agents(s.tools)
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
    """Return whether its session file has not told of the turn, or not since a host started."""
    if says(s):
        return says(s) == "waiting" or s.stated.at < s.began
    return p is not None and bool(p.file_session) and not p.states.at


def sent_on(s: Session, e: Event, o: Options) -> str | None:
    """A Stop hook made it continue: that was not the end."""
    # The CLI did not wait for our hook, so that the Stop may be stamped later.
    if e.t < max(s.stopped - o.outweigh, s.began, s.started):
        return "older than the newest Stop"
    s.stopped, s.sent = 0.0, e.t
    s.prompted = True
    turn_to_work(s, max(s.active, s.began))
    return None


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
    elif how == "esc":
        break_crew(s, e)
        rest(s, e.t, interrupted=True)
    elif s.turn == "background":
        s.unseen, s.interrupted, s.presumed = True, False, False
        recount(s, e)
    elif s.turn == "idle" and (s.presumed or (s.interrupted and e.kind != "rest") or not s.hooked):
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


def fail(s: Session, e: Event, o: Options) -> str | None:
    """The turn failed, once the CLI is at rest: it may go on with a queued prompt."""
    if e.t < s.began:
        return "older than the prompt"
    ask_no_more(s, e)
    error = e.error or s.error  # its hook and its log: one of them may have no words for it
    if is_at_work(s) and not s.inferred:
        hold(s, "fail")  # the CLI goes on while its hooks run
        s.error = error
    else:
        die(s, e.t, error)
    return None


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
    if is_busy(s) and not (e.from_hook or s.agents or s.queue or s.blocks):
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
