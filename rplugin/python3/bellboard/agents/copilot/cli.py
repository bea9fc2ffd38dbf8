"""GitHub Copilot CLI, as the rest of the program observes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from ..agent import Abilities, Ability, Agent, Means, Witness
from ..installing.hookline import SHOWN_IN_PART, HooksFile, below_home
from .dialect.hooks import KINDS

HOOKS: Final = Ability("hooks")
LOG: Final = Ability("log")
NOT: Final = Ability("")
#: What it reports (measured on 1.0.102).
ABILITIES: Final[Abilities] = {
    "unprompted": Ability("the file of its open sessions", when="unless it was resumed"),
    "working": HOOKS,
    "permission": Ability("hooks, log"),
    "question": HOOKS,
    "granted": LOG,
    "denied": LOG,
    "completed": HOOKS,
    "interrupted": Ability("log, the file of its open sessions"),
    "failed": LOG,
    "ended": Ability("hooks, processes"),
    "itself": NOT,
    "answer": NOT,
}

#: Not preToolUse: one that fails refuses the tool.
EVENTS: Final = tuple(n for n, kind in KINDS.items() if kind != "note" and n != "preToolUse")
PATIENCE: Final = 30  # seconds that a hook may take


class Copilot(Agent):
    """See `Cli`."""

    key = "copilot"
    name = "GitHub Copilot CLI"
    program = "copilot"
    variable = "COPILOT_HOME"
    tested = (1, 0, 102)
    abilities = ABILITIES
    resuming = ("--resume",)
    without_hooks = SHOWN_IN_PART
    hooks = HooksFile(
        folder=below_home(".copilot", "COPILOT_HOME"), name="hooks/bellboard.json", own=True
    )

    def witness(self, means: Means) -> Witness:
        from .witness import CopilotWitness

        return CopilotWitness(means)

    def reporting(self, line: Callable[[str], str]) -> str:
        hooks = {
            event: [{"type": "command", "bash": line(event), "timeoutSec": PATIENCE}]
            for event in (*EVENTS, "notification")
        }
        return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False)


CLI: Final = Copilot()
