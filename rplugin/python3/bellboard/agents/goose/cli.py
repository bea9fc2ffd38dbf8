"""Goose, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..cli import Cli, settings_of
from .dialect.spoken import KINDS

SPARED: Final = frozenset({"activity", "note"})  # kinds of events that add nothing
EVENTS: Final = (*(name for name, kind in KINDS.items() if kind not in SPARED),)
PATIENCE: Final = 10  # seconds that a hook may take


class Goose(Cli):
    """See `Cli`."""

    key = "goose"
    name = "Goose"

    def reporting(self, line: Callable[[str], str]) -> str:
        return settings_of({e: {"command": line(e), "timeout": PATIENCE} for e in EVENTS})


CLI: Final = Goose()
