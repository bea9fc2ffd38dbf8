"""Read what the terminal of a session shows, as a preview for a reader elsewhere."""

from __future__ import annotations

from typing import Final

from ..core.replies import MOST_ROWS, WIDEST
from ..core.session import Session, owns_pane
from ..core.visible import visible
from ..system import neovim
from .beside import Declined
from .keyboard import NOWHERE
from .terminals import GONE, Pane

#: Run in a Neovim, which may have another version of this plugin.
SHOWN: Final = "return require('bellboard')._shown(...)"


def preview(s: Session) -> list[str]:
    """Return the rows of its terminal, cleaned; may block, raises `Declined`."""
    if s.tty and s.pane and s.tmux.startswith("/") and owns_pane(s):
        rows: object = Pane(s.tmux, s.pane, s.tty).read()
    elif s.tty and s.nvim:
        try:
            rows = neovim.ask(s.nvim, SHOWN, s.tty)
        except neovim.Failed as why:
            raise Declined(str(why)) from None
    else:
        raise Declined(f"{NOWHERE} there")
    if not isinstance(rows, list):
        raise Declined(GONE)
    shown = [visible(str(row)[:WIDEST]).replace("\n", " ").rstrip() for row in rows[-MOST_ROWS:]]
    while shown and not shown[-1]:
        del shown[-1]
    return shown
