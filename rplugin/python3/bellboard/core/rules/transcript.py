"""Rules for the transcript: what it says counts if no hook or session file reports it better."""

from __future__ import annotations

from msgspec.structs import replace

from ..events import Event
from ..options import Options
from ..session import Session, is_read_retry, says
from .steps import complete, hold, is_alone, is_busy, prove_questions, rest, turn_to_work
from .tools import begin_tool


def hear(s: Session, e: Event, o: Options) -> str | None:
    """The transcript shows that it is working."""
    if e.member:  # it has no hook of its prompts, nor a session file
        s.teammate, s.member = True, e.member
    elif not is_alone(s) and s.turn != "unknown":
        began = e.t - (o.settle if s.hooked else 0.0)  # its stamp may be later than the file's
        if e.kind == "said prompt" and (not s.hooked or (is_busy(s) and began > s.over)):
            s.began, s.said_id = max(s.began, began), e.prompt_id
        return "its hooks or session file report this better"
    if e.t <= s.over:
        return "older than the end of the turn"
    s.prompted = True
    if e.kind == "said prompt":
        s.began, s.said_id = e.t, e.prompt_id
    turn_to_work(s, e.t)
    if e.kind == "said tool":
        begin_tool(s, e)
    return None


def hear_end(s: Session, e: Event, o: Options) -> str | None:
    """The transcript shows that the turn is over, once its session file says so, too."""
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
        if taken and s.turn == "completed" and says(s) == "idle" and s.stated.at > e.t:
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


def name_tool(s: Session, e: Event, o: Options) -> str | None:
    """The transcript shows the tool that asks."""
    if s.hooked:
        return "hooks report its tools"
    s.rested = ""  # a turn, and not only a command
    begin_tool(s, e)
    prove_questions(s)
    return None
