"""Amp, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...system.files import plugin
from ..agent import Agent


class Amp(Agent):
    """See `Cli`."""

    key = "amp"
    name = "Amp"
    program = "amp"

    def reporting(self, line: Callable[[str], str]) -> str:
        return plugin("// bellboard's plugin for Amp: reports what a thread does.", "amp.js")


CLI: Final = Amp()
