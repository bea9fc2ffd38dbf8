"""Write evidence to the spool; lines that cannot be written wait here, in order."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from ..core.deadlines import NEVER
from ..core.untrusted import UNENCODABLE, storable
from ..storage.spool import Spool
from ..system.failures import Backoff, described
from ..system.notes import Notes
from .jobs import FIRST, slowly

MOST: Final = 1000  # waiting lines
LONGEST_PAUSE: Final = 1.0  # seconds between two tries; one takes 0.1 ms

Line = Mapping[str, Any]


class Outbox:
    """Writes lines to the spool; `send` retries lines that had to wait.

    `has_spilled` is true once it goes on after dropping some: those with a key first, which were
    observed and can be reported again; what a user did has none.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.has_spilled = False
        self._waiting: dict[object, tuple[Line, str | None]] = {}
        self._lost = 0
        self._why = ""
        self._backoff = Backoff(FIRST, LONGEST_PAUSE)
        self.notes = Notes()

    @property
    def is_blocked(self) -> bool:
        """Return whether lines are waiting: nothing can be written, perhaps by no hook either."""
        return bool(self._waiting)

    def _note(self) -> None:
        """Note how much waits, and why."""
        if self._waiting:
            lost = f", {self._lost} dropped" if self._lost else ""
            many = f"{len(self._waiting)} changes are waiting to be written"
            self.notes.say("write", f"{many}{lost}: {self._why}")
        else:
            self.notes.settle("write")

    def put(self, line: Line, key: str | None = None) -> str:
        """Write a line, or keep it for later; return why it could not be written, or "".

        Raise ValueError for a line that can never be written.
        """
        if not self._waiting:
            try:
                self._write(line, key)
            except OSError as e:
                self._failed(e, 0.0)
            else:
                return ""
        name = object() if key is None else key
        self._waiting.setdefault(name, (line, key))
        while len(self._waiting) > MOST:
            evidence = (n for n, (_, k) in self._waiting.items() if k is not None)
            del self._waiting[next(evidence, next(iter(self._waiting)))]
            self._lost += 1
        self._note()
        return self._why

    def send(self) -> float:
        """Write waiting lines; return the seconds until the next call."""
        begun = time.monotonic()
        if not self._waiting:
            return NEVER
        if self._backoff.is_waiting:
            return self._backoff.until - begun
        while self._waiting:
            name = next(iter(self._waiting))
            line, key = self._waiting[name]
            try:
                self._write(line, key)
            except OSError as e:
                wait = self._failed(e, time.monotonic() - begun)
                self._note()
                return wait
            except ValueError:
                pass  # it can never be written
            del self._waiting[name]
        self._why = ""
        self._backoff.succeed()
        self._note()
        if self._lost:
            self._lost = 0
            self.has_spilled = True
        return 0.0

    def clear(self) -> None:
        """Drop all waiting lines."""
        self._waiting.clear()
        self._lost = 0
        self._note()

    def _write(self, line: Line, key: str | None) -> None:
        try:
            self._spool.write(line, key)
        except UNENCODABLE:
            self._spool.write(storable(line), key)

    def _failed(self, error: OSError, took: float) -> float:
        self._why = described(error)
        return self._backoff.fail(slowly(took))
