"""Droid, as the rest of the program observes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from ..cli import Cli
from .dialect.spoken import KINDS

SPARED: Final = frozenset({"activity", "note"})  # kinds of events that add nothing
EVENTS: Final = (
    *(name for name, kind in KINDS.items() if kind not in SPARED),
    "Notification",
)
PATIENCE: Final = 10  # seconds that a hook may take


class Droid(Cli):
    """See `Cli`."""

    key = "droid"
    name = "Droid"

    def reporting(self, line: Callable[[str], str]) -> str:
        hooks = {event: [{"hooks": [_hook(line(event))]}] for event in EVENTS}
        return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)


def _hook(command: str) -> dict[str, object]:
    return {"type": "command", "command": command, "timeout": PATIENCE}


CLI: Final = Droid()
