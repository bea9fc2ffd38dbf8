"""The dialect of GitHub Copilot CLI: its hooks run before the dialog, so only keys answer one."""

from __future__ import annotations

from typing import Final

from ....core.events import Origin
from ....core.request import Request
from ....core.text import marked
from ....core.untrusted import text_of
from ...agent import Agent
from ...parts import part, readable, unanswerable
from .hooks import ASKS, KINDS, hook
from .log import account, decoded

LOG: Final = "events.jsonl"  # of every session, in a folder of its own


class CopilotDialect(Agent):
    """See `Dialect`."""

    key = "copilot"
    kinds = KINDS

    event = staticmethod(hook)
    account = staticmethod(account)
    entry = staticmethod(decoded)

    def log_of(self, name: str, latest: str) -> str:
        return latest if name == LOG else ""

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        top = readable(payload, truncated)
        asks = ASKS.get(text_of(top, "notification_type"))
        if asks is None:
            return None
        title, message = (marked(text_of(top, key)) for key in ("title", "message"))
        sid, parts = text_of(top, "sessionId"), (part("text", message),)
        return unanswerable(top, name, sid, t, origin, asks, "", title, parts)


DIALECT: Final = CopilotDialect()
