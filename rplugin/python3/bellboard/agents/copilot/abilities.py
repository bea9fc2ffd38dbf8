"""What GitHub Copilot CLI reports (measured on 1.0.102)."""

from __future__ import annotations

from typing import Final

from ..abilities import Abilities, Ability

HOOKS: Final = Ability("hooks")
NOT: Final = Ability("")

ABILITIES: Final[Abilities] = {
    "unprompted": Ability("", when="its hooks start with the first prompt"),
    "working": HOOKS,
    "permission": HOOKS,
    "question": HOOKS,
    "granted": Ability("hooks", True, "when the tool has finished"),
    "denied": NOT,
    "completed": HOOKS,
    "interrupted": NOT,
    "failed": NOT,
    "ended": Ability("hooks, processes"),
    "answer": NOT,
}
