"""Pi, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...system.files import plugin
from ..agent import Abilities, Ability, Agent
from ..installing.hookline import HooksFile, below_home

EXTENSION: Final = Ability("extension")
NOTHING_ASKED: Final = Ability("", when="it never asks for one")
#: What it reports (measured on 1.6.0).
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
    "itself": Ability("OSC 7501", when="in a Neovim terminal, from 1.1 on"),
    "answer": Ability(""),
}

MARK = "// bellboard's extension for Pi"


class Pi(Agent):
    """See `Cli`."""

    key = "pi"
    name = "Pi"
    program = "pi"
    variable = "PI_CODING_AGENT_DIR"
    tested = (1, 6, 0)
    abilities = ABILITIES
    resuming = ("--session",)
    hooks = HooksFile(
        folder=below_home(".pi/agent", "PI_CODING_AGENT_DIR"),
        name="extensions/bellboard.js",
        own=True,
        mark=MARK,
        note="running sessions load the extension with /reload",
    )

    def reporting(self, line: Callable[[str], str]) -> str:
        return plugin(f"{MARK}: reports what a session does.", "pi.js")


CLI: Final = Pi()
