"""Clean up the spool and the database from time to time, so that neither fills up."""

from __future__ import annotations

import time
from typing import Any, Final

from ..core.deadlines import NEVER
from .attempts import Attempts
from .connection import Connection
from .folding import Clerk

PRUNE: Final = 600.0
CHECKING: Final = 0.2  # seconds between two looks whether a check of the database is done


class Upkeep:
    """Cleans up; `counts` holds the number of files in the spool."""

    def __init__(self, connection: Connection, attempt: Attempts) -> None:
        self._connection, self._spool, self._attempt = connection, connection.spool, attempt
        self.counts: dict[str, Any] = {}
        self._refused = 0  # refused files at the last count
        self._pruned = -PRUNE

    def run(self) -> float:
        """Clean up; return the seconds until the next call."""
        spool = self._attempt("rescan", "spool", self._sweep)
        return min(spool, self._attempt("rescan", "database", self._tidy))

    def count(self, clerk: Clerk) -> None:
        """Count the files again if some were set aside."""
        if clerk.refused != self._refused:
            self._refused = clerk.refused
            self._attempt.once("rescan", "spool", self._count)

    def _sweep(self) -> float:
        if self._connection.has_arrived:
            self._connection.announce()
        self._spool.sweep()
        self._count()
        return NEVER

    def _count(self) -> None:
        self.counts = self._spool.counts()

    def _tidy(self) -> float:
        clerk = self._connection.clerk
        if clerk is None or not self._connection.has_arrived:
            return NEVER
        if clerk.store.is_replaced():
            self._connection.close()
            return 0.0
        goes_on = self._connection.use(lambda clerk: clerk.sweep(time.time()), otherwise=False)
        if time.monotonic() >= self._pruned + PRUNE and not self._connection.use(
            lambda clerk: clerk.store.prune(time.time()), otherwise=True
        ):
            self._pruned = time.monotonic()
        return CHECKING if goes_on else NEVER
