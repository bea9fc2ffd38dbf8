"""What may be wrong with board.db and its folder: held, newer, damaged, replaced, full, not ours.

Each is named in health, with what to do about it, and tried again after a while, however often
something wakes the host meanwhile.
"""

from __future__ import annotations

import random
import sqlite3
import time
from typing import Final

import msgspec

from ..storage.database import set_aside
from ..storage.holders import holder
from ..storage.spool import Refused, Spool
from ..storage.store import Busy, Damaged, Draining, Newer, Replaced
from ..system.processes import stat_of
from .attempts import described, pause

LONGEST_WAIT: Final = 0.25  # for the lock, between two tries
LONGEST_PAUSE: Final = 1.0  # between two tries of what was full or could not be written
RARELY: Final = 30.0  # a newer program is here to stay
STUCK: Final = 5.0  # so long without the lock, health names who may hold it

#: What the outside does to a database; anything else is a mistake of ours, and said as such.
TROUBLE: Final = (Busy, Newer, sqlite3.Error, OSError, Refused, msgspec.MsgspecError)
#: After these the database that is open is of no use: it is damaged, gone or replaced.
OF_NO_USE: Final = (Damaged, FileNotFoundError, Refused)


class Trouble:
    """`notes` says what is wrong; nothing is tried before `until`."""

    def __init__(self, spool: Spool, pid: int) -> None:
        self.notes: dict[str, str] = {}  # for health
        self.times = 0  # that it failed, in a row
        self.until = 0.0
        self._spool, self._pid = spool, pid
        self._locked_out_since = 0.0

    def end(self) -> None:
        """It could be written."""
        self.times, self._locked_out_since = 0, 0.0
        self.notes.pop("database", None)

    def meet(self, error: BaseException, begun: float) -> float:
        """Say what is wrong with what was tried at `begun`; in how many seconds to try again."""
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
        # full, read-only, gone: the spool keeps everything until it can be written again
        self.notes["database"] = f"cannot be written: {described(error)}"
        return max(min(pause(self.times, took), LONGEST_PAUSE), 20 * took)

    def _at_once_first(self) -> float:
        """What is made new can be used at once, but for one that is lost each time."""
        return 0.0 if self.times == 1 else LONGEST_WAIT * (1 + random.random())

    def _locked_out(self) -> float:
        """Another host folds; it takes milliseconds, unless it is suspended."""
        now = time.monotonic()
        self._locked_out_since = self._locked_out_since or now
        if now - self._locked_out_since > STUCK:
            pid = holder(self._spool.home)
            stat = stat_of(pid) if pid else None
            self.notes["database"] = (
                f"held by process {pid}, which is suspended: kill -CONT {pid}, or end it"
                if stat and stat[0] in ("T", "t")
                else f"held by process {pid or 'of unknown number'} for long"
            )
        return min(LONGEST_WAIT, 0.001 * 2.0 ** min(self.times, 9)) * (0.5 + random.random())

    def _damaged(self, damage: Damaged) -> float:
        """Begin with an empty one, once nobody else has this one open."""
        try:
            there = set_aside(self._spool.home, damage.inode)
        except OSError as e:
            self.notes["database"] = f"{damage}; it cannot be moved away: {described(e)}"
            return LONGEST_PAUSE
        if there is None:
            others = [p for p in self._spool.alive_hosts() if p != self._pid]
            self.notes["database"] = f"{damage}; end the others that have it open: {others}"
            return LONGEST_WAIT * (1 + random.random())
        self.notes["set aside"] = f"{damage}; it is now {there}"
        return self._at_once_first()
