"""What Pi reports (measured on 0.73.1)."""

from __future__ import annotations

from typing import Final

from ..abilities import Abilities, Ability

EXTENSION: Final = Ability("extension")
NOTHING_ASKED: Final = Ability("", when="it never asks for one")

ABILITIES: Final[Abilities] = {
    "unprompted": EXTENSION,
    "working": EXTENSION,
    "permission": NOTHING_ASKED,
    "question": Ability("", when="only other extensions ask questions"),
    "granted": NOTHING_ASKED,
    "denied": NOTHING_ASKED,
    "completed": EXTENSION,
    "interrupted": EXTENSION,
    "failed": Ability("extension", when="also between retries"),
    "ended": Ability("extension, processes"),
    "answer": Ability(""),
}
