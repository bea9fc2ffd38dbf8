"""The dialect of GitHub Copilot CLI, whose parts are each decoded in a file of their own."""

from __future__ import annotations

from typing import Final

from ...dialect import Dialect
from .hooks import KINDS, hook
from .log import account, decoded
from .request import request

LOG: Final = "events.jsonl"  # of every session, in a folder of its own


class CopilotDialect(Dialect):
    """See `Dialect`."""

    key = "copilot"
    kinds = KINDS

    event = staticmethod(hook)
    account = staticmethod(account)
    entry = staticmethod(decoded)
    request = staticmethod(request)

    def log_of(self, name: str, latest: str) -> str:
        return latest if name == LOG else ""


DIALECT: Final = CopilotDialect()
