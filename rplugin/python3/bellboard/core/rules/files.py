"""Rules for the statements of session files and of programs themselves."""

from __future__ import annotations

from msgspec.structs import replace

from ..events import Event
from ..options import Options
from ..session import ABSENT, Session, is_read_retry, says
from ..sources import TERMINAL, is_hearsay
from . import rule
from .questions import ask, is_apart
from .steps import (
    begin_tool,
    complete,
    die,
    end_questions,
    end_tool,
    give_back,
    has_ended,
    hold,
    is_alone,
    is_busy,
    newest_told,
    overruled,
    prove_questions,
    rest,
    turn_to_work,
    work_between,
)

# Rules for what a program states: in its own report, session file or server, or in its title.
#
# Each sets the run to that, so that the machine goes on from there when the source ends. What
# is stated counts only against what is older, unless the machine has led for too long
# (`Event.stands`).


#: Reasons for holding an end back with which rest does not mean completion.
NO_END = frozenset({"", "esc", "moved"})


@rule
def go_busy(s: Session, e: Event, o: Options) -> str | None:
    """The CLI is working although no hook reported a prompt."""
    # Transcript entries have later stamps, and an interrupt may be logged after the next prompt.
    over = s.began if s.interrupted else s.over
    if not e.stands and e.t < over - (0.0 if s.hooked and not s.interrupted else o.settle):
        return "older than the end of the turn"
    s.prompted = False
    work_between(s, e.t)
    return None


@rule
def answered(s: Session, e: Event, o: Options) -> str | None:
    """The CLI is working again: its question was answered, or the first of several."""
    if e.status == "turn":
        return "its session file does not say whether it asks"
    if not e.stands and e.t < newest_told(s):
        return "older than the question"
    shown = {k for k in overruled(s, e) if s.blocks[k].shown and not is_apart(s, s.blocks[k])}
    if s.turn != "working":
        work_between(s, e.t)
    if not shown:
        return "a subagent is asking, or its own report may be forged"
    if e.stands:  # nothing has changed: a hook may hold them back
        hold_back(s, shown)
        return None
    before = s.answered
    if len(shown) == 1:
        end_questions(s, shown, e)
    else:  # its dialogs come one after the other; the tool of each shows that it was answered
        s.answered = max(s.answered, e.t)
        s.blocks = {
            k: replace(b, shown=False, waits=True, queued=True) if k in shown else b
            for k, b in s.blocks.items()
        }
    if e.about == "report":  # its session file may say next that it has asked since before
        s.answered = before
    return None


def hold_back(s: Session, asked: set[str]) -> None:
    """Show these questions no more until something else says that they are asked."""
    s.blocks = {
        k: replace(b, shown=False, waits=True) if k in asked else b for k, b in s.blocks.items()
    }


@rule
def settle(s: Session, e: Event, o: Options) -> str | None:
    """The CLI is at rest: no turn is running and no question is open."""
    if is_hearsay(s, e.about):
        return "its terminal may show another of its threads"
    if not e.stands and e.t < max(s.began, s.active - o.swap, newest_told(s)):
        return "older than the newest hook"
    if s.held in ("report", "count") and s.held_until > e.clock:
        return "what its last agent reports may follow"
    if e.status == "idle" and not s.blocks:
        if not s.hooked:
            s.tools = {}  # of a turn that only its log has shown
        if s.turn in ("completed", "error"):
            return see(s, e)
        if s.turn == "idle" and s.hooked:
            return "already at rest"  # it calls a prompt that a hook refused done as well
    before, asked = (s.turn, s.unseen), bool(s.blocks)
    if s.stated.ends:
        hear_how(s, e)
    told = {k for k, b in s.blocks.items() if b.key} if e.stands else set()
    hold_back(s, told)
    end_questions(s, overruled(s, e) - told, e)
    s.agents = {}
    if e.status != "shell":  # it knows of no other tasks
        s.shells = tuple(x for x in s.shells if x.type != "shell")
    if s.turn in ("working", "unknown"):
        over, is_alone_told = s.over, s.origin.many and e.about in TERMINAL and s.rested
        come_to_rest(s, e, asked)
        if is_alone_told:
            s.over = over
    s.tools = {}
    if s.turn != "error":
        unseen = s.turn == "completed" or s.unseen
        is_left = e.status == "shell" or bool(s.shells)
        at_rest = "completed" if unseen else "idle"
        s.turn, s.unseen = ("background", unseen) if is_left else (at_rest, False)
    return None if asked or before != (s.turn, s.unseen) else "already at rest"


def see(s: Session, e: Event) -> str | None:
    """Clear an end if the program itself no longer says how its turn ended: somebody types."""
    if e.about != "report" or s.stated.ends:
        return "already at rest"
    rest(s, e.t)
    return None


