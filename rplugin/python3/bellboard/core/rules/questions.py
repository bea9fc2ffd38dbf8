"""Rules for questions: what asks, when it shows, and what counts as the answer.

A question belongs to a thread (the main one, or a subagent) and to a tool.  It ends when that tool
or thread moves on; never by time alone, nor because somebody looked, nor because another thread
moved on.  A question that only the session file reports, without who asks, ends when the file says
so; while the file reports one, a Stop's list of running agents ends no question.  If several were
shown at once and the dialog of one does not follow the first answer, it waits behind whatever asks
next.  A question shows once the session file says that a dialog is open or, without a session file,
after the hold time.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..events import SPAWNS, Event
from ..options import APPROVAL_CLASS, Options
from ..session import ABSENT, Block, Session, oldest, own
from .ends import release
from .matching import (
    UNANSWERED,
    agent_of_form,
    is_answer,
    is_of_open_dialog,
    may_be_dialog_of,
    named,
)
from .steps import (
    ask_on,
    end_questions,
    is_busy,
    newest_question,
    newest_told,
    prove_questions,
    take_back_end,
    turn_to_work,
    work_between,
)
from .tools import begin_tool, end_tool, end_tools, has_finished, log_tool
from .turn import go_on

BY_FILE = ("registry waiting", "registry dialog")
#: A tool that is about to ask; newer CLIs, which give turns an id, send another hook when it does,
#: but not for a program that shows their dialogs itself, such as an editor.
ASKED_LATER = ("question", "agent question")
OWN_DIALOGS = frozenset({"", "cli", "sdk-cli"})  # entrypoints without such a program; "": not known
PRINTS = "sdk-cli"  # the entrypoint of a run that only prints its result
REVIEWED = ("request", "agent request")


def ask(s: Session, e: Event, o: Options) -> str | None:
    """It is asking you something."""
    if e.kind == "form" and (asking := agent_of_form(s, e)):
        e = replace(e, agent=asking)
    by_file = e.kind in BY_FILE
    if by_file and not all(b.passed for b in s.blocks.values()):
        return confirm(s, e, o)
    over = max(s.over, s.began, s.answered if by_file else 0.0) if not e.agent else 0.0
    if s.turn != ABSENT and e.t < over - o.swap:
        return "older than its answer"
    if has_finished(s, e):
        return "its tool has finished since"
    block = named(s, e, o)
    slot = f"{block.agent}:{block.tool_id or block.tool}"
    known = s.blocks.get(slot) or s.blocks.get(f"{block.agent}:{block.tool}")
    same = {k: b for k, b in s.blocks.items() if b is known or may_be_dialog_of(b, e)}
    p = own(s)
    shown = by_file or e.kind == "choice" or any(b.shown for b in same.values())
    shown = shown or (p is not None and p.says == "waiting" and p.at >= e.t - o.hold)
    delegated = s.reviewer == "program" and e.kind in REVIEWED and not shown
    newest = block if e.request or not known else known
    block = replace(
        block,
        asks=e.asks or (known.asks if known else "permission"),
        since=min([b.since for b in same.values()] + [e.t]),
        detail=block.detail or (known.detail if known else ""),
        shown_digest=block.shown_digest if block.detail or not known else known.shown_digest,
        request=newest.request,
        pipe=newest.pipe,
        shown=shown,
        reminded=e.kind == "nudge" or bool(known and known.reminded),
        early=not shown and (e.early or is_asked_later(e) or is_refused(s, e)),
    )
    block = left_to_program(block) if delegated else block
    s.blocks = {k: b for k, b in s.blocks.items() if k not in same} | {slot: block}
    if e.kind in ("question", "agent question"):
        begin_tool(s, e)
    s.unchecked = s.unchecked or e.kind == "choice"
    if by_file and s.turn not in (ABSENT, "working"):
        work_between(s, e.t)
    elif s.turn == ABSENT or (not e.agent and s.turn != "working"):
        turn_to_work(s, e.t)
    if not e.agent and not by_file:
        if e.kind == "question":  # a tool that began
            take_back_end(s, e.t)
        s.active = max(s.active, e.t)
        s.prompt_id = e.prompt_id or s.prompt_id
    return "a program decides that, so nobody is asked" if delegated else None


def left_to_program(b: Block) -> Block:
    """Return a question that is not for a person; who decides may have been read too late."""
    return replace(b, shown=False, waits=True, passed=True, pipe="")


def assign(s: Session, e: Event, o: Options) -> str | None:
    """Who decides on the permissions of this turn, you or a program, is known only now."""
    if not e.reviewer:
        return "for information only"
    is_left = e.reviewer == "program"
    if is_left and (p := own(s)) and p.says == "waiting" and not p.served:
        return "its title says that it asks you"
    asked = [(k, b) for k, b in s.blocks.items() if b.key and b.since >= e.t]
    changed = {
        k: left_to_program(b) if is_left else replace(b, waits=False, passed=False)
        for k, b in asked
        if b.asks == "permission" and b.passed != is_left and not b.queued
    }
    if not changed:
        return "for information only"
    s.blocks = {**s.blocks, **changed}
    return None


def is_asked_later(e: Event) -> bool:
    """Return whether a tool only announces that it asks, and another hook follows once it does."""
    entrypoint = e.origin.env.get("entrypoint", "")
    return e.kind in ASKED_LATER and bool(e.prompt_id) and entrypoint in OWN_DIALOGS


def is_refused(s: Session, e: Event) -> bool:
    """Return whether a run without a dialog refuses that itself, unless a hook allows it."""
    has_none = s.headless and not s.job and e.origin.env.get("entrypoint") == PRINTS
    return has_none and e.kind in REVIEWED and not e.pipe


def offer(s: Session, e: Event, o: Options) -> str | None:
    """A dialog is open while a tool waits. In auto mode, that is a question of the agent."""
    if s.held in ("stop", "fail"):  # the turn is over, though the file may say so only later
        return release(s, e, o)
    may_be_asked = e.source in ("", "busy") and s.mode in ("", "auto")  # "": not known
    if not (may_be_asked and s.tools):
        return "the user opened the dialog"
    return ask(s, e, o)


def choose(s: Session, e: Event, o: Options) -> str | None:
    """The CLI sent a notification of a choice that no hook had reported."""
    # An agent view sends those of all background sessions. The words alone decide: a session file
    # may be read late, and its dialog may be another question, or one that the user opened.
    if e.about == "elsewhere":
        return "another session is asking"
    return ask(s, e, o)


def remind(s: Session, e: Event, o: Options) -> str | None:
    """The CLI sent a reminder of a question that no hook had reported."""
    if is_busy(s) and (p := own(s)) and not p.shown and e.t < p.at:
        return "its session file says that it works since"
    asked = [b.since for b in s.blocks.values() if not b.passed]
    if asked and min(asked) < e.t - UNANSWERED:
        return confirm(s, e, o)
    is_late = e.asks == "permission" and s.unreminded and e.t - s.unreminded < o.late
    if is_late and not is_of_open_dialog(s, e):
        return "a late notification of a question already answered"
    return confirm(s, e, o) if asked else ask(s, e, o)


def recall(s: Session, e: Event, o: Options) -> str | None:
    """A subagent asks you; the turn itself is over."""
    if all(b.shown or b.passed for b in s.blocks.values()):
        return "only a running turn can ask that"
    return remind(s, e, o)


def confirm(s: Session, e: Event, o: Options) -> str | None:
    """The known question is still open."""
    by_main = any(not b.agent for b in s.blocks.values())
    if e.kind in BY_FILE and by_main and e.t < newest_question(s) - o.hold:
        return "older than the question"
    if e.kind == "nudge":  # of the first, as the dialogs come one after the other
        first = oldest(b for b in s.blocks.values() if not b.passed)
        s.blocks = {k: replace(b, reminded=True) if b is first else b for k, b in s.blocks.items()}
    prove_questions(s)
    return show(s, e, o)


def show(s: Session, e: Event, o: Options) -> str | None:
    """It is waiting for you, or for a hook while the CLI says that it is working."""
    if all(b.shown or b.passed for b in s.blocks.values()):
        return "already shown"
    by_time, by_file = e.kind == "question stood", e.kind in BY_FILE
    hold = o.hold if by_time else -o.hold if by_file else 0.0
    hidden = {k: b for k, b in s.blocks.items() if not (b.shown or b.passed)}
    # After more than the hold time, it may only have waited for the file to be read.
    ready = {k for k, b in hidden.items() if b.since + hold <= e.t or (by_file and b.waits)}
    if by_file and not ready and not any(b.shown for b in s.blocks.values()):
        ready = {min(hidden, key=lambda k: hidden[k].since)}  # the dialog is one of these
    ready = next_asked(s, e, o, ready) if by_file else ready
    waits = {k for k in ready if by_time and is_held(s, s.blocks[k])}
    s.blocks = {
        k: replace(b, shown=k not in waits, waits=k in waits) if k in ready else b
        for k, b in s.blocks.items()
    }
    return "a hook has not let it ask yet" if waits else None


def is_held(s: Session, b: Block) -> bool:
    """Return whether a question whose hold time is over is not asked yet."""
    return b.early or (is_busy(s) and not is_apart(s, b))


def is_apart(s: Session, b: Block) -> bool:
    """Return whether what the CLI says is not of this question: a server says it of each thread."""
    return bool(b.agent) and (p := own(s)) is not None and p.served


def next_asked(s: Session, e: Event, o: Options, ready: set[str]) -> set[str]:
    """Return which of these hidden questions may be the dialog that the session file reports."""
    queued = {k for k in ready if s.blocks[k].queued}
    others = ready - queued
    if queued and others and e.t > s.answered + o.outweigh:
        # The next dialog opens at once, so these were answered as well. If a hook holds one back
        # instead, it shows with the next dialog that no other question explains.
        over = {k for k in queued if not s.blocks[k].agent}
        s.blocks = {k: replace(b, passed=True) if k in over else b for k, b in s.blocks.items()}
        queued -= over
    # A question that a user's hook held back is not the dialog if there are others.
    fresh = {k for k in others if not s.blocks[k].waits}
    if queued and not fresh:
        fresh = {k for k in others if s.blocks[k].since > s.answered}
    return queued | fresh or others


def move_on(s: Session, e: Event, o: Options) -> str | None:
    """A tool or thread moved on: its question was answered."""
    if not e.agent:
        if refused := go_on(s, e, o):
            return refused
    elif e.kind == "agent batch":
        end_tools(s, e.agent, e.t)
    else:
        end_tool(s, e)
    ended = {k for k, b in s.blocks.items() if is_answer(s, b, e)}
    if e.kind == "form answer" and ended:  # of the first, as the dialogs come one after the other
        ended = {min(ended, key=lambda k: s.blocks[k].since)}
    if s.blocks and not ended:
        return "another tool is asking"
    end_questions(s, ended, e)
    if not e.agent and s.turn != "working":
        turn_to_work(s, e.t)
    return "another thread is asking" if ended and ask_on(s) else None


def grant(s: Session, e: Event, o: Options) -> str | None:
    """A tool that is only reported once it may run has started: what it asked was granted."""
    end_questions(s, {k for k, b in s.blocks.items() if is_answer(s, b, e)}, e)
    go_on(s, e, o)
    return None


def answered(s: Session, e: Event, o: Options) -> str | None:
    """The CLI is working again: its question was answered, or the first of several."""
    if e.t < newest_told(s):
        return "older than the question"
    shown = {k for k, b in s.blocks.items() if b.shown and not is_apart(s, b)}
    if s.turn != "working":
        work_between(s, e.t)
    if not shown:
        return "a subagent is asking"
    if len(shown) == 1:
        end_questions(s, shown, e)
    else:  # its dialogs come one after the other; the tool of each shows that it was answered
        s.answered = max(s.answered, e.t)
        s.blocks = {
            k: replace(b, shown=False, waits=True, queued=True) if k in shown else b
            for k, b in s.blocks.items()
        }
    return None


def withdraw(s: Session, e: Event, o: Options) -> str | None:
    """The CLI no longer asks: its title says so, or its session file is gone as it exits."""
    if e.status or not e.source:  # a word of a newer CLI says nothing of questions
        return "the CLI reports no status"
    old = {k for k, b in s.blocks.items() if b.since <= e.t}
    if not old:
        return "older than the question"
    end_questions(s, old, e)
    return None


def name_tool(s: Session, e: Event, o: Options) -> str | None:
    """The transcript shows the tool that asks."""
    if s.hooked:
        log_tool(s, e)
        unnamed = [k for k, b in s.blocks.items() if not (b.tool or b.key or b.agent)]
        if len(unnamed) != 1 or e.tool_id not in s.logged or e.tool in SPAWNS:
            return "hooks report its tools"
        asked = replace(s.blocks[unnamed[0]], tool=e.tool, tool_id=e.tool_id, detail=e.detail)
        s.blocks = {k: asked if k in unnamed else b for k, b in s.blocks.items()}
        return None
    s.rested = ""  # a turn, and not only a command
    begin_tool(s, e)
    prove_questions(s)
    return None


def suspect(s: Session, e: Event, o: Options) -> str | None:
    """A tool runs longer than usual: it is probably waiting for approval."""
    tool = s.tools[e.tool_id]
    is_slow = APPROVAL_CLASS.get(tool.name) == "slow" and not s.unchecked
    if is_slow and (p := own(s)) is not None and p.children:
        s.tools = {**s.tools, e.tool_id: replace(tool, proven=True)}
        return "its process has children, so it is running"
    asked = Block(
        "permission",
        e.t,
        tool.agent,
        tool.name,
        e.tool_id,
        tool.detail,
        shown=True,
        inferred=True,
    )
    s.blocks = {**s.blocks, f"{tool.agent}:{e.tool_id}": asked}
    return None
