"""The dialect of Gemini CLI: it waits for its hooks, so nothing but its keys answers."""

from __future__ import annotations

from typing import Final

from ....core.events import Origin
from ....core.request import Request
from ....core.text import marked
from ....core.untrusted import storable, text_of
from ...agent import Seen
from ...parts import Input, part, readable, unanswerable
from ...words import Worded
from .hooks import PERMISSION, QUESTION, WORDS, about
from .log import entry, is_noise

#: First sign of the title of its terminal → what it says.
SIGNS: Final = {
    "\u2726": Seen("busy"),
    "\u23f2": Seen("busy"),  # a command that prints nothing
    "\u270b": Seen("waiting", "choice"),
    "\u25c7": Seen("idle"),
}


class GeminiDialect(Worded):
    """See `Dialect`."""

    has_titles = True

    entry = staticmethod(entry)
    is_noise = staticmethod(is_noise)

    def titled(self, text: str) -> Seen | None:
        return SIGNS.get(text[:1])

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        top = readable(payload, truncated)
        if text_of(top, "notification_type") != PERMISSION:
            return None
        shown = Input(storable(about(top)))
        kind, title, command = (shown.text(name) for name in ("type", "title", "command"))
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


DIALECT: Final = GeminiDialect("gemini", WORDS)
