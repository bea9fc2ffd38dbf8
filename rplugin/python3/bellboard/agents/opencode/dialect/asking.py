"""Decode what OpenCode asks, in full, and write what it takes as the answer."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from ....core.events import Origin, is_id
from ....core.request import Answer, Choice, Part, Request, are_distinct, digest_of
from ....core.text import marked, marked_line
from ....core.untrusted import Facts, converted, list_of, object_of, text_of
from ...dialect import OnDisk
from ...parts import (
    ALLOW,
    CHOOSE,
    STOP,
    UNREADABLE,
    UNTOLD,
    Input,
    Offered,
    as_json,
    chosen,
    decoder_of,
    inexact,
    part,
    question,
    readable,
    title_of,
    unclear,
    unshown,
)
from .events import properties_of

PERMISSION, QUESTION = "permission", "question"
#: Event → what it asks.
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
    # of questions
    questions: Any = None
    tool: dict[str, Any] | None = None


class _Payload(Struct):
    type: str
    properties: _Properties
    parent: str = ""  # the session whose terminal shows it, if that is another


class _Question(Struct):
    question: str
    header: str = ""
    options: list[Offered] = []
    multiple: bool | None = None
    custom: bool | None = None  # False: it expects no text, but may take any as its first option


_decoded = decoder_of(_Payload)


class Id(NamedTuple):
    """How OpenCode finds a request again."""

    kind: str
    request: str
    session: str

    def verb(self, reply: bytes) -> str:
        """Return what its HTTP calls this reply."""
        return "reject" if self.kind == QUESTION and b'"answers"' not in reply else "reply"


def id_of(payload: bytes) -> Id | None:
    """Return the id of the request in a payload; None if it asks nothing."""
    p = _decoded(payload)
    return _id(p) if p else None


def _id(p: _Payload) -> Id | None:
    kind, request = ASKS.get(p.type), p.properties.id
    return Id(kind, request, p.properties.sessionID) if kind and _ID.fullmatch(request) else None


def _leniently(payload: bytes, truncated: bool) -> _Payload:
    """Decode what can be shown of a payload that cannot be decoded exactly."""
    top = readable(payload, truncated)
    given = properties_of(top, truncated)
    return _Payload(
        type=text_of(top, "type"),
        properties=_Properties(
            id=text_of(given, "id"),
            sessionID=text_of(given, "sessionID"),
            permission=text_of(given, "permission"),
            patterns=converted(given.get("patterns"), list[str]) or [],
            metadata=object_of(given.get("metadata")),
            questions=given.get("questions"),
        ),
        parent=text_of(top, "parent"),
    )


def request(
    payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
) -> Request | None:
    """Return what a payload asks; None if it is not the payload of a question."""
    exact = None if truncated else _decoded(payload)
    p = exact or _leniently(payload, truncated)
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
    """Return the body that OpenCode takes; empty if it takes none of that kind."""
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
    """See `Dialect.on_disk`.  The `filepath` of a patch is a list of names in the project."""
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
    words = {"bash": "Run a command", "edit": "Change a file", "webfetch": "Fetch a page"}
    rules = marked_line(", ".join(p.always))
    always = Choice("always", f"Yes, and allow {rules} until it is restarted")
    return {
        "title": words.get(p.permission) or f"Use {marked(p.permission) or 'a tool'}",
        "parts": tuple(parts),
        "choices": (ALLOW, *([always] if p.always else ()), DENY, STOP),
        **({} if parts else unclear(UNTOLD)),
    }


def _asked(p: _Properties) -> Facts:
    asked = _questions(p)
    if not asked:
        parts = () if p.questions is None else (as_json(p.questions),)
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
