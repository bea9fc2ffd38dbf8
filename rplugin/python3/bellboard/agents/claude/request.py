"""Decode Claude Code's requests, in full, from the payload of the hook that reported them.

Everything that the tool would get is shown: whatever has no part of its own is in the last part.  A
payload that is truncated, or cannot be decoded exactly, is not complete, and cannot be answered
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from ...core.events import Origin, is_id
from ...core.request import Choice, Field, Option, Part, Question, Request, are_distinct, digest_of
from ...core.text import marked
from ...core.untrusted import Facts, converted, decoder_of, leniently, text_of
from ..agent import OnDisk
from ..parts import (
    ALLOW,
    CHOOSE,
    STOP,
    Input,
    Offered,
    inexact,
    json_part,
    part,
    question,
    readable,
    title_of,
    unshown,
)
from .hooks import KINDS, QUESTIONS
from .rules import BASH, NO_LONGER, WHOSE, WORDS, Suggestion, suggestions_of
from .transcript import blocks_of


class AskingPayload(Struct):
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


asked_in = decoder_of(AskingPayload)
#: Fields for an answer, which a payload that cannot be decoded exactly does not get.
OFFERS: Final = frozenset({"permission_suggestions", "mode", "url", "requested_schema"})

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
    """Return the request in a payload; None if it is not the payload of a question."""
    asked = None if truncated else asked_in(payload)
    exact = asked is not None
    asked = asked or _shown_of(payload, truncated)
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


def _shown_of(payload: bytes, truncated: bool) -> AskingPayload:
    """Decode the fields to show of a payload that cannot be decoded exactly."""
    top = readable(payload, truncated)
    return leniently(AskingPayload, {k: value for k, value in top.items() if k not in OFFERS})


# ---------------------------------------------------------------- by kind

Read = dict[str, Any]  # fields of a request
Env = Mapping[str, str]  # environment of the CLI


def suggested(asked: AskingPayload, env: Env) -> tuple[list[Suggestion], tuple[str, ...]]:
    """Return the choices that a payload suggests, and in words the suggestions not offered."""
    command = asked.tool_input.get("command") if asked.tool_name == BASH else None
    return suggestions_of(asked.permission_suggestions, command, asked.cwd, env)


def _permission(asked: AskingPayload, env: Env) -> Read:
    title, parts = shown_tool(asked.tool_name, asked.tool_input)
    suggestions, more = suggested(asked, env)
    choices = [ALLOW, *(each.choice for each in suggestions)]
    command = asked.tool_input.get("command")
    if asked.tool_name == BASH and isinstance(command, str) and marked(command) == command:
        choices.append(EDIT)
    return {"title": title, "parts": parts, "choices": (*choices, DENY, STOP), "more": more}


def _questions(asked: AskingPayload, env: Env) -> Read:
    questions = shown_questions(asked.tool_input)
    if not questions:
        return {
            "title": "Answer questions",
            "parts": (json_part(asked.tool_input),),
            "choices": (SKIP, STOP),
        }
    return {
        "title": title_of(questions),
        "questions": questions,
        "parts": unshown(asked.tool_input, AskedQuestion),
        "choices": (*([CHOOSE] if are_distinct(questions) else ()), SKIP, STOP),
    }


def _plan(asked: AskingPayload, env: Env) -> Read:
    given = Input(asked.tool_input)
    text, path = given.text("plan"), given.text("planFilePath")
    return {
        "title": "Approve a plan" if text.strip() else "Leave plan mode, without a plan",
        "parts": (part("plan", text, path=path), *given.rest()),
        "choices": (APPROVE, APPROVE_EDITS, KEEP, STOP),
    }


READERS: Final[dict[str, Callable[[AskingPayload, Env], Read]]] = {
    "AskUserQuestion": _questions,
    "ExitPlanMode": _plan,
}


def _form(asked: AskingPayload, env: Env) -> Read:
    fields = fields_of(asked.requested_schema)
    parts: tuple[Part, ...] = (part("text", asked.message),)
    if fields is None or asked.url:
        shown = {"url": asked.url, "schema": asked.requested_schema}
        parts = (*parts, json_part({k: v for k, v in shown.items() if v}))
    choices = (DECLINE,) if fields is None or asked.url else (FILL, DECLINE)
    title = f"Fill in a form of {marked(asked.mcp_server_name) or 'a server'}"
    return {"title": title, "parts": parts, "fields": fields or (), "choices": choices}


# Show what a tool of Claude Code would do: each member of its input, in full.


EVERYWHERE: Final = "Everywhere in the file"

Shown = tuple[str, tuple[Part, ...]]  # the tool's action in words, and its parts


def _command(given: Input) -> Shown:
    described, command = given.text("description"), given.text("command")
    says_more = described and described != command
    parts = (part("command", command), *([part("text", described)] if says_more else ()))
    return "Run a command", parts


def _edit(given: Input) -> Shown:
    return "Edit a file", (_change(given, given.text("file_path")),)


def _edits(given: Input) -> Shown:
    path, edits = given.text("file_path"), given.left.get("edits")
    made = [part("file", "", path=path)]
    if isinstance(edits, list) and edits and all(map(_is_edit, edits)):
        del given.left["edits"]
        each = [Input(edit) for edit in edits]
        made = [_change(edit, path) for edit in each]
        if left := [edit.left for edit in each if edit.left]:
            given.left["edits"] = left
    return "Edit a file", tuple(made)


def _change(given: Input, path: str) -> Part:
    old, new = given.text("old_string"), given.text("new_string")
    where = EVERYWHERE if given.flag("replace_all") else ""
    return part("diff", "", where, path=path, old=old, new=new)


def _is_edit(edit: object) -> bool:
    texts = ("old_string", "new_string")
    return isinstance(edit, dict) and all(isinstance(edit.get(name), str) for name in texts)


def _write(given: Input) -> Shown:
    path = given.text("file_path")
    return "Write a file", (part("file", given.text("content"), path=path),)


def _notebook(given: Input) -> Shown:
    path = given.text("notebook_path")
    return "Edit a notebook", (part("file", given.text("new_source"), path=path),)


def _fetch(given: Input) -> Shown:
    wants = given.text("prompt")
    parts = (part("url", given.text("url")),)
    return "Fetch a page", (*parts, *([part("text", wants, "Prompt")] if wants else ()))


def _read(given: Input) -> Shown:
    return "Read a file", (part("file", "", path=given.text("file_path")),)


TOOLS: Final[dict[str, Callable[[Input], Shown]]] = {
    BASH: _command,
    "Edit": _edit,
    "MultiEdit": _edits,
    "Write": _write,
    "NotebookEdit": _notebook,
    "WebFetch": _fetch,
    "Read": _read,
}


def shown_tool(tool: str, facts: Facts) -> Shown:
    """Return the action of a tool in words, and its whole input in parts."""
    given = Input(facts)
    read = TOOLS.get(tool)
    if read is None:
        return f"Use {marked(tool) or 'a tool'}", given.rest("")
    title, parts = read(given)
    return title, (*parts, *given.rest())


# Read the questions and forms of Claude Code, as they are shown.


#: Known members of a field's schema.  A field with others, such as `oneOf`, cannot be shown.
KEYWORDS: Final = frozenset(
    {
        *("type", "title", "description", "default", "enum", "enumNames", "format", "pattern"),
        *("minLength", "maxLength", "minimum", "maximum"),
    }
)


class AskedQuestion(Struct):
    question: str
    header: str = ""
    options: list[Offered] = []
    multiSelect: bool = False


def shown_questions(given: Facts) -> tuple[Question, ...]:
    """Return the questions of a tool's input as they are shown; none if the list is invalid."""
    asked = converted(given.get("questions"), list[AskedQuestion]) or ()
    return tuple(question(q.question, q.header, q.options, q.multiSelect) for q in asked)


