"""The dialect of Gemini CLI: its hooks are a table, the rest is decoded in files of their own."""

from __future__ import annotations

from typing import Final

from ...payloads import Worded
from .hooks import WORDS
from .log import entry, is_noise
from .request import request
from .titles import titled


class GeminiDialect(Worded):
    """See `Dialect`."""

    has_titles = True

    entry = staticmethod(entry)
    is_noise = staticmethod(is_noise)
    titled = staticmethod(titled)
    request = staticmethod(request)


DIALECT: Final = GeminiDialect("gemini", WORDS)
