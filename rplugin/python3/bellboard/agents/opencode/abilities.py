"""What OpenCode reports (measured on 1.18.33)."""

from __future__ import annotations

from typing import Final

from ..abilities import Abilities, Ability

PLUGIN: Final = Ability("plugin")

ABILITIES: Final[Abilities] = {
    "unprompted": Ability("", when="a session begins with its first prompt"),
    "working": PLUGIN,
    "permission": PLUGIN,
    "question": PLUGIN,
    "granted": PLUGIN,
    "denied": PLUGIN,
    "completed": PLUGIN,
    "interrupted": PLUGIN,
    "failed": PLUGIN,
    "ended": Ability("plugin, processes"),
    "answer": Ability("plugin, server"),
}
