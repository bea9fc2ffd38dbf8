"""Codex, as the rest of the program observes it."""

from __future__ import annotations

from typing import Final

from ..cli import Cli, Means, Waiting, Witness
from ..installing.place import SHOWN_IN_PART, HooksFile, below_home
from .abilities import ABILITIES
from .dialect.names import KINDS
from .trust import obstacles, remarks

#: Seconds that its hooks may take, at most: it warns of more for those that run at an end.
AT_ENDS, OTHERWISE = 3, 60
TIMEOUTS: Final = {
    **{name: OTHERWISE for name, kind in KINDS.items() if kind != "note"},
    "Interrupt": AT_ENDS,
    "SessionEnd": AT_ENDS,
}


class Codex(Cli):
    """See `Cli`."""

    key = "codex"
    name = "Codex"
    program = "codex"
    variable = "CODEX_HOME"
    abilities = ABILITIES
    timeouts = TIMEOUTS
    resuming = ("resume",)
    without_hooks = SHOWN_IN_PART
    hooks = HooksFile(
        folder=below_home(".codex", "CODEX_HOME"),
        name="hooks.json",
        note='Codex asks to review new hooks at its next start: choose "Trust all and continue"',
        obstacles=obstacles,
        remarks=remarks,
    )

    def witness(self, means: Means) -> Witness:
        from .witness import CodexWitness

        return CodexWitness(means)

    def find(self, waiting: Waiting) -> None:
        from . import server

        server.find(waiting)

    def answer(self, waiting: Waiting, reply: bytes) -> None:
        from . import server

        server.answer(waiting, reply)


CLI: Final = Codex()
