"""Which tool and thread a question is about, and which event answers it.

Hooks of requests name a tool but not its id, hooks of forms only the server, reminders nothing.
"""

from __future__ import annotations

import re

from ..events import SPAWNS, Event
from ..options import Options
from ..session import Block, Session, own
from .steps import is_of_file
from .tools import had_finished, name_of

UNANSWERED = 5.0  # seconds; the CLI notifies 6 s after a dialog that is not answered


def named(s: Session, e: Event, o: Options) -> Block:
    """Build the question, with the id of the only tool that can be asking: requests have none."""
    if e.tool:
        same = [(i, t) for i, t in s.tools.items() if is_of(t.name, e.tool, e.asks)]
        found = [(i, t) for i, t in same if t.agent == e.agent]
        found = [(i, t) for i, t in found if t.key == e.tool_key] or found
        if e.asks == "form":  # those of one server name no tool; each tool shows one at a time
            asking = {b.tool_id for b in s.blocks.values() if b.key not in (0, e.key)}
            found = [(i, t) for i, t in reversed(found) if i not in asking] or found
    else:
        of_log = {i: t for i, t in s.logged.items() if not had_finished(s, i, e.t)}
        running = [*(s.tools or of_log).items()]
        found = [(i, t) for i, t in running if t.name not in SPAWNS]
        # The dialog may be a later one of an agent, but a main thread that keeps working is not
        # asking. Our hook may run late, if another one decides that it asks.
        found = [(i, t) for i, t in found if t.agent or not e.at or t.since <= e.at + o.settle]
        if not e.tool_id and e.detail:  # of those that run, a hook may have denied the others
            told = [(i, t) for i, t in found if (t.detail, t.agent) == (e.detail, e.agent)]
            found = told if len(told) == 1 else found
        found = found if len(found) == 1 else []
    slot, tool = found[-1] if found else ("", None)
    tool_id = e.tool_id or (slot if "?" not in slot else "")
    if tool is None or e.tool:
        about = (e.agent, e.tool, tool_id, e.detail)
    else:
        about = (tool.agent, tool.name, tool_id, e.detail or tool.detail)
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
    p = own(s)
    if p is None or p.says != "waiting" or e.about == "tool":
        return False
    return s.unreminded < p.at <= e.t - UNANSWERED


def is_answer(s: Session, b: Block, e: Event) -> bool:
    """Return whether an event shows that the tool or thread that asked moved on."""
    if e.t < b.since or is_of_file(s, b):
        return False
    if b.asks == "form" and e.kind == "form answer":  # a notice names none: only of an unnamed form
        return b.tool == e.tool or (not e.tool and (not b.tool or b.tool.startswith("mcp__")))
    if b.agent != e.agent:
        return False
    if e.kind in ("batch", "agent batch"):
        return True
    if b.tool_id and e.tool_id:
        is_last = b.asks == "form" and b.tool_id not in s.tools and is_of(e.tool, b.tool, b.asks)
        return (b.tool_id == e.tool_id or is_last) and not is_guess(s, b)
    if had_finished(s, e.tool_id, b.since):  # now it is also in the log
        return False
    tool = e.tool or name_of(s, e.tool_id)
    if b.tool and tool:
        return is_of(tool, b.tool, b.asks)
    # One of the two ids is unknown: it was answered if its thread has no running tool.
    return not any(t.agent == b.agent for t in s.tools.values())


def is_guess(s: Session, b: Block) -> bool:
    """Return whether another running tool may show that form, as its hook names only the server."""
    asking = {x.tool_id for x in s.blocks.values()}
    others = (t for i, t in s.tools.items() if i not in asking and t.agent == b.agent)
    return b.asks == "form" and any(is_of(t.name, b.tool, b.asks) for t in others)
