"""The dialect of Claude Code, whose parts are each decoded in a file of their own."""

from __future__ import annotations

from ....core.events import AGENT
from ...dialect import Dialect
from .entries import decoded, is_noise
from .hooks import hook
from .names import KINDS
from .pressing import press
from .reply import reply
from .request import SETTINGS, request
from .screens import read
from .session_file import account


class ClaudeDialect(Dialect):
    """See `Dialect`."""

    key = AGENT
    kinds = KINDS
    rules = f"permissions.allow in {SETTINGS}"

    event = staticmethod(hook)
    account = staticmethod(account)
    entry = staticmethod(decoded)
    is_noise = staticmethod(is_noise)
    on_screen = staticmethod(read)
    request = staticmethod(request)
    reply = staticmethod(reply)
    press = staticmethod(press)
