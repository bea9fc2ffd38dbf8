"""Show what Qwen Code asks: hooks run before the dialog, so nothing but its keys answers one."""

from __future__ import annotations

from ....core.events import Origin
from ....core.lenient import object_of, storable, text_of
from ....core.request import Request
from ....core.visible import marked
from ...parts import Input, part, readable, unanswerable
from .hooks import QUESTIONS


def request(
    payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
) -> Request | None:
    """Return what a payload asks; None if it is not the payload of a question."""
    top = readable(payload, truncated)
    if text_of(top, "hook_event_name") != "PermissionRequest":
        return None
    tool = text_of(top, "tool_name")
    shown = Input(object_of(storable(top.get("tool_input"))))
    command = shown.text("command")
    return unanswerable(
        top,
        name,
        text_of(top, "session_id"),
        t,
        origin,
        QUESTIONS.get(tool, "permission"),
        tool,
        "Run a command" if command else f"Use {marked(tool) or 'a tool'}",
        (*((part("command", command),) if command else ()), *shown.rest()),
    )
