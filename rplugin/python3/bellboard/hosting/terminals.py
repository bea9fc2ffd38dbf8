"""The terminals that keys can be typed into: a pane of tmux, a terminal buffer of a Neovim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..agents.dialect import Press
from ..core.session import Run, owns_pane
from ..system import neovim, tmux
from .beside import Declined
from .keyboard import Terminal

DEPTH: Final = 60  # rows of a terminal: more than any dialog has
GONE: Final = "its Neovim no longer has its terminal"

#: Run in a Neovim, which may have another version of this plugin.
READ: Final = "local ok, rows = pcall(require('bellboard')._rows, ...) return ok and rows or false"
TYPE: Final = "local ok, typed = pcall(require('bellboard')._type, ...) return ok and typed"
#: Names of keys → what a terminal sends for them.
SENT: Final = {"Down": "\x1b[B", "Right": "\x1b[C", "Tab": "\t", "Enter": "\r"}


class Pane:
    """A pane of tmux."""

    def __init__(self, socket: str, pane: str, tty: str) -> None:
        self._tmux, self._pane, self._tty = tmux.Tmux(socket), pane, tty

    def rows(self) -> Sequence[str]:
        if astray := self._proven().astray:
            raise Declined(f"its tmux pane {astray}; go there to answer")
        return self._tmux.capture(self._pane, DEPTH)

    def read(self) -> Sequence[str]:
        """Return the rows, whether keys can be typed or not."""
        self._proven()
        return self._tmux.capture(self._pane, DEPTH)

    def _proven(self) -> tmux.Pane:
        """Return the pane, if it is the terminal of the session."""
        for pane in self._tmux.panes() or ():
            if (pane.id, pane.tty, pane.dead) == (self._pane, self._tty, False):
                return pane
        why = f"tmux pane {self._pane} is not its terminal {self._tty}"
        raise Declined(self._tmux.why or why)

    def type(self, press: Press) -> bool:
        if not _shows(self._tmux.capture(self._pane, DEPTH), press.rows):
            return False
        named = press.key in SENT
        done = (
            self._tmux.press(self._pane, press.key)
            if named
            else self._tmux.type(self._pane, press.key or press.text)
        )
        if not done:
            raise Declined(f"tmux did not take the key: {self._tmux.why}")
        return True


class Buffer:
    """A terminal buffer of a Neovim."""

    def __init__(self, address: str, tty: str) -> None:
        self._address, self._tty = address, tty

    def rows(self) -> Sequence[str]:
        rows = self._ask(READ, self._tty)
        if not isinstance(rows, list):
            raise Declined(GONE)
        return [str(row) for row in rows]

    def type(self, press: Press) -> bool:
        sent = press.text or SENT.get(press.key, press.key)
        return self._ask(TYPE, self._tty, list(press.rows), sent) is True

    def _ask(self, code: str, *arguments: object) -> object:
        try:
            return neovim.ask(self._address, code, *arguments)
        except neovim.Failed as why:
            raise Declined(str(why)) from None


def terminal_of(run: Run) -> Terminal | None:
    """Return the terminal that keys can be typed into, if it is known."""
    if not run.tty:
        return None
    if run.nvim and not owns_pane(run):
        return Buffer(run.nvim, run.tty)
    if run.pane and run.tmux.startswith("/"):
        return Pane(run.tmux, run.pane, run.tty)
    return None


def _shows(screen: Sequence[str], rows: Sequence[str]) -> bool:
    """Return whether rows are on a screen, one below the other."""
    text = "\n".join(["", *(row.rstrip() for row in screen), ""])
    return "\n".join(["", *rows, ""]) in text
