"""Decode the events and requests of OpenCode, and write answers for it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.events import LONGEST_ID, Event, Origin, is_id, junk
from ...core.request import Answer, Choice, Part, Request, are_distinct, digest_of
from ...core.text import ODD, line, marked, marked_line, tool_detail, usable_paths, whole
from ...core.untrusted import (
    Facts,
    converted,
    decoder_of,
    encoded,
    leniently,
    list_of,
    members,
    object_of,
    text_of,
)
from ..agent import OnDisk
from ..parts import (
    ALLOW,
    CHOOSE,
    STOP,
    UNREADABLE,
    UNTOLD,
    Input,
    Offered,
    chosen,
    inexact,
    json_part,
    part,
    question,
    readable,
    title_of,
    unclear,
    unshown,
)
from ..words import key_of_one

# Decode the events of OpenCode, as our plugin reports them: those of OpenCode 2 in the words of
# OpenCode 1, but with its own names of tools.
#
# An event of a subagent's session names, in `parent`, the session whose terminal shows it.
#
# One process runs several sessions at once; those outside its terminal also go on working.


#: Tools that run a subagent, by our names.
KEY: Final = "opencode"  # its name in evidence
SERVER: Final = "serve"  # the argument of a process without a terminal
SPAWNS: Final = {"task": "Task", "subagent": "Task"}
#: Event → kind; the content of some makes it more exact.
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
#: Kind of an event → its kind from a subagent, where it says nothing about the parent.
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
    """Return the properties of an event; of one that was cut, those that our plugin writes first.

    These name the session that asks, and the request: an agent that waits must not seem to work.
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


#: Tools that change the file which their arguments name.
WRITES: Final = frozenset({"edit", "write"})


def _tool(given: Facts, facts: dict[str, Any]) -> None:
    args = given.get("args")
    facts["tool"], facts["tool_id"] = text_of(given, "tool"), text_of(given, "callID")
    if isinstance(args, dict):
        facts["tool_key"] = crc32(data := encoded(args))
        facts["detail"] = tool_detail(facts["tool"], data)
        if facts["tool"] in WRITES:
            facts["writes"] = usable_paths([text_of(args, "filePath")])
    facts["tool"] = SPAWNS.get(facts["tool"], facts["tool"])
    if spawned := text_of(given, "spawned"):
        facts["spawned"] = whole(spawned)


def _permission_asked(given: Facts, facts: dict[str, Any]) -> None:
    """Use the id of the request as the id of the tool, as the reply names only the request."""
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
    "permission.asked": _permission_asked,
    "permission.replied": _answered,
    "question.asked": _question,
    "question.replied": _answered,
    "question.rejected": _answered,
}


# Decode requests of OpenCode in full, and write answers for it.


PERMISSION, QUESTION = "permission", "question"
#: Event → the kind of question.
ASKS: Final = {"permission.asked": PERMISSION, "question.asked": QUESTION}
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")

DENY: Final = Choice("deny", "No, and say why; the turn goes on", "message")
SKIP: Final = Choice("stop", "Do not answer, and stop the turn")


class _Properties(Struct):
    id: str
    sessionID: str
    # of a permission
    permission: str = ""
    patterns: list[str] = []
    metadata: dict[str, Any] = {}
    always: list[str] = []
    save: list[str] = []  # always, of OpenCode 2, which keeps it
    # of questions
    questions: Any = None
    tool: dict[str, Any] | None = None


class _Payload(Struct):
    type: str
    properties: _Properties
    parent: str = ""  # the session whose terminal shows it, if another


class _Question(Struct):
    question: str
    header: str = ""
    options: list[Offered] = []
    multiple: bool | None = None
    custom: bool | None = None  # False: a text is not expected, but may count as the first option


_decoded = decoder_of(_Payload)


class RequestId(NamedTuple):
    """The ids by which OpenCode finds a request again."""

    kind: str
    request: str
    session: str

    def verb(self, reply: bytes) -> str:
        """Return the word for this reply in OpenCode's HTTP."""
        return "reject" if self.kind == QUESTION and b'"answers"' not in reply else "reply"


def request_id(payload: bytes) -> RequestId | None:
    """Return the id of the request in a payload; None if there is none."""
    p = _decoded(payload)
    return _id(p) if p else None


def _id(p: _Payload) -> RequestId | None:
    kind, request = ASKS.get(p.type), p.properties.id
    return (
        RequestId(kind, request, p.properties.sessionID)
        if kind and _ID.fullmatch(request)
        else None
    )


