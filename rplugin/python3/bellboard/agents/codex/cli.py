"""Codex, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..cli import Cli, Means, Waiting, Witness, settings_of
from ..installing.place import HooksFile, below_home
from .abilities import ABILITIES
from .dialect.names import KINDS
from .trust import obstacles, remarks

EVENTS: Final = tuple(name for name, kind in KINDS.items() if kind != "note")
#: Seconds that its hooks may take, at most: it warns of more for those that run at an end.
AT_ENDS, OTHERWISE = 3, 60


class Codex(Cli):
    """See `Cli`."""

    key = "codex"
    name = "Codex"
    variable = "CODEX_HOME"
    abilities = ABILITIES
    resuming = ("resume",)
    hooks = HooksFile(
        program="codex",
        folder=below_home(".codex", "CODEX_HOME"),
        name="hooks.json",
        note='Codex asks to review new hooks at its next start: choose "Trust all and continue"',
        obstacles=obstacles,
        remarks=remarks,
    )

    def witness(self, means: Means) -> Witness:
        from .witness import CodexWitness

        return CodexWitness(means)

    def reporting(self, line: Callable[[str], str]) -> str:
        return settings_of({e: {"command": line(e), "timeout": _patience(e)} for e in EVENTS})

    def find(self, waiting: Waiting) -> None:
        from . import server

        server.find(waiting)

    def answer(self, waiting: Waiting, reply: bytes) -> None:
        from . import server

        server.answer(waiting, reply)


def _patience(event: str) -> int:
    return AT_ENDS if event in ("Interrupt", "SessionEnd") else OTHERWISE


CLI: Final = Codex()
