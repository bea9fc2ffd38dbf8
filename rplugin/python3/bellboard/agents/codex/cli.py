"""Codex, as the rest of the program observes it."""

from __future__ import annotations

from ..cli import Asked, Cli, Unanswered
from . import server


class Codex(Cli):
    """See `Cli`."""

    key = "codex"

    def unanswerable(self, asked: Asked) -> str:
        try:
            server.find(asked)
        except Unanswered as reason:
            return str(reason)
        return ""

    def answer(self, asked: Asked, reply: bytes) -> None:
        server.answer(asked, reply)
