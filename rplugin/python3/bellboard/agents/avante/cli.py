"""avante.nvim, as the rest of the program observes it."""

from __future__ import annotations

from typing import Final

from ..cli import Cli


class Avante(Cli):
    """See `Cli`."""

    key = "avante"
    name = "avante.nvim"


CLI: Final = Avante()
