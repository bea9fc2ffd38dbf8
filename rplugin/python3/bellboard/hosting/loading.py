"""Load the dialects soon after the start: an update may replace their files while a host runs."""

from __future__ import annotations

import contextlib
from typing import Final

from ..agents.dialects import KEYS, dialect_of
from ..core.deadlines import NEVER
from ..system.awake import clock

REST: Final = 1.0  # seconds after the first round
APART: Final = 0.2  # seconds from one to the next: each takes up to 5 ms


class Loading:
    """Loads one dialect after the other, and nothing while the host starts."""

    def __init__(self) -> None:
        self._left = map(dialect_of, KEYS)
        self._due = 0.0

    def run(self) -> float:
        """Load the next one if it is due; return the seconds until the next call."""
        now = clock()
        if not self._due:
            self._due = now + REST
        elif now >= self._due:
            self._due = now + APART
            with contextlib.suppress(ImportError):  # noted when an event needs it
                if next(self._left, None) is None:
                    self._due = NEVER
        return self._due - now
