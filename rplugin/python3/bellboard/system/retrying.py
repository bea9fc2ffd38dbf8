"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import random
from typing import Final

SHORTEST: Final = 1.0  # seconds from one try to the next
LONGEST = 60.0  # seconds; the longest such pause, but for the jitter
SOONEST: Final = 0.1  # seconds until the next try, if the last one took longer than that


def apart(down: float, share: float) -> float:
    """Return the seconds from one try to the next, after `down` seconds without success.

    They are a part of that time, with jitter.  So what is down for long is tried rarely, and yet is
    found soon, compared with the time for which it was down.
    """
    return min(max(down / share, SHORTEST), LONGEST) * random.uniform(0.75, 1.25)


def pause(begun: float, now: float, since: float, share: float) -> float:
    """Return the seconds to wait after a try that began then; it has failed since `since`."""
    return max(begun + apart(now - since, share) - now, SOONEST)
