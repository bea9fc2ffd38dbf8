"""Read the title that Gemini CLI gives its terminal: its first sign says what it does."""

from __future__ import annotations

from typing import Final

from ...dialect import Seen

SIGNS: Final = {
    "\u2726": Seen("busy"),
    "\u23f2": Seen("busy"),  # a command that prints nothing
    "\u270b": Seen("waiting", "choice"),
    "\u25c7": Seen("idle"),
}


def titled(text: str) -> Seen | None:
    """Return what a title says, or None."""
    return SIGNS.get(text[:1])
