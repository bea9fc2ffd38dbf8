"""What Gemini CLI reports (measured on 0.61.0)."""

from __future__ import annotations

from typing import Final

from ..abilities import Abilities, Ability

HOOKS: Final = Ability("hooks")
LOG: Final = Ability("log")

ABILITIES: Final[Abilities] = {
    "unprompted": HOOKS,
    "working": HOOKS,
    "permission": HOOKS,
    "question": HOOKS,
    "granted": Ability("title", when="in tmux and Neovim; elsewhere when the tool has finished"),
    "denied": LOG,
    "completed": Ability("hooks, log"),
    "interrupted": LOG,
    "failed": LOG,
    "ended": Ability("hooks, processes"),
    "answer": Ability(""),
}
