"""The dialect of Gemini CLI: its hooks are a table, the rest is decoded in files of their own."""

from __future__ import annotations

from typing import Final

from ...dialect import Seen
from ...payloads import Worded
from .hooks import WORDS
from .log import entry, is_noise
from .request import request

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
    request = staticmethod(request)

    def titled(self, text: str) -> Seen | None:
        return SIGNS.get(text[:1])


DIALECT: Final = GeminiDialect("gemini", WORDS)
