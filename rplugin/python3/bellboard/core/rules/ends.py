"""Rules for the end of a turn: how it is over, fails, or is interrupted."""

from __future__ import annotations

from typing import Final

from ..events import Event
from ..options import Options
from ..session import NO_WORK, Process, Session, own
from .steps import (
    ask_no_more,
    ask_on,
    break_crew,
    complete,
    die,
    give_back,
    has_ended,
    hold,
    is_at_work,
    is_busy,
    is_waiting,
    newest_question,
    rest,
    roll_call,
    turn_to_work,
)
from .tools import of_agents, survivors

COMMAND: Final = "command"  # the source of a refusal that is the CLI's own
#: An Esc that is known is followed by these as well, so they only amend an end that was inferred.
FOLLOWS_ESC: Final = frozenset({"rest", "said failure", "said cancel"})


def finish(s: Session, e: Event, o: Options) -> str | None:
    """The turn is over once the CLI is at rest: Stop hooks or agents may keep it working."""
    if not e.again and s.began <= s.sent and e.t <= s.sent + o.outweigh:
        return "a Stop hook has already continued that turn"
    s.stopped, s.forced, s.sent = max(s.stopped, e.t), e.again, 0.0
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
        before = s.agents
        s.agents, s.shells = roll_call(s, e.tasks, e.t)
        gone = before.keys() - s.agents.keys()
        # It lists teammates by other ids, and no agents of agents.
        if gone and not (is_waiting(s) or any(x.type in NO_WORK for x in e.tasks)):
            s.blocks = {k: b for k, b in s.blocks.items() if b.agent not in gone}
    if s.agents:
        hold(s, "count" if e.tasks is None else "report")
        return None
    p = own(s)
    if p is not None and p.says == "busy":
        hold(s, "stop")
    elif not (p and p.says) and s.said_id and s.said_id in (s.prompt_id, e.prompt_id):
        hold(s, "stop")
        s.held_until = max(e.t + o.hooks, e.clock + o.settle)  # what follows may be read late, too
    elif s.queue or (p is not None and is_unheard(p, s.began)):
        hold(s, "stop")
        s.held_until = e.clock + o.settle  # it may never report this turn, nor that prompt start
    else:
        complete(s, e.t)
    return None


def is_unheard(p: Process, began: float) -> bool:
    """Return whether its session file has not told of the turn, or not since a host started."""
    if p.says:
        return p.says == "waiting" or p.at < began
    return bool(p.file_session) and not p.at


def release(s: Session, e: Event, o: Options) -> str | None:
    """Its session file no longer says that it is working: the end that was reported counts."""
    if s.held not in ("stop", "fail"):
        return "the CLI reports no status"
    # A dialog may hide that a Stop hook still runs, and many are closed at once.
    # After an error none is waited for, as they cannot send the turn on.
    is_hidden = e.kind == "registry dialog" and (s.held == "stop" or bool(s.queue))
    s.held_until = e.clock + (o.outweigh if is_hidden else o.settle)
    return None


def sent_on(s: Session, e: Event, o: Options) -> str | None:
    """A Stop hook made it continue: that was not the end."""
    # The CLI did not wait for our hook, so that the first Stop may be stamped later.
    late = o.swap if s.forced else o.outweigh
    if e.t < max(s.stopped - late, s.began, s.started):
        return "older than the newest Stop"
    s.stopped, s.sent = 0.0, e.t
    s.prompted = True
    turn_to_work(s, max(s.active, s.began))
    return None


def amend(s: Session, e: Event, o: Options) -> str | None:
    """Better evidence of how the turn ended, which was only inferred."""
    if e.kind == "stop":
        s.stopped = max(s.stopped, e.t)
        s.wakeups = e.wakeups
    if not _decides(s, e, o):
        return recount(s, e, o) if e.kind == "stop" else "no turn was running"
    if e.kind in ("stop", "said end", "rest"):  # an interrupted turn has no stop and no said end
        complete(s, e.t)
        return None
    return esc_late(s, e, o) if e.kind == "said cancel" else fail(s, e, o)


def _decides(s: Session, e: Event, o: Options) -> bool:
    """Return whether it tells how the last turn ended, which was only inferred."""
    unheard = e.kind == "said end" and not s.hooked and e.t >= s.active
    broken_off = s.interrupted and e.kind not in FOLLOWS_ESC
    if not (broken_off or s.presumed or unheard) or e.t < max(s.began, s.started):
        return False
    if s.presumed and e.prompt_id and e.prompt_id == s.prompt_id:
        return True  # on a busy machine its hook may start much later
    return e.t <= s.over + (o.outweigh if s.presumed else o.settle)


