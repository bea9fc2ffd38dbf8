"""Codex, as the rest of the program observes it."""

from __future__ import annotations

from typing import Final

from ..abilities import Abilities, Ability
from ..cli import Cli, Means, Waiting, Witness
from ..installing.hookline import SHOWN_IN_PART, HooksFile, below_home
from .dialect.names import KINDS
from .trust import obstacles, remarks

HOOKS: Final = Ability("hooks")
#: What it reports (measured on 0.171.0).
ABILITIES: Final[Abilities] = {
    "unprompted": Ability("locks", when="on Linux, which lists them; elsewhere with that prompt"),
    "working": HOOKS,
    "permission": Ability("hooks, log, title"),
    "question": HOOKS,
    "granted": Ability(
        "title, server",
        when="in tmux and Neovim, and with its shared server; elsewhere when the tool has finished",
    ),
    "denied": HOOKS,
    "completed": HOOKS,
    "interrupted": HOOKS,
    "failed": Ability("log"),
    "ended": Ability("hooks, processes"),
    "itself": Ability("OSC 7501", when="in a Neovim terminal, from 0.171 on"),
    "answer": Ability("server", when="if it runs with its shared server"),
}

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
    tested = (0, 171, 0)
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
