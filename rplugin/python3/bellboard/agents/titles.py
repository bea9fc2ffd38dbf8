"""What the titles of a terminal say over time: read each, and report only what is new in it.

A title says at once what its CLI does, also what no hook tells: that a question was answered.  A
spinner or a blinking mark changes it many times a second and means the same.  A user may switch
that off, and then every title looks like one at rest; so “at rest” counts only for a terminal
whose title has said that it works or waits.

This file does no I/O and knows no clock.
"""

from __future__ import annotations

from typing import Final

from .dialect import Dialect, Seen

LONGEST: Final = 300  # characters of a title to read


class Titles:
    """The titles of the terminal of one session."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._said: Seen | None = None

    def forget(self) -> None:
        """Take what was reported as unknown."""
        self._said = None

    def take(self, text: str) -> Seen | None:
        """Return what a title says, if that is new."""
        seen = self._dialect.titled(text[:LONGEST].strip())
        if seen is None or seen == self._said or (seen.says == "idle" and self._said is None):
            return None
        self._said = seen
        return seen
