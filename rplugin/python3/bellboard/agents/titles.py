"""Read the titles of a terminal one after the other, and report only changes of meaning.

A title shows at once what its CLI does, and that a question was answered, which no hook reports.  A
spinner or a blinking mark changes it many times a second without changing its meaning.  A user may
switch titles off, and then every title looks like one at rest; so “at rest” counts only for a
terminal whose title has said that it works or waits.

This file does no I/O and knows no clock.
"""

from __future__ import annotations

from typing import Final

from .dialect import Dialect, Seen

LONGEST_TITLE: Final = 300  # characters of a title to read


class Titles:
    """The titles of the terminal of one session."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._said: Seen | None = None

    def forget(self) -> None:
        """Report the next title, whatever was reported before."""
        self._said = None

    def take(self, text: str) -> Seen | None:
        """Return what a title says, if that is new."""
        seen = self._dialect.titled(text[:LONGEST_TITLE].strip())
        if seen is None or seen == self._said or (seen.says == "idle" and self._said is None):
            return None
        self._said = seen
        return seen
