"""Decode what Codex asks, in full, and write what its server takes as the answer.

A command that is declined is refused, and the turn goes on; `stop` is what “No” in its terminal
does.  Every member of the payload is shown.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from ....core.events import Origin, is_id
from ....core.request import Answer, Choice, Part, Request, are_distinct, digest_of
from ....core.text import marked
from ....core.untrusted import Facts, converted, object_of, text_of
from ...dialect import OnDisk
from ...parts import (
    ALIKE,
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
from .names import BASH, PATCH, QUESTION

ALWAYS: Final = Choice("always", "Yes, and do not ask about this again in this session")
DENY: Final = Choice("deny", "No; the turn goes on")
DECISIONS: Final = {
    "allow": "accept",
    "always": "acceptForSession",
    "deny": "decline",
    "stop": "cancel",
}

#: The files that a patch names.
_PATCHED: Final = re.compile(r"^[ \t]*\*{3} (?:(?:Add|Delete|Update) File|Move to):(.+)", re.M)


class _Payload(Struct):
    session_id: str
    hook_event_name: str
    tool_name: str
    turn_id: str = ""
    tool_use_id: str | None = None
    cwd: str | None = None
    tool_input: dict[str, Any] = {}
    agent_id: str | None = None
    agent_type: str | None = None


class _Question(Struct):
    id: str
    question: str
    header: str = ""
    options: list[Offered] | None = None


decoded = decoder_of(_Payload)


def request(
    payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
) -> Request | None:
    """Return what a payload asks; None if it is not the payload of a question."""
    exact = None if truncated else decoded(payload)
    p = exact or _leniently(payload, truncated)
    questions = p.hook_event_name == "PreToolUse" and p.tool_name == QUESTION
    if not (questions or p.hook_event_name == "PermissionRequest"):
        return None
    if not is_id(p.session_id):
        return None
    whole = msgspec.to_builtins(p) if exact else payload.hex()
    made = Request(
        id=name,
        session_id=p.session_id,
        agent=origin.agent,
        pid=origin.pid or 0,
        thread=p.agent_id or "",
        thread_type=p.agent_type or "",
        kind="question" if questions else "permission",
        tool=p.tool_name,
        asked_at=t,
        digest=digest_of(name, origin.agent, origin.pid, whole),
    )
    made = msgspec.structs.replace(made, **(_asked(p) if questions else _permission(p)))
    return made if exact else inexact(made, truncated)


def reply(payload: bytes, answer: Answer) -> bytes:
    """Return the result that the server takes; empty if it takes none of that kind."""
    if decision := DECISIONS.get(answer.choice):
        return msgspec.json.encode({"decision": decision})
    p = decoded(payload)
    asked = _questions(p.tool_input) if p else None
    if answer.choice != "choose" or asked is None:
        return b""
    answers: Facts = {}
    for q in asked:
        said = answer.answers.get(marked(q.question))
        if said:
            answers[q.id] = {"answers": chosen(said, q.options or ())}
    return msgspec.json.encode({"answers": answers})


def _leniently(payload: bytes, truncated: bool) -> _Payload:
    """Decode what can be shown of a payload that cannot be decoded exactly."""
    top = readable(payload, truncated)
    return _Payload(
        session_id=text_of(top, "session_id"),
        hook_event_name=text_of(top, "hook_event_name"),
        tool_name=text_of(top, "tool_name"),
        tool_input=object_of(top.get("tool_input")),
        agent_id=text_of(top, "agent_id"),
        agent_type=text_of(top, "agent_type"),
    )


def on_disk(payload: bytes) -> tuple[OnDisk, ...]:
    """See `Dialect.on_disk`."""
    p = decoded(payload)
    if p is None or p.tool_name != PATCH:
        return ()
    named = dict.fromkeys(map(str.strip, _PATCHED.findall(text_of(p.tool_input, "command"))))
    paths = (path if path.startswith("/") else f"{p.cwd or '?'}/{path}" for path in named)
    return tuple(OnDisk(path, "changed") for path in paths)


def _permission(p: _Payload) -> dict[str, Any]:
    given = Input(p.tool_input)
    command: tuple[Part, ...] = ()
    if p.tool_name in (BASH, PATCH) and (text := given.text("command")):
        command = (part("command" if p.tool_name == BASH else "text", text),)
    reason = given.text("description")
    rest = given.rest()
    words = {BASH: "Run a command", PATCH: "Change files"}
    return {
        "title": words.get(p.tool_name) or f"Use {marked(p.tool_name) or 'a tool'}",
        "parts": (*command, *([part("text", reason)] if reason else ()), *rest),
        "choices": (ALLOW, ALWAYS, DENY, STOP),
        **({} if command or rest else unclear(UNTOLD)),
    }


def _asked(p: _Payload) -> dict[str, Any]:
    asked = _questions(p.tool_input)
    if not asked:
        return {"parts": (as_json(p.tool_input),), **unclear(UNREADABLE)}
    questions = tuple(question(q.question, q.header, q.options or ()) for q in asked)
    # The answers are named by the ids.
    is_clear = are_distinct(questions) and len({q.id for q in asked}) == len(asked)
    return {
        "title": title_of(questions),
        "questions": questions,
        "parts": unshown(p.tool_input, _Question),
        **({"choices": (CHOOSE,)} if is_clear else unclear(ALIKE)),
    }


def _questions(given: Facts) -> list[_Question] | None:
    return converted(given.get("questions"), list[_Question])
