"""Decode the events of OpenCode, as our plugin reports them.

An event of a subagent's session names, in `parent`, the session whose terminal shows it.

One process runs several sessions at once: those that its terminal does not show work on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

from msgspec.structs import replace

from ....core.events import LONGEST_ID, Event, Origin, is_id, junk
from ....core.text import ODD, line, tool_detail, whole
from ....core.untrusted import Facts, encoded, members, object_of, text_of
from ...payloads import key_of_one

#: Tools that run a subagent, by the names that we know them under.
SPAWNS: Final = {"task": "Task"}
#: Event → kind; some say more with what they hold.
KINDS: Final[dict[str, str]] = {
    "session.created": "start",  # or agent start: by its parent
    "session.deleted": "end",
    "session.status": "activity",  # or said retry, rest, interrupt, note: by its type
    "session.idle": "rest",  # or interrupt: if the model has not answered
    "session.error": "failure",  # or interrupt: by its name
    "session.compacted": "compacted",
    "chat.message": "prompt",
    "tool.execute.before": "tool",
    "tool.execute.after": "tool end",
    "permission.asked": "request",
    "permission.replied": "form answer",  # or interrupt: by the reply
    "question.asked": "request",
    "question.replied": "form answer",
    "question.rejected": "interrupt",
    "dispose": "note",  # our plugin first ends all turns
}
#: What an event of a subagent becomes, because it says nothing about the parent.
BY_AGENT: Final = {
    "start": "agent start",
    "rest": "agent stop",
    "request": "agent request",
    "form answer": "agent tool end",
    "interrupt": "agent tool end",
    "tool": "agent tool",
    "tool end": "agent tool end",
}
STATUSES: Final = {"busy": "activity", "retry": "said retry", "idle": "rest"}
ABORTED: Final = "MessageAbortedError"


def event(
    payload: bytes, t: float, clock: float, origin: Origin, truncated: bool = False, name: str = ""
) -> Event:
    """Decode an event; return junk, with the reason, if it cannot be decoded."""
    if not (math.isfinite(t) and t > 0):
        return junk("invalid time", clock, clock)
    try:
        top = members(payload, truncated)
    except ODD as e:
        return junk(str(e)[:120], t, clock)
    name, given = text_of(top, "type")[:60], properties_of(top, truncated)
    if not name:
        return junk("no event name", t, clock)
    session, parent = text_of(given, "sessionID"), text_of(top, "parent")
    if name == "session.created" and (info := object_of(given.get("info"))):
        session, parent = session or text_of(info, "id"), parent or text_of(info, "parentID")
    kind = KINDS.get(name, "unknown")
    if name == "dispose":
        return Event(kind, name, t, clock, origin=origin)
    if not is_id(session) or len(parent) > LONGEST_ID:
        return junk("no usable session id", t, clock, name)
    facts: dict[str, Any] = {"cwd": text_of(top, "directory")}
    if (read := READ.get(name)) is not None:
        kind = read(given, facts) or kind
    if parent:
        kind = BY_AGENT.get(kind, "note")
        facts["agent"], session = session, parent
    origin = replace(origin, many=True)
    return Event(
        kind, name, t, clock, session, origin, key_of_one(payload, t), in_order=True, **facts
    )


def properties_of(top: Facts, truncated: bool) -> Facts:
    """Return what an event says; if it was cut in the middle of that, what our plugin says first.

    That is who asks, under which id: an agent that waits must not seem to work.
    """
    return object_of(top.get("properties", top if truncated else None))


# ---------------------------------------------------------------- facts by event


def _created(given: Facts, facts: dict[str, Any]) -> None:
    facts["cwd"] = text_of(object_of(given.get("info")), "directory") or facts["cwd"]


def _status(given: Facts, facts: dict[str, Any]) -> str:
    status = object_of(given.get("status"))
    facts["detail"] = line(text_of(status, "message"))
    kind = STATUSES.get(text_of(status, "type"), "note")
    return (_idle(given, facts) or kind) if kind == "rest" else kind


def _idle(given: Facts, facts: dict[str, Any]) -> str | None:
    return "interrupt" if given.get("answered") is False else None


def _error(given: Facts, facts: dict[str, Any]) -> str:
    error = object_of(given.get("error"))
    why, name = text_of(object_of(error.get("data")), "message"), text_of(error, "name")
    if name == ABORTED:
        return "interrupt"
    facts["error"] = line(": ".join(x for x in (name, why) if x) or "unknown")
    return "failure"


def _prompt(given: Facts, facts: dict[str, Any]) -> None:
    facts["prompt"] = line(text_of(given, "text"))


def _tool(given: Facts, facts: dict[str, Any]) -> None:
    args = given.get("args")
    facts["tool"], facts["tool_id"] = text_of(given, "tool"), text_of(given, "callID")
    if isinstance(args, dict):
        facts["tool_key"] = crc32(data := encoded(args))
        facts["detail"] = tool_detail(facts["tool"], data)
    facts["tool"] = SPAWNS.get(facts["tool"], facts["tool"])
    if spawned := text_of(given, "spawned"):
        facts["spawned"] = whole(spawned)


def _permission(given: Facts, facts: dict[str, Any]) -> None:
    """Use the id of the request as the id of the tool: the reply names nothing else."""
    facts["asks"], facts["tool_id"] = "permission", text_of(given, "id")
    facts["tool"] = SPAWNS.get(tool := text_of(given, "permission"), tool)
    about = given.get("metadata")
    if isinstance(about, dict):
        command, path = text_of(about, "command"), text_of(about, "filepath")
        facts["detail"] = line(command or path)
    if not facts.get("detail") and isinstance(patterns := given.get("patterns"), list):
        facts["detail"] = line(", ".join(x for x in patterns if isinstance(x, str)))


def _question(given: Facts, facts: dict[str, Any]) -> None:
    facts["asks"], facts["tool"], facts["tool_id"] = "question", "question", text_of(given, "id")
    facts["detail"] = tool_detail("question", encoded(given))


def _answered(given: Facts, facts: dict[str, Any]) -> str | None:
    facts["tool_id"] = text_of(given, "requestID")
    return "interrupt" if given.get("reply") == "reject" else None


#: Event → the function that reads its own fields, and may return a more exact kind.
READ: Final[dict[str, Callable[[Facts, dict[str, Any]], str | None]]] = {
    "session.created": _created,
    "session.status": _status,
    "session.idle": _idle,
    "session.error": _error,
    "chat.message": _prompt,
    "tool.execute.before": _tool,
    "tool.execute.after": _tool,
    "permission.asked": _permission,
    "permission.replied": _answered,
    "question.asked": _question,
    "question.replied": _answered,
    "question.rejected": _answered,
}
