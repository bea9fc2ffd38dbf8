"""A host's way to board.db, and what may stand in it: a lock, a newer program, damage, a full disk.

None of it ends a host.  It goes on showing what it knows, says in its health what is wrong, and
tries again after a while, however often something wakes it meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from ..core.options import Options, options_of
from ..storage.database import set_aside
from ..storage.holders import holder
from ..storage.spool import Refused, Spool
from ..storage.store import Busy, Damaged, Draining, Newer, Replaced, Store
from ..system.processes import stat_of
from .attempts import described, pause
from .folding import Clerk, Step, settings_of

LONGEST_WAIT: Final = 0.25  # for the lock, between two tries
LONGEST_PAUSE: Final = 1.0  # between two tries of what was full or could not be written
RARELY: Final = 30.0  # a newer program is here to stay
STUCK: Final = 5.0  # so long without the lock, health names who may hold it

#: What the outside does to a database; anything else is a mistake of ours, and said as such.
TROUBLE: Final = (Busy, Newer, sqlite3.Error, OSError, Refused, msgspec.MsgspecError)

T = TypeVar("T")


class Owner(Protocol):
    """Whose connection it is."""

    config: dict[str, Any]

    def arrived(self, generation: str) -> None: ...

    def renewed(self) -> None: ...

    def tell(self, line: Mapping[str, Any], key: str | None = None) -> str: ...


class Connection:
    """Opens the database, folds with it, and lets others use it; `clerk` is None while it cannot.

    `changed` collects the sessions that may have to be published anew.
    """

    def __init__(self, home: Path, owner: Owner, open: Callable[[], Store]) -> None:
        self.home = home
        self.pid = os.getpid()
        self.spool = Spool(home)
        self.clerk: Clerk | None = None
        self.has_arrived = False
        self.is_outdated = False  # a newer program has the database: nothing is written any more
        self.changed: set[str] = set()
        self.notes: dict[str, str] = {}  # for health: what is not as it should be
        self._owner, self._open_store = owner, open
        self._arriving = 0.0  # since then
        self._times = 0  # that it failed, in a row
        self._until = 0.0  # not to be tried before
        self._locked_out_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there is a database to use."""
        return self.clerk is not None and not self.is_outdated

    @property
    def is_well(self) -> bool:
        """Whether it could be written when that was tried last."""
        return not self._times and not self.is_outdated

    def close(self) -> None:
        """Let go of the database; the next fold opens it again."""
        clerk, self.clerk, self.has_arrived = self.clerk, None, False
        if clerk is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                clerk.store.close()

    def fold(self, arrived: Collection[str]) -> float:
        """Fold what waits; in how many seconds to come again.

        `arrived`: these paths came into new/, and nothing else is known to wait anywhere.
        """
        begun = time.monotonic()
        if begun < self._until:
            return self._until - begun
        try:
            step = self._step(arrived)
        except TROUBLE as e:
            return self._meet(e, begun)
        self._times, self._locked_out_since = 0, 0.0
        self.notes.pop("database", None)
        self.notes.pop("spool", None)
        if step.left:
            self.notes["spool"] = f"{step.left} events are counted but cannot be removed"
        self.changed |= step.changed
        self.notes.pop("rows", None)
        self.notes |= self.clerk.notes(time.time()) if self.clerk is not None else {}
        due = self.clerk.board.due() if self.clerk is not None else None
        if step.more:
            return 0.0
        return max(0.0, due - time.time()) if due is not None else RARELY

    def use(self, work: Callable[[Clerk], T], otherwise: T) -> T:
        """Do something with the database; `otherwise` while it cannot be had."""
        if self.clerk is None or self.is_outdated:
            return otherwise
        try:
            return work(self.clerk)
        except Busy:  # another host writes, for some milliseconds
            return otherwise
        except (Newer, Damaged) as e:
            self._meet(e, time.monotonic())
            return otherwise

    def announce(self, notes: Mapping[str, str] | None = None) -> None:
        """Say that this host lives; with notes: and what is wrong."""
        self.spool.announce(self.pid, notes)

    # ------------------------------------------------------------ coming

    def _step(self, arrived: Collection[str]) -> Step:
        if self.is_outdated:
            self._look_again()
        clerk = self.clerk or self._open()
        if not self.has_arrived:
            self._arrive(clerk)
        return clerk.step(time.time(), arrived)

    def _open(self) -> Clerk:
        self.spool.prepare()
        store = self._open_store()
        try:
            store.skip_changes()
        except BaseException:
            store.close()
            raise
        self.notes.pop("home", None)
        if store.network:
            self.notes["home"] = f"{self.home} is on {store.network}: slower, and less safe"
        self.clerk = Clerk(self.spool, store, watching=True)
        self._owner.renewed()
        return self.clerk

    def _arrive(self, clerk: Clerk) -> None:
        """Be announced; the first host after a time without any lets the board know of the gap.

        However often this is tried, one arrival is told once: what it writes wakes this host too.
        """
        self._arriving = self._arriving or time.time()
        self.changed |= clerk.catch_up()
        store, now, key = clerk.store, time.time(), f"{self.pid} {self._arriving}"
        with store.lock():
            others = [p for p in self.spool.alive_hosts() if p != self.pid]
            self.announce()
            if not others or store.option("watched_since") is None:
                store.set_option("watched_since", now, self.pid, now)
                self.spool.write({"t": self._arriving, "restart": {}}, f"restart {key}")
        wanted = self._owner.config.get("options")
        if isinstance(wanted, Mapping):
            options = options_of(wanted, Options())
            if options != clerk.board.options:
                settings = {**settings_of(options), "pid": self.pid}
                self._owner.tell({"t": self._arriving, "config": settings}, f"config {key}")
        generation = str(store.option("watched_since"))
        self._arriving, self.has_arrived = 0.0, True
        self._owner.arrived(generation)

    # ------------------------------------------------------------ what stands in the way

    def _meet(self, trouble: BaseException, begun: float) -> float:
        """Say what is wrong; in how many seconds to try again."""
        self._times += 1
        if isinstance(trouble, Draining):
            self._locked_out_since = 0.0
            wait = LONGEST_WAIT
        elif isinstance(trouble, Busy):
            wait = self._locked_out()
        elif isinstance(trouble, Newer):
            wait = self._outdated(str(trouble))
        elif isinstance(trouble, Damaged):
            wait = self._damaged(trouble)
        elif isinstance(trouble, Replaced):
            self.close()
            wait = self._at_once_first()
        elif isinstance(trouble, Refused):
            self.close()
            self.notes["home"] = f"{trouble}; move it away, or set BELLBOARD_HOME"
            wait = LONGEST_PAUSE
        else:
            # full, read-only, gone: the spool keeps everything until it can be written again
            self.notes["database"] = f"cannot be written: {described(trouble)}"
            if isinstance(trouble, FileNotFoundError):
                self.close()
            took = time.monotonic() - begun
            wait = max(min(pause(self._times, took), LONGEST_PAUSE), 20 * took)
        self._until = time.monotonic() + wait
        return wait

    def _at_once_first(self) -> float:
        """What is made new can be used at once, but for one that is lost each time."""
        return 0.0 if self._times == 1 else LONGEST_WAIT * (1 + random.random())

    def _locked_out(self) -> float:
        """Another host folds; it takes milliseconds, unless it is suspended."""
        now = time.monotonic()
        self._locked_out_since = self._locked_out_since or now
        if now - self._locked_out_since > STUCK:
            pid = holder(self.home)
            stat = stat_of(pid) if pid else None
            self.notes["database"] = (
                f"held by process {pid}, which is suspended: kill -CONT {pid}, or end it"
                if stat and stat[0] in ("T", "t")
                else f"held by process {pid or 'of unknown number'} for long"
            )
        return min(LONGEST_WAIT, 0.001 * 2.0 ** min(self._times, 9)) * (0.5 + random.random())

    def _outdated(self, why: str) -> float:
        """A newer program has the database: show the last state, and touch nothing any more."""
        self.notes["database"] = why
        if not self.is_outdated:
            self.is_outdated, self.has_arrived = True, False
            self._owner.renewed()
            with contextlib.suppress(OSError):  # hooks need not keep every event for this one
                self.spool.withdraw(self.pid)
        if self.clerk is not None and not self.clerk.board.sessions:
            with contextlib.suppress(*TROUBLE):
                self.clerk.store.refresh(self.clerk.board)
        return RARELY

    def _look_again(self) -> None:
        """Whether the newer program is gone, and its database with it."""
        if self.clerk is not None and not self.clerk.store.is_replaced():
            self.clerk.store.check_version()
        self.close()
        self.is_outdated = False

    def _damaged(self, damage: Damaged) -> float:
        """Begin with an empty one, once nobody else has this one open."""
        self.close()
        try:
            there = set_aside(self.home, damage.inode)
        except OSError as e:
            self.notes["database"] = f"{damage}; it cannot be moved away: {described(e)}"
            return LONGEST_PAUSE
        if there is None:
            others = [p for p in self.spool.alive_hosts() if p != self.pid]
            self.notes["database"] = f"{damage}; end the others that have it open: {others}"
        else:
            self.notes["set aside"] = f"{damage}; it is now {there}"
            return self._at_once_first()
        return LONGEST_WAIT * (1 + random.random())
