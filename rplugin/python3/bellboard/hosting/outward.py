"""Report the board to the terminal of its reader (OSC 7501), if that terminal reads reports."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from ..core.deadlines import NEVER
from ..core.outward import board_name, bodies_of, changes
from ..core.program_status import sequence
from ..core.published import Published
from ..system.clock import machine_id

OFTEN: Final = 0.3  # seconds between two reports
Write = Callable[[str], None]


def name_of_board(home: Path) -> str:
    """Return the name of the board with this state folder."""
    return board_name(os.path.realpath(home), machine_id())


class Outward:
    """Calls `write` with sequences for a terminal, soon after a session has changed."""

    def __init__(self, board: str, write: Write, environ: Mapping[str, str]) -> None:
        self._board, self._write = board, write
        self._is_near = not environ.get("SSH_CONNECTION")
        self._had: dict[str, str] = {}
        self._seen = -1  # number of pushes at the last report
        self._last = -OFTEN

    def run(self, sessions: Collection[Published], pushes: int) -> float:
        """Report what has changed; return the seconds until the next call."""
        if pushes == self._seen:
            return NEVER
        if (early := self._last + OFTEN - time.monotonic()) > 0:
            return early
        now = bodies_of(self._board, sessions, self._is_near)
        if bodies := changes(self._had, now):
            self._write("".join(map(sequence, bodies)))
            self._last = time.monotonic()
        self._had, self._seen = now, pushes
        return NEVER
