"""The dialect of Qwen Code.

A sign in front of the title of its terminal says that it works or waits for somebody; the rest is
the name of the session, if it has one.  So at rest, it is the last title without its sign; any
other is of a shell while Qwen is stopped, or of the user.  What its tools print never reaches the
terminal.
"""

from __future__ import annotations

import re
from typing import Final

from ...dialect import Dialect, Seen
from .hooks import KINDS, hook
from .request import request

_SIGN: Final = re.compile("([◐◓◑◒✳])\ufe0e? ")
ASKS: Final = "✳"


class QwenDialect(Dialect):
    """See `Dialect`."""

    key = "qwen"
    kinds = KINDS
    has_titles = True

    event = staticmethod(hook)
    request = staticmethod(request)

    def titled(self, text: str) -> Seen | None:
        found = _SIGN.match(text)
        if found is None:
            return Seen("idle")
        return Seen("waiting", "choice") if found[1] == ASKS else Seen("busy")

    def at_rest(self, text: str) -> str:
        return _SIGN.sub("", text, count=1).strip()


DIALECT: Final = QwenDialect()
