"""Rules for the CLI's files: the registry and the transcript.

The registry shows what hooks miss: Esc, denials, approvals.  A value counts after the settle time,
and only against older hooks.  The transcript alone decides only if there is no other evidence.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..events import Event
from ..options import Options
from ..session import Session, is_read_retry, own
from .steps import (
    complete,
    die,
    end_questions,
    give_back,
    has_ended,
    hold,
    is_alone,
    is_busy,
    newest_told,
    rest,
    turn_to_work,
    work_between,
)
from .tools import begin_tool, log_tool

#: Reasons for holding an end back with which rest does not mean completion.
NO_END = frozenset({"", "esc", "moved", "refused"})


def go_busy(s: Session, e: Event, o: Options) -> str | None:
    """The CLI is working although no hook reported a prompt."""
    # Transcript entries have later stamps, and an interrupt may be logged after the next prompt.
    over = s.began if s.interrupted else s.over
    if e.t < over - (0.0 if s.hooked else o.settle):
        return "older than the end of the turn"
    s.prompted = False
    work_between(s, e.t)
    return None


def settle(s: Session, e: Event, o: Options) -> str | None:
    """The CLI is at rest: no turn is running and no question is open."""
    if e.t < max(s.began, s.active - o.swap, newest_told(s)):
        return "older than the newest hook"
    before, asked = (s.turn, s.unseen), bool(s.blocks)
    end_questions(s, set(s.blocks), e)
    s.agents = {}
    has_shell = e.status == "shell"
    if not has_shell:
        s.shells = ()
    if s.turn in ("working", "unknown"):
        if s.held == "fail":
            die(s, e.t, s.error)
        elif s.held not in NO_END:
            queue = s.queue
            complete(s, max(e.t, s.stopped))
            s.queue = queue  # the next turn may have ended as well
        elif s.held in ("moved", "refused"):
            rest(s, e.t)
        elif not (s.hooked or asked or is_told(s) or is_starting(s)) or (s.hooked and has_ended(s)):
            complete(s, e.t)
        elif s.rested:
            give_back(s, e.t)
        else:
            rest(s, e.t, interrupted=True)
            s.presumed = True
    s.tools, s.logged = {}, {}
    if s.turn != "error":
        unseen = s.turn == "completed" or s.unseen
        at_rest = "completed" if unseen else "idle"
        s.turn, s.unseen = ("background", unseen) if has_shell else (at_rest, False)
    return None if asked or before != (s.turn, s.unseen) else "already at rest"


def is_starting(s: Session) -> bool:
    """Return whether only its title shows work: a CLI that starts shows that before any prompt."""
    p = own(s)
    return bool(s.rested) and not s.hooked and p is not None and p.shown


def is_told(s: Session) -> bool:
    """Return whether a transcript would have shown the end of this process's turn."""
    return bool(s.said_id or s.previous) and len(s.processes) == 1 and not s.left


def hear(s: Session, e: Event, o: Options) -> str | None:
    """The transcript shows that it is working."""
    if not is_alone(s) and s.turn != "unknown":
        began = e.t - (o.settle if s.hooked else 0.0)  # its stamp may be later than the file's
        if e.kind == "said prompt" and (not s.hooked or (is_busy(s) and began > s.over)):
            s.began, s.said_id = max(s.began, began), e.prompt_id
        if e.kind == "said tool":
            log_tool(s, e)
        return "its hooks or session file report this better"
    if e.t <= s.over:
        return "older than the end of the turn"
    if s.turn == "unknown" and e.t < s.active:
        return "older than the newest sign of work"
    s.prompted = True
    if e.kind == "said prompt":
        s.began, s.said_id = e.t, e.prompt_id
    turn_to_work(s, e.t)
    if e.kind == "said tool":
        begin_tool(s, e)
    return None


def hear_end(s: Session, e: Event, o: Options) -> str | None:
    """The transcript shows that the turn is over, once its session file says so, too."""
    told = not (s.hooked or is_alone(s)) and s.turn == "working"
    if told and (e.kind == "said last" or is_busy(s)):  # Stop hooks or agents may still run
        s.stopped, s.held = max(s.stopped, e.t), "stop"
        return None
    if e.kind == "said last" and not is_alone(s) and s.turn != "unknown":
        s.last_words = max(s.last_words, e.t)
        return "its hooks or session file report this better"
    if e.kind == "said stop" and (s.held != "stop" or is_busy(s)):
        return "its hooks or session file report this better"
    if s.agents or s.held not in ("", "stop"):
        return "agents are still running"
    if e.t < max(s.began - (o.swap if s.held else 0.0), s.active - o.swap):
        return "older than the newest hook"
    if e.t < s.started:
        rest(s, e.t)  # it ended before it was found, so it counts as seen
        return None
    if not s.held and (s.queue or is_busy(s)):
        s.stopped = max(s.stopped, e.t)
        hold(s, "stop")  # no Stop reported it: the hooks of subagents may still come
    elif not s.queue:
        complete(s, max(e.t, s.stopped))
        s.inferred = e.kind == "transcript quiet"
    if s.queue:  # the transcript says next whether that prompt starts a turn
        s.held_until = e.clock + o.settle
    return None


def dequeue(s: Session, e: Event, o: Options) -> str | None:
    """The CLI took a prompt from its queue, or returned it for editing."""
    taken = [t for t in s.queue if t <= e.t + o.swap]
    is_prompt = taken or s.began > s.stopped  # not a command: those are queued, too
    if e.status == "dequeue" and is_prompt and e.t >= s.stopped:
        # The next turn starts, so older ends no longer matter.
        s.began = max(s.began, e.t)
        s.rested = ""
        if s.held in ("stop", "fail"):
            s.held, s.held_until, s.error = "", 0.0, ""
        p = own(s)
        if taken and s.turn == "completed" and p is not None and p.says == "idle" and p.at > e.t:
            rest(s, e.t, interrupted=True)  # that turn is over as well, without a Stop
            return None
    elif not taken:
        return "no prompt was queued"
    s.queue = () if e.status == "popAll" else s.queue[bool(taken) :]
    return None


def attempt(s: Session, e: Event, o: Options) -> str | None:
    """A request to the model, after one of which nothing came: the API failed, so it is a retry."""
    again = max(s.moved, s.began) < s.tried < e.t
    s.tried, s.tries = max(s.tried, e.t), s.tries + 1 if again else 0
    return retry(s, replace(e, detail=f"attempt {s.tries}"), o) if again else "the first attempt"


def retry(s: Session, e: Event, o: Options) -> str | None:
    """The API failed; the CLI is retrying."""
    if e.t < max(s.began, s.active):
        return "older than the newest hook"
    told = e.detail or "retrying"
    if is_read_retry(s):
        return "its screen shows more"
    if s.retrying == told or s.retrying.startswith(f"{told} "):
        return "already known"
    s.retrying, s.read_retry = told, False
    return None
