"""What Qwen Code reports (measured on 0.24.4)."""

from __future__ import annotations

from typing import Final

from ..abilities import Abilities, Ability

HOOKS: Final = Ability("hooks")
AT_REST: Final = Ability("hooks", True, "it stopped without completing its turn")

ABILITIES: Final[Abilities] = {
    "unprompted": HOOKS,
    "working": HOOKS,
    "permission": HOOKS,
    "question": HOOKS,
    "granted": HOOKS,
    "denied": AT_REST,
    "completed": HOOKS,
    "interrupted": AT_REST,
    "failed": HOOKS,
    "ended": Ability("hooks, processes"),
    "answer": Ability(""),
}
