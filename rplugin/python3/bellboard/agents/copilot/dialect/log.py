"""Decode entries of the log of GitHub Copilot CLI, events.jsonl: what no hook reports.

Entries are written up to a few seconds late, so tools and prompts only add to what hooks say; each
question has the id of its tool.  This file does no I/O, knows no clock, and raises only errors of
WRONG_SHAPE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from ....core.events import Event, Origin
from ....core.text import line
from ....core.untrusted import Facts, number_of, object_of, text_of, time_of
from ...words import of_input
from .hooks import SPAWNS

Reader = Callable[[Facts], tuple[str, Facts]]


def decoded(session_id: str, entry: Facts, t: float, now: float) -> Event:
    """Decode an entry; `t` is when it was written, if it does not say so itself."""
    name, data = entry["type"], entry.get("data")
    read = OF_ANY_AGENT.get(name) or (None if entry.get("agentId") else READ.get(name))
    kind, facts = read(data) if read is not None and isinstance(data, dict) else ("note", {})
    at = time_of(entry.get("timestamp")) or t
    return Event(kind, f"transcript {line(name, 60)}", at, now, session_id, **facts)


def account(record: Facts, about: Event) -> Event:
    """Return the event of an open session, or of its rest; what it does is in its log."""
    event = replace(about, name="registry", origin=Origin("copilot", about.pid))
    rests = number_of(record.get("restsSince"))
    return replace(event, kind="rest", t=min(rests, about.t)) if rests else event


def _tool(data: Facts) -> tuple[str, Facts]:
    tool = text_of(data, "toolName")
    done = of_input(tool, data.get("arguments"))
    return "tool", {**done, "tool": SPAWNS.get(tool, tool), "tool_id": text_of(data, "toolCallId")}


def _tool_end(data: Facts) -> tuple[str, Facts]:
    return "said result", {"tool_id": text_of(data, "toolCallId")}


def _asked(data: Facts) -> tuple[str, Facts]:
    about = object_of(data.get("permissionRequest"))
    tool_id = text_of(about, "toolCallId")
    if data.get("resolvedByHook") is True or not tool_id:
        return "note", {}
    told = (text_of(about, key) for key in ("fullCommandText", "fileName", "url", "intention"))
    detail = line(next(filter(None, told), ""))
    return "request", {"asks": "permission", "tool_id": tool_id, "detail": detail}


def _answered(data: Facts) -> tuple[str, Facts]:
    tool_id = text_of(data, "toolCallId")
    return ("form answer" if tool_id else "note"), {"tool_id": tool_id}


def _prompt(data: Facts) -> tuple[str, Facts]:
    return "said prompt", {"prompt": line(text_of(data, "content"))}


def _text(data: Facts) -> tuple[str, Facts]:
    return "said text", {"message": line(text_of(data, "content"))}


def _error(data: Facts) -> tuple[str, Facts]:
    kind, why = text_of(data, "errorType"), text_of(data, "message")
    return "said error", {"error": line(": ".join(filter(None, (kind, why))) or "unknown")}


#: Type of an entry → the function that reads it.
READ: Final[dict[str, Reader]] = {
    "user.message": _prompt,
    "assistant.message": _text,
    "tool.execution_start": _tool,
    "tool.execution_complete": _tool_end,
    "abort": lambda data: ("interrupt", {}),
    "session.error": _error,
    "session.compaction_complete": lambda data: ("compacted", {}),  # no hook reports that
}
#: What a subagent asks is shown in the terminal of its session.
OF_ANY_AGENT: Final[dict[str, Reader]] = {
    "permission.requested": _asked,
    "permission.completed": _answered,
    "human_response.recorded": _answered,
}
