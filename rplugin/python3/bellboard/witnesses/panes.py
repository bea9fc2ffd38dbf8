"""Report whether the tmux panes of sessions still exist."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

from ..core.clock import is_recent
from ..core.finding import Finding
from ..system.tmux import DEAF, PANE, Pane, Tmux

EVERY: Final = 10.0  # seconds between two queries of a server


class Panes:
    """Reports which panes of sessions exist; queries a server at most every 10 s."""

    def __init__(self, generation: str = "") -> None:
        self._generation = generation
        self._asked: dict[str, float] = {}
        self._reported: dict[tuple[str, str], str] = {}  # socket, pane → tty; empty: gone
        self.notes: dict[str, str] = {}  # for health: which servers do not respond

    def renew(self, generation: str) -> None:
        """Report everything again at the next check, and check at once."""
        if generation != self._generation:
            self._generation = generation
            self._reported.clear()
            self._asked.clear()

    def is_due(self, now: float, socket: str) -> bool:
        """Return whether the server is due for a query."""
        asked, pause = self._asked.get(socket, -math.inf), DEAF if self.is_deaf(socket) else EVERY
        return socket.startswith("/") and not is_recent(asked, now, pause)

    def is_deaf(self, socket: str) -> bool:
        """Return whether the server did not respond last time."""
        return f"tmux {socket}" in self.notes

    def take(
        self,
        now: float,
        socket: str,
        panes: Collection[str],
        listed: list[Pane] | None,
        why: str = "",
    ) -> list[Finding]:
        """Process a server's answer about these panes, or the reason why there is none."""
        self._asked[socket] = now
        if listed is None:
            self.notes[f"tmux {socket}"] = why
            return []
        self.notes.pop(f"tmux {socket}", None)
        live = {p.id: p for p in listed if not p.dead}
        found = []
        for pane in sorted(panes):
            tty = live[pane].tty if pane in live else ""
            if self._reported.get((socket, pane)) == tty or not PANE.fullmatch(pane):
                continue
            before, self._reported[socket, pane] = self._reported.get((socket, pane), ""), tty
            facts = {"tmux": socket, "pane": pane, "alive": pane in live, "tty": tty}
            # A restarted server numbers its panes from 0 again.
            once = f"{live[pane].pid if pane in live else before} {self._generation}"
            key = f"pane {socket} {pane} {tty or 'gone'} {once}"
            found.append(Finding({"t": now, "pane": facts}, key))
        return found

    def keep(self, used: Mapping[str, Collection[str]]) -> None:
        """Forget panes that no session uses."""
        self._reported = {
            (socket, pane): tty
            for (socket, pane), tty in self._reported.items()
            if pane in used.get(socket, ())
        }
        for socket in self._asked.keys() - used.keys():
            del self._asked[socket]
        self.notes = {n: why for n, why in self.notes.items() if n.partition(" ")[2] in used}


def panes_of(socket: str) -> tuple[list[Pane] | None, str]:
    """Return the panes of a server, or None and why."""
    tmux = Tmux(socket)
    return tmux.panes(), tmux.why