def fields_of(schema: Facts) -> tuple[Field, ...] | None:
    """Return the fields of a form; None if one is of an unknown form."""
    given, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(given, dict) or not isinstance(required, list):
        return None
    made = [_field(name, facts, name in required) for name, facts in given.items()]
    return None if None in made else tuple(f for f in made if f is not None)


def _field(name: str, facts: object, required: bool) -> Field | None:
    if not isinstance(facts, dict) or not {*facts} <= KEYWORDS or marked(name) != name:
        return None
    kind, values = facts.get("type"), facts.get("enum", [])
    if kind not in ("string", "number", "integer", "boolean") or not isinstance(values, list):
        return None
    default = facts.get("default")
    is_seen = marked(default) == default if isinstance(default, str) else True
    if not (is_seen and isinstance(default, str | int | float | None)):
        return None
    titles = facts.get("enumNames", [])
    titles = titles if isinstance(titles, list) and len(titles) == len(values) else values
    if not all(isinstance(x, str) and marked(x) == x for x in (*values, *titles)):
        return None
    title, description = text_of(facts, "title"), text_of(facts, "description")
    return Field(
        name,
        marked(title or description),
        marked(description if title else ""),
        kind,
        required,
        tuple(Option(value, title) for value, title in zip(values, titles, strict=True)),
        default,
    )


# Complete requests of Claude Code, from its transcript if no hook reported them, and from files.


#: Tool → the member of its input that names its file, and the effect on that file.
FILES: Final = {
    "Read": ("file_path", "read"),
    "Write": ("file_path", "replaced"),
    "Edit": ("file_path", "changed"),
    "MultiEdit": ("file_path", "changed"),
    "NotebookEdit": ("notebook_path", "changed"),
}
PLAN: Final = "ExitPlanMode"


def open_tool(session_id: str, entries: Sequence[Facts]) -> bytes:
    """Return the payload that a hook would report for the tool that asks, by a transcript's end.

    It is the main thread's only tool without a result; return b"" if there are several.
    """
    open_tools: dict[str, tuple[Facts, str]] = {}
    for entry in entries:
        for block in [] if entry.get("isSidechain") else blocks_of(entry):
            if block.get("type") == "tool_use":
                open_tools[text_of(block, "id")] = block, text_of(entry, "cwd")
            elif block.get("type") == "tool_result":
                open_tools.pop(text_of(block, "tool_use_id"), None)
    if len(open_tools) != 1:
        return b""
    ((tool, cwd),) = open_tools.values()
    about = {"session_id": session_id, "hook_event_name": "PermissionRequest", "cwd": cwd}
    given = {"tool_name": text_of(tool, "name"), "tool_input": tool.get("input")}
    try:
        return msgspec.json.encode({**about, **given})
    except (ValueError, RecursionError):
        return b""


def on_disk(payload: bytes) -> tuple[OnDisk, ...]:
    """See `Agent.on_disk`."""
    asked = asked_in(payload)
    if asked is None:
        return ()
    given, cwd = asked.tool_input, asked.cwd
    if asked.tool_name == PLAN:
        path = text_of(given, "planFilePath")
        return (OnDisk(path, "read", text_of(given, "plan"), cwd),) if path else ()
    name, how = FILES.get(asked.tool_name, ("", ""))
    path = text_of(given, name) if name else ""
    return (OnDisk(path, how, folder=cwd),) if path else ()
