"""A program in a :terminal of a real Neovim, with the interface of a tmux pane."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import termios
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Final

import psutil

from bellboard.system.processes import tty_of
from rig.editor import Editor
from rig.waiting import PATIENCE, eventually, matching

KEYS: Final = {  # by tmux's names
    "Enter": "\r",
    "Escape": "\x1b",
    "Tab": "\t",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "Right": "\x1b[C",
    "Left": "\x1b[D",
    "BSpace": "\x7f",
    **{f"C-{letter}": chr(ord(letter) & 31) for letter in ascii_lowercase},
}
READS: Final = 5.0  # seconds in which a busy CLI reads its keys
# In a window below, which is not the current one, so that it is not in view.
OPEN = """
local argv, cwd, columns, lines = ...
vim.o.columns, vim.o.lines = columns, 2 * lines
local buffer = vim.api.nvim_create_buf(true, false)
local window = vim.api.nvim_open_win(buffer, false, { split = 'below', height = lines })
return vim.api.nvim_win_call(window, function()
  local options = { cwd = cwd, term = vim.fn.has('nvim-0.11') == 1 or nil }
  local job = (options.term and vim.fn.jobstart or vim.fn.termopen)(argv, options)
  return { buffer, job, vim.fn.jobpid(job), lines }
end)
"""
SHOWN = """
local buffer, lines = ...
local is_there = vim.api.nvim_buf_is_valid(buffer)
return is_there and vim.api.nvim_buf_get_lines(buffer, -1 - lines, -1, false) or {}
"""


class Terminal:
    """A :terminal; its program ends with it."""

    def __init__(self, editor: Editor, argv: Sequence[str], cwd: Path) -> None:
        self.editor = editor
        self._buffer, self._job, self.pid, self._lines = editor.lua(
            OPEN, list(argv), str(cwd), 110, 45
        )

    @property
    def id(self) -> str:
        """Return its device, while its program runs."""
        return tty_of(self.pid)

    @property
    def dead(self) -> bool:
        """Return whether its program has ended."""
        return not psutil.pid_exists(self.pid)

    def text(self) -> str:
        """The text on the terminal."""
        return "\n".join(self.editor.lua(SHOWN, self._buffer, self._lines))

    def type(self, text: str) -> None:
        """Type a text; nobody reads it if the program has ended."""
        self.editor.lua("pcall(vim.fn.chansend, ...)", self._job, text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: press("Escape"), press("C-c").

        The CLI takes keys that arrive together for pasted text, so each arrives alone.
        """
        for key in keys:
            self._is_read()
            self.type(KEYS.get(key, key))
            self._is_read()

    def _is_read(self) -> None:
        """Wait until its program has read what was typed; one that is stopped never does."""
        try:
            tty = os.open(psutil.Process(self.pid).terminal(), os.O_RDONLY | os.O_NOCTTY)
        except (psutil.NoSuchProcess, OSError, TypeError):
            return
        unread = array.array("i", [0])

        def done() -> bool:
            try:
                fcntl.ioctl(tty, termios.FIONREAD, unread)
            except OSError:  # it has just ended
                return True
            return unread[0] == 0

        with contextlib.suppress(AssertionError):
            eventually(done, within=READS)
        os.close(tty)

    def shows(self, pattern: str, within: float = PATIENCE) -> str:
        """Wait until the screen matches; return its text."""
        return matching(self.text, pattern, within)

    def close(self) -> None:
        """Wipe out the buffer, whatever runs in it."""
        with contextlib.suppress(OSError, EOFError):
            self.editor.lua("vim.api.nvim_buf_delete(..., { force = true })", self._buffer)
