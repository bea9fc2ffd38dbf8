"""Droid, as the rest of the program observes it."""

from __future__ import annotations

from typing import Final

from ..agent import SPARED, Agent
from .dialect.spoken import KINDS

EVENTS: Final = (*(name for name, kind in KINDS.items() if kind not in SPARED), "Notification")
PATIENCE: Final = 10  # seconds that a hook may take


class Droid(Agent):
    """See `Cli`."""

    key = "droid"
    name = "Droid"
    program = "droid"
    timeouts = dict.fromkeys(EVENTS, PATIENCE)


CLI: Final = Droid()
