"""Clean up the spool and the database from time to time, so that neither fills up."""

from __future__ import annotations

import time
from typing import Any, Final

from ..agents import dialects
from ..core.deadlines import NEVER
from ..core.words import amount
from .attempts import Attempts
from .connection import Connection
from .folding import Clerk

PRUNE: Final = 600.0
AGAIN: Final = 0.2  # seconds until more old rows are pruned, or a check of the database is done


class Upkeep:
    """Cleans up; `counts` holds the number of files in the spool."""

    def __init__(self, connection: Connection, attempt: Attempts) -> None:
        self._connection, self._spool, self._attempt = connection, connection.spool, attempt
        self.counts: dict[str, Any] = {}
        self._refused = 0  # refused files at the last count
        self._pruned = -PRUNE
        self._due = {"spool": 0.0, "database": 0.0}

    def expect(self) -> None:
        """Clean up in the next round."""
        self._due = dict.fromkeys(self._due, 0.0)

    def run(self) -> float:
        """Clean up what is due; return the seconds until the next call."""
        now = time.monotonic()
        for about, work in (("spool", self._sweep), ("database", self._tidy)):
            if now >= self._due[about]:
                self._due[about] = now + self._attempt("rescan", about, work)
        return min(self._due.values()) - now

    def count(self, clerk: Clerk) -> None:
        """Count the files again if some were set aside."""
        if clerk.refused != self._refused:
            self._refused = clerk.refused
            self._attempt.once("rescan", "spool", self._count)

    @property
    def notes(self) -> dict[str, str]:
        """Return how many files wait in vain, for health."""
        if not (stuck := self.counts.get("stuck")):
            return {}
        files, where = amount(stuck, "file"), self._spool.new
        return {"stuck": f"{files} in {where} cannot be read now: check the disk, or delete them"}

    def _sweep(self) -> float:
        self._attempt.once("rescan", "folders", self._spool.restore)
        if self._connection.has_arrived:
            self._connection.announce()
        self._count()  # before what is stuck is tried again
        self._spool.sweep()
        dialects.try_again()
        if (clerk := self._connection.clerk) is not None:
            clerk.try_again()
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
        self._connection.check_again()
        goes_on = self._connection.use(lambda clerk: clerk.sweep(time.time()), otherwise=False)
        if time.monotonic() >= self._pruned + PRUNE:
            is_more = self._connection.use(lambda clerk: clerk.store.prune(time.time()), None)
            if is_more is False:  # None: it is busy, and the next rescan tries again
                self._pruned = time.monotonic()
            goes_on |= bool(is_more)
        return AGAIN if goes_on else NEVER
