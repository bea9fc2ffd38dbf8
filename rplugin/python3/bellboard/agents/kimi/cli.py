"""Kimi Code, as the rest of the program observes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from ..agent import SPARED, Agent
from .dialect.spoken import KINDS

PATIENCE: Final = 10  # seconds that a hook may take


class Kimi(Agent):
    """See `Cli`."""

    key = "kimi"
    name = "Kimi Code"
    program = "kimi"

    def reporting(self, line: Callable[[str], str]) -> str:
        names = [name for name, kind in KINDS.items() if kind not in SPARED]
        return "\n".join(_table(name, line(name)) for name in names)


def _table(event: str, command: str) -> str:
    # A string of JSON is one of TOML, but for halves of characters, and DEL.
    quoted = json.dumps(command, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f'[[hooks]]\nevent = "{event}"\ncommand = {quoted}\ntimeout = {PATIENCE}\n'


CLI: Final = Kimi()