def _lenient(payload: bytes, truncated: bool) -> _Payload:
    """Decode the fields to show of a payload that cannot be decoded exactly."""
    top = readable(payload, truncated)
    return leniently(_Payload, {**top, "properties": properties_of(top, truncated)})


def request(
    payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
) -> Request | None:
    """Return the request in a payload; None if it is not the payload of a question."""
    exact = None if truncated else _decoded(payload)
    p = exact or _lenient(payload, truncated)
    wanted = _id(p)
    if wanted is None:
        return None
    session = p.parent or wanted.session
    if not is_id(session):
        return None
    whole = msgspec.to_builtins(p) if exact else payload.hex()
    made = Request(
        id=name,
        session_id=session,
        agent=origin.agent,
        pid=origin.pid or 0,
        thread=wanted.session if p.parent else "",
        kind=wanted.kind,
        tool=p.properties.permission or QUESTION,
        asked_at=t,
        digest=digest_of(name, origin.agent, origin.pid, whole),
    )
    read = _permission if wanted.kind == PERMISSION else _asked
    made = msgspec.structs.replace(made, **read(p.properties))
    return made if exact else inexact(made, truncated)


def reply(payload: bytes, answer: Answer) -> bytes:
    """Return an answer as a body for OpenCode; empty if it takes none of this kind."""
    p = _decoded(payload)
    if p is None:
        return b""
    if ASKS.get(p.type) == PERMISSION:
        word = REPLIES.get(answer.choice)
        message = {"message": answer.message} if answer.message else {}
        return msgspec.json.encode({"reply": word, **message}) if word else b""
    asked = _questions(p.properties)
    if answer.choice == "stop":
        return b"{}"
    if answer.choice != "choose" or asked is None:
        return b""
    answers = [chosen(answer.answers.get(marked(q.question), []), q.options) for q in asked]
    return msgspec.json.encode({"answers": answers})


def on_disk(payload: bytes) -> tuple[OnDisk, ...]:
    """See `Agent.on_disk`.  The `filepath` of a patch is a list of names in the project."""
    p = _decoded(payload)
    if p is None or ASKS.get(p.type) != PERMISSION or p.properties.permission != "edit":
        return ()
    about = p.properties.metadata
    patched = [object_of(each) for each in list_of(about.get("files"))]
    named = [text_of(each, name) for each in patched for name in ("filePath", "movePath")]
    paths = dict.fromkeys([text_of(about, "filepath"), *named])
    return tuple(OnDisk(path, "changed") for path in paths if path.startswith("/"))


REPLIES: Final = {"allow": "once", "always": "always", "deny": "reject", "stop": "reject"}


def _permission(p: _Properties) -> Facts:
    given = Input(p.metadata)
    parts: list[Part] = []
    command, diff, path = (given.text(name) for name in ("command", "diff", "filepath"))
    if command:
        parts.append(part("command", command))
    if diff:
        parts.append(part("text", diff, path=path))
    elif path:
        parts.append(part("file", "", path=path))
    if p.patterns and p.patterns not in ([command], [path]):
        given.left["patterns"] = p.patterns
    parts += given.rest("Also" if parts else "")
    words = {"edit": "Change a file", "webfetch": "Fetch a page"}
    words |= dict.fromkeys(("bash", "shell"), "Run a command")
    rules = marked_line(", ".join(p.save or p.always))
    until = "in this project from now on" if p.save else "until it is restarted"
    always = Choice("always", f"Yes, and allow {rules} {until}")
    return {
        "title": words.get(p.permission) or f"Use {marked(p.permission) or 'a tool'}",
        "parts": tuple(parts),
        "choices": (ALLOW, *([always] if p.save or p.always else ()), DENY, STOP),
        **({} if parts else unclear(UNTOLD)),
    }


def _asked(p: _Properties) -> Facts:
    asked = _questions(p)
    if not asked:
        parts = () if p.questions is None else (json_part(p.questions),)
        return {"parts": parts, **unclear(UNREADABLE)}
    questions = tuple(
        question(q.question, q.header, q.options, bool(q.multiple), q.custom is not False)
        for q in asked
    )
    return {
        "title": title_of(questions),
        "questions": questions,
        "parts": unshown({"questions": p.questions}, _Question),
        "choices": (*([CHOOSE] if are_distinct(questions) else ()), SKIP),
    }


def _questions(p: _Properties) -> list[_Question] | None:
    return converted(p.questions, list[_Question])
