"""The dialect of OpenCode, whose parts are each decoded in a file of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ...dialect import Dialect
from .asking import reply, request
from .events import KINDS, event


class OpenCodeDialect(Dialect):
    """See `Dialect`."""

    key = "opencode"
    kinds = KINDS
    variables: ClassVar[Mapping[str, str]] = {}

    event = staticmethod(event)
    request = staticmethod(request)
    reply = staticmethod(reply)
