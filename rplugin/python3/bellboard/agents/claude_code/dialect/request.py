"""Decode what Claude Code asks, in full, from the payload of the hook that reported the question.

Everything that the tool would get is shown: whatever has no part of its own is in the last part.  A
payload that is truncated, or cannot be decoded exactly, is not complete, and cannot be answered
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from ....core.events import Origin, is_id
from ....core.request import Choice, Part, Request, are_distinct, digest_of
from ....core.text import marked
from ....core.untrusted import object_of, text_of
from ...parts import (
    ALLOW,
    CHOOSE,
    STOP,
    Input,
    as_json,
    decoder_of,
    inexact,
    part,
    readable,
    title_of,
    unshown,
)
from .forms import AskedQuestion, fields_of, questions_of
from .names import KINDS, QUESTIONS
from .rules import BASH
from .suggestions import NO_LONGER, WHOSE, WORDS, Suggestion, suggestions_of
from .tools import shown


class Asked(Struct):
    """The fields of the payload of a question."""

    session_id: str
    hook_event_name: str
    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    cwd: str = ""
    permission_suggestions: Any = None
    agent_id: str | None = None
    agent_type: str | None = None
    # of a form
    mcp_server_name: str = ""
    message: str = ""
    mode: str = ""
    url: str = ""
    requested_schema: dict[str, Any] = {}


asked_in = decoder_of(Asked)

DENY: Final = Choice("deny", "No, and say why", "message?")
EDIT: Final = Choice("edit", "Yes, but run another command", "input")
SKIP: Final = Choice("deny", "Do not answer, and say why", "message?")
APPROVE: Final = Choice("approve", "Yes, and ask before each edit")
APPROVE_EDITS: Final = Choice("approve-edits", WORDS["edits"] + WHOSE["session"], note=NO_LONGER)
KEEP: Final = Choice("keep", "No, keep planning", "message")
FILL: Final = Choice("fill", "Send the form", "content")
DECLINE: Final = Choice("decline", "Decline")


def request(
    payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
) -> Request | None:
    """Return what a payload asks; None if it is not the payload of a question."""
    asked = None if truncated else asked_in(payload)
    exact = asked is not None
    asked = asked or _leniently(payload, truncated)
    kind = KINDS.get(asked.hook_event_name)
    asks = kind in ("request", "form") or (kind == "tool" and asked.tool_name in QUESTIONS)
    if not asks or not is_id(asked.session_id):
        return None
    facts = (
        name,
        origin.agent,
        asked.session_id,
        origin.pid,
        asked.agent_id,
        asked.hook_event_name,
    )
    read = _form if kind == "form" else READERS.get(asked.tool_name, _permission)
    made = Request(
        id=name,
        session_id=asked.session_id,
        agent=origin.agent,
        pid=origin.pid or 0,
        thread=asked.agent_id or "",
        thread_type=asked.agent_type or "",
        kind="form" if kind == "form" else QUESTIONS.get(asked.tool_name, "permission"),
        tool=asked.tool_name or asked.mcp_server_name,
        asked_at=t,
        digest=digest_of(*facts, msgspec.to_builtins(asked) if exact else payload.hex()),
    )
    made = msgspec.structs.replace(made, **read(asked, origin.env))
    return made if exact else inexact(made, truncated)


def _leniently(payload: bytes, truncated: bool) -> Asked:
    """Decode what can be shown of a payload that cannot be decoded exactly."""
    top = readable(payload, truncated)
    return Asked(
        session_id=text_of(top, "session_id"),
        hook_event_name=text_of(top, "hook_event_name"),
        tool_name=text_of(top, "tool_name"),
        tool_input=object_of(top.get("tool_input")),
        agent_id=text_of(top, "agent_id"),
        agent_type=text_of(top, "agent_type"),
        mcp_server_name=text_of(top, "mcp_server_name"),
        message=text_of(top, "message"),
    )


# ---------------------------------------------------------------- by kind

Read = dict[str, Any]  # fields of a request
Env = Mapping[str, str]  # of its process


def suggested(asked: Asked, env: Env) -> tuple[list[Suggestion], tuple[str, ...]]:
    """Return what it suggests, and in words what of that is not offered."""
    command = asked.tool_input.get("command") if asked.tool_name == BASH else None
    return suggestions_of(asked.permission_suggestions, command, asked.cwd, env)


def _permission(asked: Asked, env: Env) -> Read:
    title, parts = shown(asked.tool_name, asked.tool_input)
    suggestions, more = suggested(asked, env)
    choices = [ALLOW, *(each.choice for each in suggestions)]
    command = asked.tool_input.get("command")
    if asked.tool_name == BASH and isinstance(command, str) and marked(command) == command:
        choices.append(EDIT)
    return {"title": title, "parts": parts, "choices": (*choices, DENY, STOP), "more": more}


def _questions(asked: Asked, env: Env) -> Read:
    questions = questions_of(asked.tool_input)
    if not questions:
        return {
            "title": "Answer questions",
            "parts": (as_json(asked.tool_input),),
            "choices": (SKIP, STOP),
        }
    return {
        "title": title_of(questions),
        "questions": questions,
        "parts": unshown(asked.tool_input, AskedQuestion),
        "choices": (*([CHOOSE] if are_distinct(questions) else ()), SKIP, STOP),
    }


def _plan(asked: Asked, env: Env) -> Read:
    given = Input(asked.tool_input)
    text, path = given.text("plan"), given.text("planFilePath")
    return {
        "title": "Approve a plan" if text.strip() else "Leave plan mode, without a plan",
        "parts": (part("plan", text, path=path), *given.rest()),
        "choices": (APPROVE, APPROVE_EDITS, KEEP, STOP),
    }


READERS: Final[dict[str, Callable[[Asked, Env], Read]]] = {
    "AskUserQuestion": _questions,
    "ExitPlanMode": _plan,
}


def _form(asked: Asked, env: Env) -> Read:
    fields = fields_of(asked.requested_schema)
    parts: tuple[Part, ...] = (part("text", asked.message),)
    if fields is None or asked.url:
        shown = {"url": asked.url, "schema": asked.requested_schema}
        parts = (*parts, as_json({k: v for k, v in shown.items() if v}))
    choices = (DECLINE,) if fields is None or asked.url else (FILL, DECLINE)
    title = f"Fill in a form of {marked(asked.mcp_server_name) or 'a server'}"
    return {"title": title, "parts": parts, "fields": fields or (), "choices": choices}
