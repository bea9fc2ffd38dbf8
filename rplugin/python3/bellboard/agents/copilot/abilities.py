"""What GitHub Copilot CLI reports (measured on 1.0.102)."""

from __future__ import annotations

from typing import Final

from ..abilities import Abilities, Ability

HOOKS: Final = Ability("hooks")
LOG: Final = Ability("log")
NOT: Final = Ability("")

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
    "answer": NOT,
}
