"""Show what GitHub Copilot CLI asks: its hooks run before the dialog, so only keys answer one."""

from __future__ import annotations

from ....core.events import Origin
from ....core.lenient import text_of
from ....core.request import Request
from ....core.visible import marked
from ...parts import part, readable, unanswerable
from .hooks import ASKS


def request(
    payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
) -> Request | None:
    """Return what a notification says is asked; None if it says nothing of the kind."""
    top = readable(payload, truncated)
    asks = ASKS.get(text_of(top, "notification_type"))
    if asks is None:
        return None
    title, message = (marked(text_of(top, key)) for key in ("title", "message"))
    sid, parts = text_of(top, "sessionId"), (part("text", message),)
    return unanswerable(top, name, sid, t, origin, asks, "", title, parts)
