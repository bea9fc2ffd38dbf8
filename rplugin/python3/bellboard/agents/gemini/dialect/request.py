"""Show what Gemini CLI asks: it waits for its hooks, so nothing but its keys answers."""

from __future__ import annotations

from ....core.events import Origin
from ....core.lenient import storable, text_of
from ....core.request import Request
from ....core.visible import marked
from ...parts import Input, part, readable, unanswerable
from .hooks import PERMISSION, QUESTION, about


def request(
    payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
) -> Request | None:
    """Return what a payload asks; None if it is not the payload of a question."""
    top = readable(payload, truncated)
    if text_of(top, "notification_type") != PERMISSION:
        return None
    shown = Input(storable(about(top)))
    kind, title = shown.text("type"), shown.text("title")
    command = shown.text("command")
    return unanswerable(
        top,
        name,
        text_of(top, "session_id"),
        t,
        origin,
        "question" if kind == QUESTION else "permission",
        "",
        marked(title) or "Use a tool",
        (*((part("command", command),) if command else ()), *shown.rest()),
    )
