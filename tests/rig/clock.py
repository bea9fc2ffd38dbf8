"""A clock that advances only when a test says so."""

from __future__ import annotations

from dataclasses import dataclass

START = 1_800_000_000.0  # a round moment; no test may depend on today


@dataclass
class Clock:
    """Call it for the time in seconds; `advance` it to let time pass."""

    now: float = START

    def __call__(self) -> float:
        return self.now

    @property
    def ns(self) -> int:
        """The same moment in nanoseconds, exact to the microsecond."""
        return round(self.now * 1_000_000) * 1000

    def advance(self, seconds: float) -> float:
        """The new time."""
        if seconds < 0:
            raise ValueError("time does not run backwards here; make a second clock for that")
        self.now += seconds
        return self.now
