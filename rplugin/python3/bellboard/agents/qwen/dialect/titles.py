"""Read the title that Qwen Code gives its terminal: it works, waits for somebody, or neither.

This file does no I/O.
"""

from __future__ import annotations

import re
from typing import Final

from ...dialect import Seen

_TITLE: Final = re.compile("(?:([◐◓◑◒✳])\ufe0e? )?Qwen - ")
ASKS: Final = "✳"


def titled(text: str) -> Seen | None:
    """Return what a title says; None for one that is not Qwen's own."""
    found = _TITLE.match(text)
    if found is None:
        return None
    if found[1] == ASKS:
        return Seen("waiting", "choice")
    return Seen("busy" if found[1] else "idle")
