"""codecompanion.nvim, as the rest of the program observes it."""

from __future__ import annotations

from typing import Final

from ..cli import Cli


class CodeCompanion(Cli):
    """See `Cli`."""

    key = "codecompanion"
    name = "codecompanion.nvim"


CLI: Final = CodeCompanion()
