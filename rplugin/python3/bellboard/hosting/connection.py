"""Problems with board.db and its folder: locked, newer, damaged, replaced, full, not ours.

Each is reported in health, with advice, and retried after a pause, however often the host is woken
meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ..core.deadlines import NEVER
from ..core.options import Options, options_of, settings_of
from ..storage.database import is_unreadable
from ..storage.set_aside import set_database_aside
from ..storage.spool import Refused, Spool
from ..storage.store import SPACE, Busy, Damaged, Draining, Newer, Replaced, Store
from ..system.failures import Backoff, described
from ..system.notes import Notes
from ..system.processes import own_space
from .jobs import FIRST, slowly
from .turn import SharedBoard, Turned

PATIENCE: Final = 0.1  # seconds to create a database: the event loop is blocked meanwhile
BUSY: Final = 0.001  # seconds until the second try for the lock; longer each time
LONGEST_WAIT: Final = 0.25  # seconds between two tries for the lock
LONGEST_PAUSE: Final = 1.0  # seconds between two tries after a failed write
RARELY: Final = 30.0  # seconds; a newer program is here to stay
STUCK: Final = 5.0  # seconds without the lock until health says so

#: Problems with causes outside this program; anything else is a bug, and reported as one.
TROUBLE: Final = (Busy, Newer, sqlite3.Error, OSError, Refused, msgspec.MsgspecError)
#: After these errors the open database is useless: it is damaged, gone or replaced.
OF_NO_USE: Final = (Damaged, FileNotFoundError, Refused)


class Trouble:
    """Tracks problems in `notes`; nothing should be tried before `until`."""

    def __init__(self, spool: Spool, pid: int) -> None:
        self.notes = Notes()
        self.times = 0  # failures in a row
        self.until = 0.0
        self._spool, self._pid = spool, pid
        self._backoff = Backoff(FIRST, LONGEST_PAUSE)
        self._busy = Backoff(BUSY, LONGEST_WAIT, jitter=0.5)  # while another host folds

    def end(self) -> None:
        """Note a success."""
        self.times = 0
        self._backoff.succeed()
        self._busy.succeed()
        self.notes.settle("database")

    def meet(self, error: BaseException, begun: float) -> float:
        """Note the failure of a try that started at `begun`; return the seconds until the next."""
        self.times += 1
        wait = self._wait(error, time.monotonic() - begun)
        self.until = time.monotonic() + wait
        return wait

    def _wait(self, error: BaseException, took: float) -> float:
        match error:
            case Draining():
                self._busy.succeed()
                return LONGEST_WAIT
            case Busy():
                return self._locked_out()
            case Newer():
                self.notes.say("database", str(error))
                return RARELY
            case Damaged():
                return self._damaged(error)
            case Replaced():
                return self._at_once_first()
            case Refused():
                self.notes.say("home", f"{error}; move it away, or set BELLBOARD_HOME")
                return LONGEST_PAUSE
        # full, read-only, gone: the spool keeps all events until it can be written again
        self.notes.say("database", f"cannot be written: {described(error)}")
        return self._backoff.fail(slowly(took))

    def _at_once_first(self) -> float:
        """Retry at once after the first failure, but not if each new database is lost too."""
        return 0.0 if self.times == 1 else LONGEST_WAIT * (1 + random.random())

    def _locked_out(self) -> float:
        """Wait for another host that folds, which takes milliseconds unless it is suspended."""
        wait = self._busy.fail()
        if time.monotonic() - self._busy.since > STUCK:
            self.notes.say("database", "locked by another process: `bellboard doctor` names it")
        return wait

    def _damaged(self, damage: Damaged) -> float:
        """Start an empty database, once no other host has the damaged one open."""
        try:
            there = set_database_aside(self._spool.home, damage.inode)
        except OSError as e:
            self.notes.say("database", f"{damage}; it cannot be moved away: {described(e)}")
            return LONGEST_PAUSE
        if there is None:
            others = [p for p in self._spool.hosts.alive() if p != self._pid]
            pids = ", ".join(map(str, others))
            self.notes.say("damage", f"{damage}; stop the processes that have it open: {pids}")
            return LONGEST_WAIT * (1 + random.random())
        self.notes.say("set aside", f"{damage}; moved to {there}")
        return self._at_once_first()


# A host's connection to board.db: open it, announce the host, use it, and close it when
# useless.
#
# No problem with it (`Trouble`) ends the host, which keeps showing what it knows.


BACK: Final = 10.0  # seconds in which a host that its editor starts again has missed nothing


class Connection:
    """Opens the database, folds, and lets others use it; `shared` is None while it is closed.

    `changed` collects the sessions that may have to be published again.
    """

    def __init__(self, home: Path, config: Mapping[str, Any]) -> None:
        self.home = home
        self.pid = os.getpid()
        self.spool = Spool(home)
        self.shared: SharedBoard | None = None
        self.has_arrived = False
        self.renewals = 0  # how often the database was opened, or left to a newer program
        self.arrivals = 0  # how often this host was announced
        self.generation = ""  # changes when no host was left before that
        self.is_outdated = False  # the database belongs to a newer program: do not write
        self.changed: set[str] = set()
        self.trouble = Trouble(self.spool, self.pid)
        self.notes = self.trouble.notes
        self.board_notes = Notes()
        self._config = config
        seen, left = (config.get(name) for name in ("seen", "left"))
        #: The last transition that the editor has of the process before, which ended at `_left`.
        self._seen = seen if type(seen) is int else None
        self._left = float(left) if isinstance(left, int | float) else -NEVER
        self._arriving = 0.0  # since when
        self._lost: SharedBoard | None = None  # of a database that was damaged, or lost its log
        self._damaged = 0  # inode of a damaged database that others have open
        self._closed = False  # whether a database was unusable, perhaps because its log was lost

    @property
    def is_open(self) -> bool:
        """Return whether the database can be used."""
        return self.shared is not None and not self.is_outdated

    @property
    def is_well(self) -> bool:
        """Return whether the last fold succeeded."""
        return not self.trouble.times and not self.is_outdated

    def close(self) -> None:
        """Close the database; the next fold opens it again."""
        shared, self.shared, self.has_arrived = self.shared, None, False
        if shared is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                shared.store.close()

    def fold(self, arrived: Collection[str]) -> float:
        """Fold pending events; return the seconds until the next call.

        `arrived`: if not empty, only these paths in new/ are pending.
        """
        begun = time.monotonic()
        if begun < self.trouble.until:
            return self.trouble.until - begun
        try:
            turned = self._turn(arrived)
        except TROUBLE as e:
            return self._meet(e, begun)
        self.trouble.end()
        if turned.left:
            self.notes.say("spool", f"{turned.left} folded events cannot be deleted")
        else:
            self.notes.settle("spool")
        self.changed |= turned.changed
        due = self.shared.board.due() if self.shared is not None else None
        if turned.more:
            return 0.0
        return max(0.0, due - time.time()) if due is not None else NEVER

    @contextlib.contextmanager
    def use(self) -> Iterator[SharedBoard | None]:
        """Lend the board, or None while the database is not available.

        The block ends early while another host is writing, for a few milliseconds, or if the
        database turns out to be damaged or of a newer program.
        """
        try:
            yield self.shared if self.is_open else None
        except Busy:
            pass
        except (Newer, Damaged) as e:
            self._meet(e, time.monotonic())

    def check_again(self) -> None:
        """Check a damaged database again once no other host has it open: then it is set aside."""
        if self.shared is None or "damage" not in self.notes:
            return
        if not any(p != self.pid for p in self.spool.hosts.alive()):
            self.notes.settle("damage")  # noted again, or set aside, if it is still there
            self.shared.store.pruning.checked = False

    def announce(self, notes: Mapping[str, str] | None = None) -> None:
        """Record that this host is running; with notes, also what is wrong."""
        self.spool.hosts.announce(self.pid, notes)

    # ------------------------------------------------------------ arrival

    def _turn(self, arrived: Collection[str]) -> Turned:
        if self.is_outdated:
            self._check_again()
        shared = self.shared or self._open()
        if not self.has_arrived:
            self._arrive(shared)
        return shared.turn(time.time(), arrived)

    def _open(self) -> SharedBoard:
        self.spool.prepare()
        store = Store(self.home, patience=PATIENCE)
        try:
            store.skip_changes(self._seen)
        except BaseException:
            store.close()
            raise
        self._seen = None
        self.notes.settle("home")
        if store.database.network:
            self.notes.say(
                "home", f"{self.home} is on {store.database.network}: slower and less safe"
            )
        self.shared = SharedBoard(self.spool, store, self.board_notes, watching=True)
        self.renewals += 1
        return self.shared

    def _arrive(self, shared: SharedBoard) -> None:
        """Announce this host; the first one after a time without any also records the gap.

        A retry writes the same keys, so that one arrival counts once: its lines wake this host too.
        """
        self._arriving = self._arriving or time.time()
        if self._lost is not None:
            self.changed |= shared.restore(self._lost, time.time())
        self.changed |= shared.catch_up()
        store, now, key = shared.store, time.time(), f"{self.pid} {self._arriving}"
        with store.transaction() as tx:
            others = [p for p in self.spool.hosts.alive() if p != self.pid]
            self.announce()
            is_gap = not (others or self._lost or abs(now - self._left) < BACK)
            if is_gap or store.option("watched_since") is None:
                tx.set_option("watched_since", now, self.pid, now)
                self.spool.write({"t": self._arriving, "restart": {}}, f"restart {key}")
            if (space := own_space()) != store.option(SPACE):
                tx.set_option(SPACE, space, self.pid, now)
            is_known = store.database.inode == self._damaged
            store.pruning.checked = bool(others) and (is_known or not self._closed)
            if not is_known:
                self.notes.settle("damage")
        wanted = self._config.get("options")
        if isinstance(wanted, Mapping):
            options = options_of(wanted, Options())
            if options != shared.board.options:
                settings = {**settings_of(options), "pid": self.pid}
                self.spool.write({"t": self._arriving, "config": settings}, f"config {key}")
        self.arrivals, self.generation = self.arrivals + 1, str(store.option("watched_since"))
        self._arriving, self.has_arrived, self._lost = 0.0, True, None

    # ------------------------------------------------------------ trouble

    def _meet(self, error: BaseException, begun: float) -> float:
        """Close a useless database; return the seconds until the next try."""
        if isinstance(error, OF_NO_USE) or is_unreadable(error):
            self._closed = True
            if isinstance(error, Damaged):
                self._damaged = error.inode
            if self._is_still_ours(error):
                self._lost = self._lost or self.shared  # one that has not arrived knows nothing
            self.close()
        elif isinstance(error, Newer):
            self._step_back()
        return self.trouble.meet(error, begun)

    def _is_still_ours(self, error: BaseException) -> bool:
        """Return whether the user has neither removed the database nor put another in its place."""
        if isinstance(error, Replaced):
            return self.shared is not None and self.shared.store.database.is_log_lost()
        return isinstance(error, sqlite3.Error)

    def _step_back(self) -> None:
        """Show the last state and stop writing: the database belongs to a newer program."""
        if not self.is_outdated:
            self.is_outdated, self.has_arrived = True, False
            self.renewals += 1
            with contextlib.suppress(OSError):  # hooks need not keep every event for this host
                self.spool.hosts.withdraw(self.pid)
        if self.shared is not None and not self.shared.board.sessions:
            with contextlib.suppress(*TROUBLE):
                self.shared.store.refresh(self.shared.board)

    def _check_again(self) -> None:
        """Check whether the database of the newer program is gone."""
        if self.shared is not None and not self.shared.store.database.is_replaced():
            self.shared.store.database.check_version()
        self.close()
        self.is_outdated = False
