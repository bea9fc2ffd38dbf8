"""Rules of questions: what asks, when it shows, and what counts as the answer.

A question belongs to a thread (the main one, or a subagent) and to a tool.  It ends when that tool
or thread moves on, never by time alone, and never because somebody looked.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..events import Event
from ..options import APPROVAL_CLASS, Options
from ..session import ABSENT, Block, Finished, Session
from .steps import (
    begin_tool,
    end_questions,
    end_tool,
    finish,
    has_finished,
    newest_question,
    turn_to_work,
)
from .turn import go_on


def ask(s: Session, e: Event, o: Options) -> str | None:
    """It asks a person, and waits."""
    by_registry = e.kind == "registry waiting"
    over = max(s.over, s.began, s.answered if by_registry else 0.0) if not e.agent else 0.0
    if s.turn != ABSENT and e.t < over - o.swap:
        return "older than what ended it"
    if has_finished(s, e):
        return "its tool has ended since"
    if by_registry and s.blocks:
        return confirm(s, e, o)
    tool_id = e.tool_id or tool_of_question(s, e)
    slot = f"{e.agent}:{tool_id or e.tool}"
    known = s.blocks.get(slot) or s.blocks.get(f"{e.agent}:{e.tool}")
    same = {k: b for k, b in s.blocks.items() if b is known or is_nameless(b, e)}
    shown = by_registry or e.kind == "choice" or any(b.shown for b in same.values())
    shown = shown or any(p.says == "waiting" and p.at >= e.t - o.hold for p in s.processes.values())
    block = Block(
        asks=e.asks or (known.asks if known else "permission"),
        since=min([b.since for b in same.values()] + [e.t]),
        agent=e.agent,
        tool=e.tool,
        tool_id=tool_id,
        detail=e.detail or (known.detail if known else ""),
        shown=shown,
        key=e.key,
    )
    s.blocks = {k: b for k, b in s.blocks.items() if k not in same} | {slot: block}
    if e.kind == "question":
        begin_tool(s, e)
    if s.turn == ABSENT or (not e.agent and s.turn != "working"):
        turn_to_work(s, e.t)
    if not e.agent and not by_registry:
        s.active = max(s.active, e.t)
    return None


def is_nameless(b: Block, e: Event) -> bool:
    """A question of which nothing was known, and which is this one: its thread's, or anybody's."""
    return not b.tool and (b.agent == e.agent or not b.key)


def remind(s: Session, e: Event, o: Options) -> str | None:
    """A notice of a question that no hook had told."""
    if e.asks == "permission" and s.answered and e.t - s.answered < o.late:
        return "a late notice of a question that was answered"
    if s.blocks:
        return confirm(s, e, o)
    return ask(s, e, o)


def confirm(s: Session, e: Event, o: Options) -> str | None:
    """The question that is known still waits."""
    by_main = any(not b.agent for b in s.blocks.values())
    if e.kind == "registry waiting" and by_main and e.t < newest_question(s) - o.hold:
        return "older than the question"
    return show(s, e, o)


def show(s: Session, e: Event, o: Options) -> str | None:
    """It waits for you."""
    if all(b.shown for b in s.blocks.values()):
        return "already shown"
    hold = o.hold if e.kind == "question stood" else 0.0
    s.blocks = {
        k: replace(b, shown=True) if not b.shown and b.since + hold <= e.t else b
        for k, b in s.blocks.items()
    }
    return None


def move_on(s: Session, e: Event, o: Options) -> str | None:
    """A tool or thread has moved on: what it asked was answered."""
    if not e.agent:
        go_on(s, e, o)
    elif e.kind == "agent batch":
        finish(s, Finished(e.t, e.agent))
    else:
        end_tool(s, e)
    ended = {k for k, b in s.blocks.items() if is_answer(s, b, e)}
    if s.blocks and not ended:
        return "the question is another tool's"
    end_questions(s, ended, e.t)
    if not e.agent and s.turn != "working":
        turn_to_work(s, e.t)
    return None


def answered(s: Session, e: Event, o: Options) -> str | None:
    """The CLI is at work again: the questions were answered."""
    if e.t < newest_question(s):
        return "older than the question"
    end_questions(s, set(s.blocks), e.t)
    if s.turn != "working":
        turn_to_work(s, e.t)
    return None


def suspect(s: Session, e: Event, o: Options) -> str | None:
    """A tool runs longer than its kind does: it probably waits for an approval."""
    tool = s.tools[e.tool_id]
    is_slow = APPROVAL_CLASS[tool.name] == "slow"
    if is_slow and any(p.children for p in s.processes.values()):
        s.tools = {**s.tools, e.tool_id: replace(tool, proven=True)}
        return "its process has children: it runs"
    asked = Block("permission", e.t, tool.agent, tool.name, e.tool_id, tool.detail, True, True)
    s.blocks = {**s.blocks, f"{tool.agent}:{e.tool_id}": asked}
    return None


def is_answer(s: Session, b: Block, e: Event) -> bool:
    """Whether this is the tool or thread that asked, moving on."""
    if b.agent != e.agent or e.t < b.since:
        return False
    if e.kind == "said result":
        known = s.tools.get(e.tool_id)
        return known is None or not b.tool or known.name == b.tool
    if e.kind in ("batch", "agent batch", "said denial") or not b.tool:
        return True  # the whole thread moved on, or nobody knows which tool asked
    if b.asks == "form":
        return e.kind == "form answer" or e.tool.startswith(f"mcp__{b.tool}__")
    if b.tool_id and e.tool_id:
        return b.tool_id == e.tool_id
    return b.tool == e.tool


def tool_of_question(s: Session, e: Event) -> str:
    """The id of the running tool that a request is about; the request itself does not tell."""
    same = [i for i, t in s.tools.items() if t.name == e.tool and t.agent == e.agent]
    exact = [i for i in same if s.tools[i].key == e.tool_key]
    found = (exact or same)[-1:]
    return found[0] if found and "?" not in found[0] else ""
