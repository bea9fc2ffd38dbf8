"""The status in tmux: a user option of each server that asked for it, kept true by every host.

`bellboard tmux --apply` asks, by the server's socket in the shared option `bars`.  A host starts
tmux and goes on: it never waits for a server.  Hosts say the same, so it does not matter which of
them comes last, nor which dies.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Collection
from typing import Final

from ..core import words
from ..core.published import Published
from . import gate
from .tmux import assignment
from .wiring import OPTION

ASKED: Final = "bars"  # the name of the shared option
OFTEN: Final = 1.0  # seconds from one look to the next
RARELY: Final = 30.0
LONGEST: Final = 10.0  # a server that takes so long for one option is deaf


class Bars:
    """Tells servers the status when its words have changed."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
        self._last = -OFTEN

    def early(self) -> float:
        """How long until servers may be told again."""
        return self._last + OFTEN - time.monotonic()

    def tell(self, asked: object, sessions: Collection[Published], now: float) -> float:
        """Let each server that asked show what is true now; in how many seconds to come again."""
        self._last = time.monotonic()
        sockets = [x for x in asked if isinstance(x, str)] if isinstance(asked, list) else []
        if not sockets:
            return RARELY
        text = words.status_text(sessions, now)
        wait = min([RARELY, *(words.age_changes(p["since"], now) - now for p in sessions)])
        for socket in sockets:
            if self._told.get(socket) == text:
                continue
            if self._start(socket, text):
                self._told[socket] = text
            else:
                wait = OFTEN
        return max(OFTEN, wait)

    def _start(self, socket: str, text: str) -> bool:
        """Set it, once what was set before has come to its end."""
        before, begun = self._running.pop(socket, (None, 0.0))
        if before is not None and before.poll() is None:
            if time.monotonic() < begun + LONGEST:
                self._running[socket] = before, begun
                return False
            before.kill()
            before.wait()
        null = subprocess.DEVNULL
        try:
            command = gate.tmux(socket, *assignment(OPTION, text))
            started = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)
        except OSError:  # no such server, or not ours; no tmux
            return True
        self._running[socket] = started, time.monotonic()
        return True
