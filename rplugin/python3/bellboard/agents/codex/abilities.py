"""What Codex reports (measured on 0.169.0)."""

from __future__ import annotations

from typing import Final

from ..abilities import Abilities, Ability

HOOKS: Final = Ability("hooks")

ABILITIES: Final[Abilities] = {
    "unprompted": Ability("locks"),
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
    "answer": Ability("server", when="if it runs with its shared server"),
}
