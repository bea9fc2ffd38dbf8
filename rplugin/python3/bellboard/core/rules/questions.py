"""Rules for questions: what asks, when it shows, and what counts as the answer.

A question belongs to a thread (the main one, or a subagent) and to a tool.  It ends when that tool
or thread moves on; never by time alone, nor because somebody looked, nor because another thread
moved on.  A question that only a statement reports, without who asks, ends when that changes.  If
several were shown at once and the dialog of one does not follow the first answer, it waits behind
whatever asks next.  A question shows once its program states that it asks, or after the hold time,
unless a hook may decide it before any dialog opens.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from ..events import SPAWNS, Event
from ..options import APPROVAL_CLASS, Options
from ..session import ABSENT, Block, Session, oldest, own, says
from . import rule
from .steps import (
    ask_on,
    begin_tool,
    complete,
    end_questions,
    end_tool,
    end_tools,
    had_finished,
    has_finished,
    is_alone,
    is_blind,
    is_of_file,
    name_of,
    names,
    prove_questions,
    rest,
    take_back_end,
    turn_to_work,
    work_between,
)
from .turns import go_on

UNANSWERED = 5.0  # seconds; the CLI notifies 6 s after a dialog that is not answered
BY_FILE = ("states waiting", "states dialog")
#: A tool that is about to ask; newer CLIs, which give turns an id, send another hook when it does,
#: but not for a program that shows their dialogs itself, such as an editor.
ASKED_LATER = ("question", "agent question")
OWN_DIALOGS = frozenset({"", "cli", "sdk-cli"})  # entrypoints without such a program; "": not known
PRINTS = "sdk-cli"  # the entrypoint of a run that only prints its result
FILES = ("file", "report")
REVIEWED = ("request", "agent request")


@rule
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
    block = named(s, e)
    slot = f"{block.agent}:{block.tool_id or block.tool}"
    known = s.blocks.get(slot) or s.blocks.get(f"{block.agent}:{block.tool}")
    same = {k: b for k, b in s.blocks.items() if b is known or may_be_dialog_of(b, e)}
    shown = by_file or e.kind == "choice" or any(b.shown for b in same.values())
    shown = shown or (says(s) == "waiting" and s.stated.at >= e.t - o.hold)
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
        stated=by_file or any(b.stated for b in same.values()),
        reminded=e.kind == "nudge" or any(b.reminded for b in same.values()),
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


@rule
def assign(s: Session, e: Event, o: Options) -> str | None:
    """Who decides on the permissions of this turn, you or a program, is known only now."""
    if not e.reviewer:
        return "for information only"
    is_left = e.reviewer == "program"
    if is_left and says(s) == "waiting" and s.stated.source != "server":
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


@rule
def choose(s: Session, e: Event, o: Options) -> str | None:
    """The CLI sent a notification of a choice that no hook had reported."""
    # An agent view sends those of all background sessions. The words alone decide: a session file
    # may be read late, and its dialog may be another question, or one that the user opened.
    if e.about == "elsewhere":
        return "another session is asking"
    return ask(s, e, o)


@rule
def remind(s: Session, e: Event, o: Options) -> str | None:
    """The CLI sent a reminder of a question that no hook had reported."""
    asked = [b.since for b in s.blocks.values() if not b.passed]
    is_late = e.asks == "permission" and s.unreminded and e.t - s.unreminded < o.late
    if is_late and not is_of_open_dialog(s, e):
        return "a late notification of a question already answered"
    return confirm(s, e, o) if asked else ask(s, e, o)


@rule
def recall(s: Session, e: Event, o: Options) -> str | None:
    """A subagent asks you; the turn itself is over."""
    if all(b.shown or b.passed for b in s.blocks.values()):
        return "only a running turn can ask that"
    return remind(s, e, o)


@rule
def confirm(s: Session, e: Event, o: Options) -> str | None:
    """The known question is still open."""
    if e.kind == "nudge":  # of the first, as the dialogs come one after the other
        first = oldest(b for b in s.blocks.values() if not b.passed)
        s.blocks = {k: replace(b, reminded=True) if b is first else b for k, b in s.blocks.items()}
    if e.kind in BY_FILE:
        s.blocks = {k: b if b.stated else replace(b, stated=True) for k, b in s.blocks.items()}
    prove_questions(s)
    return show(s, e, o)


@rule
def show(s: Session, e: Event, o: Options) -> str | None:
    """It is waiting for you, or for a hook while the CLI says that it is working."""
    if all(b.shown or b.passed for b in s.blocks.values()):
        return "already shown"
    by_time, by_file = e.kind == "question stood", e.kind in BY_FILE
    hold = o.hold if by_time else -o.hold if by_file else 0.0
    hidden = {k: b for k, b in s.blocks.items() if not (b.shown or b.passed)}
    # After more than the hold time, it may only have waited for the file to be read.
    ready = {k for k, b in hidden.items() if b.since + hold <= e.t or (by_file and b.waits)}
    ready = next_asked(s, e, o, ready) if by_file else ready
    waits = {k for k in ready if by_time and is_held(s, s.blocks[k])}
    s.blocks = {
        k: replace(b, shown=k not in waits, waits=k in waits) if k in ready else b
        for k, b in s.blocks.items()
    }
    return "a hook has not let it ask yet" if waits else None


def is_held(s: Session, b: Block) -> bool:
    """Return whether a question whose hold time is over is not asked yet."""
    return b.early or (says(s) == "busy" and not is_apart(s, b) and not is_beside(s, b))


def is_beside(s: Session, b: Block) -> bool:
    """Return whether a question shows beside the hooks that may decide it, so at once.

    Those of agents, forms and other CLIs are held back until these have run.
    """
    is_asked_there = s.origin.env.get("entrypoint", "") in OWN_DIALOGS
    is_held = not b.key or bool(b.agent) or b.asks == "form"
    return s.stated.source in FILES and is_asked_there and not is_held


def is_apart(s: Session, b: Block) -> bool:
    """Return whether what the CLI says is not of this question: a server says it of each thread."""
    return bool(b.agent) and s.stated.source == "server"


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
    return queued | fresh or others


@rule
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
    return "another thread is asking" if ended and ask_on(s) else None


@rule
def grant(s: Session, e: Event, o: Options) -> str | None:
    """A tool that is only reported once it may run has started: what it asked was granted."""
    end_questions(s, {k for k, b in s.blocks.items() if is_answer(s, b, e)}, e)
    go_on(s, e, o)
    return None


@rule
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


# ---------------------------------------------------------------- who asks, and who answers


def named(s: Session, e: Event) -> Block:
    """Build the question, with the id of the only tool that can be asking: requests have none."""
    if e.tool:
        same = [(i, t) for i, t in s.tools.items() if is_of(t.name, e.tool, e.asks)]
        found = [(i, t) for i, t in same if t.agent == e.agent]
        found = [(i, t) for i, t in found if t.key == e.tool_key] or found
        if e.asks == "form":  # those of one server name no tool; each tool shows one at a time
            asking = {b.tool_id for b in s.blocks.values() if b.key not in (0, e.key)}
            found = [(i, t) for i, t in reversed(found) if i not in asking] or found
    else:
        found = [(i, t) for i, t in s.tools.items() if t.name not in SPAWNS]
        if not e.tool_id and e.detail:  # of those that run, a hook may have denied the others
            told = [(i, t) for i, t in found if (t.detail, t.agent) == (e.detail, e.agent)]
            found = told if len(told) == 1 else found
        # If only the log can say which, it may not show yet that one has begun or ended.
        found = found if len(found) == 1 and e.about != "log" else []
    slot, tool = found[-1] if found else ("", None)
    tool_id = e.tool_id or (slot if "?" not in slot else "")
    if tool is None or e.tool:
        about = (e.agent, e.tool, tool_id, e.detail)
    else:
        is_named = not s.hooked and names(e.detail, tool)  # else its hook says it next
        detail = tool.detail if is_named else e.detail or tool.detail
        about = (tool.agent, tool.name, tool_id, detail)
    return Block(e.asks, e.t, *about, e.shown_digest, e.request, e.pipe, key=e.key)


def agent_of_form(s: Session, e: Event) -> str:
    """Return the subagent whose tool a form belongs to: its hook does not say which thread asks."""
    threads = [t.agent for t in s.tools.values() if is_of(t.name, e.tool, e.asks)]
    return threads[0] if len(threads) == 1 else ""


def is_of(tool: str, asked: str, asks: str) -> bool:
    """Return whether a question names this tool; a form names the tool's server."""
    if asks != "form" or tool == asked:
        return tool == asked
    server = re.sub(r"[^\w-]", "_", asked, flags=re.ASCII)  # as the CLI has it in names of tools
    return tool.startswith(f"mcp__{server}__")


