"""The dialect of Qwen Code: its hooks run before the dialog, so only its keys answer one.

A sign in front of the title of its terminal says that it works or waits for somebody; the rest is
the name of the session, if it has one.  So at rest, it is the last title without its sign; any
other is of a shell while Qwen is stopped, or of the user.  What its tools print never reaches the
terminal.
"""

from __future__ import annotations

import re
from typing import Final

from ....core.events import Origin
from ....core.request import Request
from ....core.text import marked
from ....core.untrusted import object_of, storable, text_of
from ...agent import Agent, Seen
from ...parts import Input, part, readable, unanswerable
from .hooks import KINDS, QUESTIONS, hook

_SIGN: Final = re.compile("([◐◓◑◒✳])\ufe0e? ")
ASKS: Final = "✳"


class QwenDialect(Agent):
    """See `Dialect`."""

    key = "qwen"
    kinds = KINDS
    has_titles = True

    event = staticmethod(hook)

    def titled(self, text: str) -> Seen | None:
        found = _SIGN.match(text)
        if found is None:
            return Seen("idle")
        return Seen("waiting", "choice") if found[1] == ASKS else Seen("busy")

    def at_rest(self, text: str) -> str:
        return _SIGN.sub("", text, count=1).strip()

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
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


DIALECT: Final = QwenDialect()
