"""Payloads of questions, what they ask, and what the hook prints."""

from __future__ import annotations

import json
from typing import Any

from bellboard.agents.registry import agent_of
from bellboard.core.events import Origin
from bellboard.core.request import Answer, Request, check

CLAUDE = agent_of("claude")
FROM = Origin(pid=11)
COLOR = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}],
    "multiSelect": False,
}
SIZES = {
    "question": "Which sizes?",
    "options": [{"label": "S"}, {"label": "M"}, {"label": "S, M"}, {"label": "L"}],
    "multiSelect": True,
}
PLAN = {"plan": "# First\n1. This\n", "planFilePath": "/home/u/plan.md"}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer", "title": "Age", "description": "In years"},
        "sure": {"type": "boolean", "default": True},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
    },
    "required": ["name"],
}


def payload(tool: str = "Bash", given: object = None, **more: object) -> bytes:
    facts = {"session_id": "s", "hook_event_name": "PermissionRequest", "tool_name": tool}
    return json.dumps({**facts, "tool_input": given or {}, **more}).encode()


def form(schema: object = SCHEMA, **more: object) -> bytes:
    facts = {"session_id": "s", "hook_event_name": "Elicitation", "mcp_server_name": "db"}
    return json.dumps({**facts, "message": "Who?", "requested_schema": schema, **more}).encode()


def allows(*rules: dict[str, str], kind: str = "addRules", behavior: str = "allow") -> list[object]:
    return [{"type": kind, "rules": [*rules], "behavior": behavior, "destination": "session"}]


def asked(
    raw: bytes, origin: Origin = FROM, truncated: bool = False, name: str = "the-file"
) -> Request:
    found = CLAUDE.request(raw, name, 5.0, origin, truncated)
    assert found is not None
    return found


def ids(request: Request) -> list[str]:
    return [choice.id for choice in request.choices]


def printed(raw: bytes, answer: Answer) -> Any:
    """Return what the hook prints for an answer that is not refused."""
    assert check(asked(raw), answer) == ""
    said = CLAUDE.reply(raw, answer)
    assert b"\n" not in said
    return json.loads(said)["hookSpecificOutput"]


def decided(raw: bytes, answer: Answer) -> Any:
    said = printed(raw, answer)
    assert said["hookEventName"] == "PermissionRequest"
    return said["decision"]
