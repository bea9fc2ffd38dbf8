"""Read the title that Codex gives its terminal: it has a spinner, asks for an action, or neither.

Its user chooses what the title has and in which order, so the spinner may be anywhere, or missing.
"""

from __future__ import annotations

import re
from typing import Final

from ...dialect import Seen

_SPINS: Final = re.compile("(?:^| )[\u2801-\u28ff](?: |$)")
_ASKS: Final = re.compile(r"\[ [!.] \] Action Required(?: |$)")


def titled(text: str) -> Seen | None:
    """Return what a title says; without either mark, the thread is at rest."""
    if _SPINS.search(text):
        return Seen("busy")
    return Seen("waiting", "choice") if _ASKS.match(text) else Seen("idle")
