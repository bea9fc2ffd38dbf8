"""Cursor CLI, as the rest of the program observes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from ..agent import SPARED, Agent
from .dialect.spoken import KINDS


class Cursor(Agent):
    """See `Cli`."""

    key = "cursor"
    name = "Cursor CLI"
    program = "cursor-agent"

    def reporting(self, line: Callable[[str], str]) -> str:
        hooks = {name: [_hook(name, line(name))] for name, k in KINDS.items() if k not in SPARED}
        return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False)


def _hook(event: str, command: str) -> dict[str, object]:
    # Without it, a stop is reported five times and then no more.
    return {"command": command, **({"loop_limit": None} if event == "stop" else {})}


CLI: Final = Cursor()
