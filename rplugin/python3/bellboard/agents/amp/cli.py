"""Amp, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Callable

from ...system.shipped import shipped
from ..cli import Cli


class Amp(Cli):
    """See `Cli`."""

    key = "amp"
    name = "Amp"

    def reporting(self, line: Callable[[str], str]) -> str:
        head = "// bellboard's plugin for Amp: reports what a thread does.\n"
        return head + shipped("report.js").read_text() + shipped("amp.js").read_text()
