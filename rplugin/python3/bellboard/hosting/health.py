"""The report of a running host for :checkhealth and doctor."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from ..agents.installing.guard import Guard
from ..core import words
from ..core.deadlines import NEVER
from ..core.version import VERSION
from ..system.notes import Notes
from ..system.watch import Watch
from .connection import Connection
from .notify import Notifier

MOST: Final = 20  # notes of one part: what damages one file may damage thousands
OFTEN: Final = 1.0  # seconds between two writes of the notes


class Health:
    """Collects the notes of a host's parts; doctor reads them from a file."""

    def __init__(
        self,
        connection: Connection,
        guard: Guard,
        notifier: Notifier,
        told: Sequence[Notes],
    ) -> None:
        self._connection, self._guard, self._notifier = connection, guard, notifier
        self.watch: Watch | None = None  # once there is one
        self._told = told
        self._changes = -1  # of notes, when they were last collected
        self._home = words.plain(connection.home)
        self._notes: dict[str, str] = {}
        self._shared: dict[str, str] | None = None  # the notes as last written; None: unknown
        self._early = 0.0  # do not write before this

    def report(self, spool: Mapping[str, Any], sessions: int) -> dict[str, Any]:
        """Return the health; `spool`: its counts, `sessions`: how many are listed."""
        if self._changes != Notes.changes:
            self._changes, self._notes = Notes.changes, _few(self._told)
        shared, watch = self._connection.shared, self.watch
        vanished = self._guard.vanished
        return {
            "version": VERSION,
            "pid": self._connection.pid,
            "home": self._home,
            "watch": watch.how if watch is not None else "",
            "watch_note": watch.note if watch is not None else "",
            "notices": self._notifier.health(),
            "notes": self._notes,
            "counts": dict(shared.board.ledger.counts) if shared is not None else {},
            "spool": spool,
            "sessions": sessions,
            **({"vanished": vanished, "repair": self._guard.repair} if vanished else {}),
        }

    def share(self) -> float:
        """Write the notes for doctor."""
        now = time.monotonic()
        if not self._connection.has_arrived:
            self._shared = None  # those of trouble until then may be in the file
            return NEVER
        if self._notes == self._shared:
            return NEVER
        if now < self._early:
            return self._early - now
        self._early = now + OFTEN
        self._connection.announce(self._notes)
        self._shared = self._notes
        return NEVER


def _few(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the notes of some parts, as many of each as can be listed."""
    few, more = dict[str, str](), 0
    for notes in parts:
        few |= {words.plain(k): words.plain(x) for k, x in islice(notes.items(), MOST)}
        more += max(0, len(notes) - MOST)
    if more:
        few["more"] = f"{words.amount(more, 'more note')}, not listed here"
    return few
