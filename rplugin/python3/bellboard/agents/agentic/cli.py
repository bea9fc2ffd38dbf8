"""agentic.nvim, as the rest of the program observes it."""

from __future__ import annotations

from ..cli import Cli


class Agentic(Cli):
    """See `Cli`."""

    key = "agentic"
    name = "agentic.nvim"
