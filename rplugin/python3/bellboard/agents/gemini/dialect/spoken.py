"""The dialect of Gemini CLI."""

from __future__ import annotations

from typing import Final

from ...dialect import Dialect
from .hooks import KINDS, hook
from .log import entry, is_noise
from .request import request
from .titles import titled


class GeminiDialect(Dialect):
    """See `Dialect`."""

    key = "gemini"
    kinds = KINDS
    has_titles = True

    event = staticmethod(hook)
    entry = staticmethod(entry)
    is_noise = staticmethod(is_noise)
    titled = staticmethod(titled)
    request = staticmethod(request)


DIALECT: Final = GeminiDialect()
