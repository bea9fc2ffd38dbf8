"""Goose, as the rest of the program observes it."""

from __future__ import annotations

from typing import Final

from ..agent import SPARED, Agent
from .dialect.spoken import KINDS

EVENTS: Final = (*(name for name, kind in KINDS.items() if kind not in SPARED),)
PATIENCE: Final = 10  # seconds that a hook may take


class Goose(Agent):
    """See `Cli`."""

    key = "goose"
    name = "Goose"
    program = "goose"
    timeouts = dict.fromkeys(EVENTS, PATIENCE)


CLI: Final = Goose()