def may_be_dialog_of(b: Block, e: Event) -> bool:
    """Return whether a question known only from its dialog is this one."""
    if b.tool_id and e.tool_id and b.tool_id != e.tool_id:
        return False
    return not (b.key or b.inferred) or (not b.tool and b.agent == e.agent)


def is_of_open_dialog(s: Session, e: Event) -> bool:
    """Return whether a reminder is of a dialog, not a tool's, that opened after the last answer."""
    if says(s) != "waiting" or e.about == "tool":
        return False
    return s.unreminded < s.stated.at <= e.t - UNANSWERED


def is_answer(s: Session, b: Block, e: Event) -> bool:
    """Return whether an event shows that the tool or thread that asked moved on."""
    if e.t < b.since or is_of_file(s, b):
        return False
    if b.asks == "form" and e.kind == "form answer":  # a notice names none: only of an unnamed form
        return b.tool == e.tool or (not e.tool and (not b.tool or b.tool.startswith("mcp__")))
    if b.agent != e.agent:
        return False
    if b.tool_id and e.tool_id:
        is_last = b.asks == "form" and b.tool_id not in s.tools and is_of(e.tool, b.tool, b.asks)
        return (b.tool_id == e.tool_id or is_last) and not is_guess(s, b)
    if had_finished(s, e.tool_id, b.since):  # now it is also in the log
        return False
    tool = e.tool or name_of(s, e.tool_id)
    if b.tool and tool:
        return is_of(tool, b.tool, b.asks)
    # Without both ids, the question was answered if its thread has no running tool.
    return not any(t.agent == b.agent for t in s.tools.values())


