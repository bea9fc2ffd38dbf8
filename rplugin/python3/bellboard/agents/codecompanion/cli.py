"""codecompanion.nvim, as the rest of the program observes it."""

from __future__ import annotations

from ..cli import Cli


class CodeCompanion(Cli):
    """See `Cli`."""

    key = "codecompanion"
    name = "codecompanion.nvim"
