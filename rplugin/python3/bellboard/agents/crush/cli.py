"""Crush, as the rest of the program observes it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Final

from ..agent import Agent
from .dialect.spoken import KINDS

PATIENCE: Final = 10  # seconds that a hook may take


class Crush(Agent):
    """See `Cli`."""

    key = "crush"
    name = "Crush"
    program = "crush"

    def reporting(self, line: Callable[[str], str]) -> str:
        hooks = {event: [_hook(line(event))] for event in KINDS}
        return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)


def _hook(command: str) -> dict[str, object]:
    # Its own shell is a part of its process: there, $PPID is the parent of Crush.
    ran = f"sh -c {shlex.quote(command)}"
    return {"name": "bellboard", "command": ran, "timeout": PATIENCE}


CLI: Final = Crush()
