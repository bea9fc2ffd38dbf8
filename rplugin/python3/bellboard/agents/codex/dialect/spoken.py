"""The dialect of Codex, whose parts are each decoded in a file of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ...dialect import Dialect
from .hooks import hook
from .names import KINDS
from .request import reply, request


class CodexDialect(Dialect):
    """See `Dialect`."""

    key = "codex"
    kinds = KINDS
    variables: ClassVar[Mapping[str, str]] = {}

    event = staticmethod(hook)
    request = staticmethod(request)
    reply = staticmethod(reply)