def catch_up(s: Session, e: Event, o: Options) -> str | None:
    """Another turn ended: its prompt was queued, and nothing else reported it."""
    if not (e.prompt_id and e.prompt_id != s.prompt_id and e.t > s.over):
        return "no turn ran"
    return finish(s, e, o)


def recount(s: Session, e: Event, o: Options) -> str | None:
    """No turn was running. It lists the shells that still run."""
    if catch_up(s, e, o) is None:
        return None
    before, is_over = s.turn, s.turn == "background" and _decides(s, e, o)
    if is_over:
        s.unseen, s.interrupted, s.presumed = True, False, False
    if e.tasks is None:
        return None if is_over else "no turn was running"
    s.agents, s.shells = roll_call(s, e.tasks, e.t)
    s.wakeups = e.wakeups
    if s.shells and before != "background":
        s.turn, s.unseen = "background", before == "completed"
    elif not (s.shells or s.agents) and before == "background":
        s.turn, s.unseen = ("completed" if s.unseen else "idle"), False
    elif not is_over:
        return "no turn was running"
    return None


def fail(s: Session, e: Event, o: Options) -> str | None:
    """The turn failed, once the CLI is at rest: it may go on with a queued prompt."""
    if e.t < max(s.began, s.active if e.kind == "said error" else 0.0):
        return "older than the prompt"
    ask_no_more(s, e)
    error = e.error or s.error  # its hook and its log: one of them may have no words for it
    if is_at_work(s) and not s.inferred:
        hold(s, "fail")  # the CLI goes on while its hooks run
        s.error = error
    else:
        die(s, e.t, error)
    return None


def explain(s: Session, e: Event, o: Options) -> str | None:
    """Its log or hook has words for the error that ended the turn; what came first had none."""
    if s.error or not e.error or not s.began <= e.t <= s.over + o.settle:
        return "no turn is running"
    s.error = e.error
    return None


def fail_late(s: Session, e: Event, o: Options) -> str | None:
    """Its log says that the turn failed, although its hook reported a normal end."""
    if refused := _not_its_end(s, e, o):
        return refused
    if s.turn != "completed":
        return fail(s, e, o)
    die(s, e.t, e.error)
    return None


def esc_late(s: Session, e: Event, o: Options) -> str | None:
    """Its log says that the turn was interrupted, although its hook reported a normal end."""
    if refused := _not_its_end(s, e, o):
        return refused
    break_crew(s, e)
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
    if e.t < max(s.began, s.active - o.swap, newest_question(s, agents=False)):
        return "older than the newest hook"
    if e.inferred and 0.0 < e.at <= s.began + o.swap:  # our hook of that ran after the prompt's
        return "it rested before a queued prompt"
    if e.inferred and s.held in ("report", "count"):
        return "the turn has ended, and its agents go on"  # that it rests is no news
    if (p := own(s)) and p.says == "busy":
        if p.at > e.t - o.settle:
            return "the CLI started working after that"
        is_alone = p.was == "idle" and not (s.agents or s.queue or s.blocks)
        if not e.from_hook and (is_alone or not s.hooked):
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
    is_sure = s.prompt_id or any(not t.agent for t in s.tools.values())
    if s.queue and is_sure:  # it was typed into a running turn, which goes on
        s.queue = s.queue[:-1]
        return None
    if s.held:
        return "the end of another turn is pending"
    if is_busy(s):
        s.held = "refused"  # its session file says when it is at rest
    else:
        break_crew(s, e)
        rest(s, e.t, interrupted=e.source != COMMAND)
        s.presumed = True  # some CLIs also report a normal end, after a refusal within the turn
    return None


def excuse(s: Session, e: Event, o: Options) -> str | None:
    """The command that started the turn could not be run: nothing was interrupted."""
    is_its = e.source == COMMAND and _is_refused(s, e) and s.began <= e.t <= s.over
    if not (s.interrupted and s.presumed and is_its):
        return "no turn is running"
    s.interrupted = False
    return None


def _is_refused(s: Session, e: Event) -> bool:
    """Return whether a refusal is of the newest prompt: others may run beside a turn."""
    return e.source != COMMAND or s.prompt.partition(" ")[0] == e.detail


def missed(s: Session, e: Event, o: Options) -> str | None:
    """The CLI has been idle for a minute: the end of the turn was missed."""
    if s.tools or s.agents:
        return "a tool or an agent is running"
    if e.t < max(s.began, s.active) + o.outweigh:  # a prompt came just in time
        return "it has worked since"
    if s.held == "stop":
        complete(s, s.stopped)
    elif s.held == "fail":
        die(s, e.t, s.error)
    elif s.rested:
        give_back(s, e.t)
    else:
        rest(s, e.t)
    return None
