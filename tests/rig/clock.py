"""A clock that advances only when a test says so."""

from __future__ import annotations

from dataclasses import dataclass

START = 1_800_000_000.0  # a round time; no test may depend on today


@dataclass
class Clock:
    """Returns the time in seconds when called; `advance` moves it on."""

    now: float = START

    def __call__(self) -> float:
        return self.now

    @property
    def ns(self) -> int:
        """Return the time in nanoseconds, exact to the microsecond."""
        return round(self.now * 1_000_000) * 1000

    def advance(self, seconds: float) -> float:
        """Advance the clock; return the new time."""
        if seconds < 0:
            raise ValueError("time does not run backwards here; make a second clock for that")
        self.now += seconds
        return self.now
