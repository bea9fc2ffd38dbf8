"""Pi, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...system.shipped import plugin
from ..cli import Cli
from ..installing.place import HooksFile, below_home
from .abilities import ABILITIES

MARK = "// bellboard's extension for Pi"


class Pi(Cli):
    """See `Cli`."""

    key = "pi"
    name = "Pi"
    program = "pi"
    variable = "PI_CODING_AGENT_DIR"
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