def is_guess(s: Session, b: Block) -> bool:
    """Return whether another running tool may show that form, as its hook names only the server."""
    asking = {x.tool_id for x in s.blocks.values()}
    others = (t for i, t in s.tools.items() if i not in asking and t.agent == b.agent)
    return b.asks == "form" and any(is_of(t.name, b.tool, b.asks) for t in others)


# Rules for the screen, the last resort: used only if there is no better evidence.


BETTER = "its hooks or session file report that"
OLDER = "older than the last screen"


@rule
def seen_busy(s: Session, e: Event, o: Options) -> str | None:
    """Its screen shows that it is working, or which attempt it makes."""
    if not is_alone(s):
        return _attempt(s, e)
    if e.t <= s.over + o.swap:
        return "older than the end of the turn"
    if refused := _refused(s, e):
        return refused
    end_questions(s, set(s.blocks), e)
    if s.turn != "working":
        turn_to_work(s, e.t)
    s.inferred = True
    s.retrying = e.detail
    return None


@rule
def seen_idle(s: Session, e: Event, o: Options) -> str | None:
    """Its screen shows that it is waiting for a prompt."""
    if refused := _refused(s, e):
        return refused
    asked = bool(s.blocks)
    end_questions(s, set(s.blocks), e)
    if s.turn not in ("working", "unknown"):
        return None if asked else "already at rest"
    if asked:
        rest(s, e.t, interrupted=True)
    else:
        complete(s, e.t)
    s.inferred = True
    return None


@rule
def seen_asks(s: Session, e: Event, o: Options) -> str | None:
    """Its screen shows a question, or the text of one that its session file reports."""
    if is_blind(s) and not is_alone(s):
        return _told_in_words(s, e)
    if refused := _refused(s, e):
        return refused
    known = next((b for b in s.blocks.values() if (b.asks, b.detail) == (e.asks, e.detail)), None)
    asked = Block(e.asks, e.t, "", e.tool, "", e.detail, shown=True, inferred=True)
    s.blocks = {"screen": replace(asked, since=known.since) if known else asked}
    if s.turn != "working":
        turn_to_work(s, e.t)
    return None


def _told_in_words(s: Session, e: Event) -> str | None:
    """A session file reports a question, and only the screen shows its text."""
    if e.t < s.watched:
        return OLDER
    s.watched = e.t
    slot, block = next(
        (k, b)
        for k, b in s.blocks.items()
        if b.shown and not b.key and (b.inferred or not b.detail)
    )
    if (block.asks, block.tool, block.detail) == (e.asks, e.tool, e.detail):
        return "already shown"
    since = e.t if block.detail else block.since
    read = {"asks": e.asks, "tool": e.tool, "detail": e.detail, "inferred": True}
    s.blocks = {**s.blocks, slot: replace(block, since=since, **read)}
    prove_questions(s)
    return None


def _attempt(s: Session, e: Event) -> str | None:
    """Better evidence reports the status, but only its screen may show that the API failed."""
    if s.turn != "working" or not (e.detail or s.retrying):
        return BETTER
    if e.t < max(s.watched, s.began, s.active):
        return OLDER
    s.watched = e.t
    if e.detail == s.retrying:
        return "already shown"
    s.retrying, s.read_retry = e.detail, bool(e.detail)
    return None


def _refused(s: Session, e: Event) -> str | None:
    if not is_alone(s):
        return BETTER
    if e.t < s.watched:
        return OLDER
    s.watched, s.screen = e.t, e.status
    return None