def hear_how(s: Session, e: Event) -> None:
    """Note how the turn ended, as the program itself says: also one that nothing else reported."""
    if s.turn not in ("working", "unknown"):
        turn_to_work(s, e.t)
    s.held = s.stated.ends
    if s.held == "fail":
        s.error = e.detail
    else:
        s.error, s.message = "", e.detail or s.message


def come_to_rest(s: Session, e: Event, asked: bool) -> None:
    """End the turn as it was reported to end; if nothing was, as what else is known suggests."""
    if s.held == "fail":
        die(s, e.t, s.error)
    elif s.held not in NO_END:
        queue = s.queue
        complete(s, max(e.t, s.stopped))
        s.queue = queue  # the next turn may have ended as well
    elif s.held == "moved":
        rest(s, e.t)
    elif s.stated.source == "report":
        rest(s, e.t, interrupted=not s.rested)
    elif has_ended(s) or not (s.hooked or asked or is_told(s) or is_starting(s)):
        complete(s, e.t)
    elif s.rested:
        give_back(s, e.t)
    else:
        rest(s, e.t, interrupted=True)
        s.presumed = True


def is_starting(s: Session) -> bool:
    """Return whether only its title shows work: a CLI that starts shows that before any prompt."""
    return bool(s.rested) and not s.hooked and s.stated.source == "title"


def is_told(s: Session) -> bool:
    """Return whether a transcript would have shown the end of this process's turn."""
    return bool(s.said_id or s.previous) and len(s.processes) == 1 and not s.left


@rule
def offer(s: Session, e: Event, o: Options) -> str | None:
    """A dialog is open: while a turn runs, it is the agent's own, and else the user's."""
    if s.held in ("stop", "fail"):  # the turn is over, though the file may say so only later
        return release(s, e, o)
    if s.rested:
        give_back(s, e.t)
        return None
    runs = s.began > s.stopped and not s.tools
    waits = bool(s.tools) and s.mode in ("", "auto")  # in other modes its request says that it asks
    if not (runs or waits):
        return "the user opened the dialog"
    return ask(s, e, o)


@rule
def release(s: Session, e: Event, o: Options) -> str | None:
    """Its session file no longer says that it is working: the end that was reported counts."""
    if s.held not in ("stop", "fail"):
        return "the CLI reports no status"
    # A dialog may hide that a Stop hook still runs, and many are closed at once.
    # After an error none is waited for, as they cannot send the turn on.
    is_hidden = e.kind == "states dialog" and (s.held == "stop" or bool(s.queue))
    s.held_until = e.clock + (o.outweigh if is_hidden else o.settle)
    return None


@rule
def withdraw(s: Session, e: Event, o: Options) -> str | None:
    """The CLI no longer asks: its title says so, or its session file is gone as it exits."""
    if e.status:  # a word of a newer CLI says nothing of questions
        return "the CLI reports no status"
    old = {k for k, b in s.blocks.items() if b.since <= e.t and (b.stated or not b.key)}
    if not old:
        return "older than the question"
    end_questions(s, old, e)
    return None


# Rules for the transcript: what it says counts if no hook or session file reports it better.


@rule
def hear(s: Session, e: Event, o: Options) -> str | None:
    """The transcript shows that it is working."""
    if e.member:  # it has no hook of its prompts, nor a session file
        s.teammate, s.member = True, e.member
    elif not is_alone(s) and s.turn != "unknown":
        began = e.t - (o.settle if s.hooked else 0.0)  # its stamp may be later than the file's
        if e.kind == "said prompt" and (not s.hooked or (is_busy(s) and began > s.over)):
            s.began, s.said_id = max(s.began, began), e.prompt_id
        note_tool(s, e)
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


def note_tool(s: Session, e: Event) -> None:
    """Note a tool that no hook reports: its session file may say later that it works, or asks."""
    if s.hooked or s.turn == ABSENT or e.t <= s.over:
        return
    if e.kind == "said tool":
        begin_tool(s, e)
    elif e.kind == "said result":
        end_tool(s, e)


@rule
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


@rule
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


@rule
def attempt(s: Session, e: Event, o: Options) -> str | None:
    """A request to the model, after one of which nothing came: the API failed, so it is a retry."""
    again = max(s.moved, s.began) < s.tried < e.t
    s.tried, s.tries = max(s.tried, e.t), s.tries + 1 if again else 0
    return retry(s, replace(e, detail=f"attempt {s.tries}"), o) if again else "the first attempt"


@rule
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


@rule
def name_tool(s: Session, e: Event, o: Options) -> str | None:
    """The transcript shows the tool that asks."""
    if s.hooked:
        return "hooks report its tools"
    s.rested = ""  # a turn, and not only a command
    begin_tool(s, e)
    prove_questions(s)
    return None
