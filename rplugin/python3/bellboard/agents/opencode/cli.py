"""OpenCode, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Callable

from ...system.shipped import shipped
from ..cli import Cli, Waiting
from . import server


class OpenCode(Cli):
    """See `Cli`."""

    key = "opencode"

    def reporting(self, line: Callable[[str], str]) -> str:
        return shipped("opencode.js").read_text()

    def find(self, waiting: Waiting) -> None:
        server.find(waiting)

    def answer(self, waiting: Waiting, reply: bytes) -> None:
        server.answer(waiting, reply)
