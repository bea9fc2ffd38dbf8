"""The dialect of OpenCode, whose parts are each decoded in a file of their own."""

from __future__ import annotations

from typing import Final

from ...dialect import Dialect
from .asking import on_disk, reply, request
from .events import KINDS, event


class OpenCodeDialect(Dialect):
    """See `Dialect`."""

    key = "opencode"
    kinds = KINDS

    on_disk = staticmethod(on_disk)
    event = staticmethod(event)
    request = staticmethod(request)
    reply = staticmethod(reply)


DIALECT: Final = OpenCodeDialect()
