"""agentic.nvim, as the rest of the program observes it."""

from __future__ import annotations

from typing import Final

from ..cli import Cli


class Agentic(Cli):
    """See `Cli`."""

    key = "agentic"
    name = "agentic.nvim"


CLI: Final = Agentic()
