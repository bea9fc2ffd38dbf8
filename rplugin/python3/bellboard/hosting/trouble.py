"""Problems with board.db and its folder: locked, newer, damaged, replaced, full, not ours.

Each is reported in health, with advice, and retried after a pause, however often the host is woken
meanwhile.
"""

from __future__ import annotations

import random
import sqlite3
import time
from typing import Final

import msgspec

from ..storage.damaged import set_aside
from ..storage.holders import holder
from ..storage.spool import Refused, Spool
from ..storage.store import Busy, Damaged, Draining, Newer, Replaced
from ..system.failures import described
from ..system.processes import frozen
from .attempts import pause

LONGEST_WAIT: Final = 0.25  # seconds between two tries for the lock
LONGEST_PAUSE: Final = 1.0  # seconds between two tries after a failed write
RARELY: Final = 30.0  # seconds; a newer program is here to stay
STUCK: Final = 5.0  # seconds without the lock until health names its holder

#: Problems with causes outside this program; anything else is a bug, and reported as one.
TROUBLE: Final = (Busy, Newer, sqlite3.Error, OSError, Refused, msgspec.MsgspecError)
#: After these errors the open database is useless: it is damaged, gone or replaced.
OF_NO_USE: Final = (Damaged, FileNotFoundError, Refused)


class Trouble:
    """Tracks problems in `notes`; nothing should be tried before `until`."""

    def __init__(self, spool: Spool, pid: int) -> None:
        self.notes: dict[str, str] = {}  # for health
        self.times = 0  # failures in a row
        self.until = 0.0
        self._spool, self._pid = spool, pid
        self._locked_out_since = 0.0

    def end(self) -> None:
        """Note a success."""
        self.times, self._locked_out_since = 0, 0.0
        self.notes.pop("database", None)

    def meet(self, error: BaseException, begun: float) -> float:
        """Note the failure of a try that started at `begun`; return the seconds until the next."""
        self.times += 1
        wait = self._wait(error, time.monotonic() - begun)
        self.until = time.monotonic() + wait
        return wait

    def _wait(self, error: BaseException, took: float) -> float:
        match error:
            case Draining():
                self._locked_out_since = 0.0
                return LONGEST_WAIT
            case Busy():
                return self._locked_out()
            case Newer():
                self.notes["database"] = str(error)
                return RARELY
            case Damaged():
                return self._damaged(error)
            case Replaced():
                return self._at_once_first()
            case Refused():
                self.notes["home"] = f"{error}; move it away, or set BELLBOARD_HOME"
                return LONGEST_PAUSE
        # full, read-only, gone: the spool keeps all events until it can be written again
        self.notes["database"] = f"cannot be written: {described(error)}"
        return pause(self.times, took, LONGEST_PAUSE)

    def _at_once_first(self) -> float:
        """Retry at once after the first failure, but not if each new database is lost too."""
        return 0.0 if self.times == 1 else LONGEST_WAIT * (1 + random.random())

    def _locked_out(self) -> float:
        """Wait for another host that folds, which takes milliseconds unless it is suspended."""
        now = time.monotonic()
        self._locked_out_since = self._locked_out_since or now
        if now - self._locked_out_since > STUCK:
            pid = holder(self._spool.home)
            by = f"process {pid}{frozen(pid)}" if pid else "another process"
            self.notes["database"] = f"locked by {by}"
        return min(LONGEST_WAIT, 0.001 * 2.0 ** min(self.times, 9)) * (0.5 + random.random())

    def _damaged(self, damage: Damaged) -> float:
        """Start an empty database, once no other host has the damaged one open."""
        try:
            there = set_aside(self._spool.home, damage.inode)
        except OSError as e:
            self.notes["database"] = f"{damage}; it cannot be moved away: {described(e)}"
            return LONGEST_PAUSE
        if there is None:
            others = [p for p in self._spool.hosts.alive() if p != self._pid]
            pids = ", ".join(map(str, others))
            self.notes["damage"] = f"{damage}; stop the processes that have it open: {pids}"
            return LONGEST_WAIT * (1 + random.random())
        self.notes["set aside"] = f"{damage}; moved to {there}"
        return self._at_once_first()
