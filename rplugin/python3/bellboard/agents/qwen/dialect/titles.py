"""Read the title that Qwen Code gives its terminal: it works, waits for somebody, or neither.

A sign in front says which; the rest is the name of the session, if it has one.  So at rest, it is
the last title without its sign; any other is of a shell while Qwen is stopped, or of the user.
What its tools print never reaches the terminal.
"""

from __future__ import annotations

import re
from typing import Final

from ...dialect import Seen

_SIGN: Final = re.compile("([◐◓◑◒✳])\ufe0e? ")
ASKS: Final = "✳"


def titled(text: str) -> Seen | None:
    """Return what a title says."""
    found = _SIGN.match(text)
    if found is None:
        return Seen("idle")
    return Seen("waiting", "choice") if found[1] == ASKS else Seen("busy")


def at_rest(text: str) -> str:
    """Return a title without its sign."""
    return _SIGN.sub("", text, count=1).strip()
