"""One step of a host: lock, read, fold, commit, unlink (the contract is in `store.py`)."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from ..core.asking import Requests
from ..core.board import Board
from ..core.events import Event
from ..core.ledger import Folded
from ..core.options import Options, options_of, settings_of
from ..core.records import MOST_SESSIONS
from ..core.session import Session
from ..core.words import amount
from ..storage.causes import OF_VALUES
from ..storage.questions import KEPT_BYTES, KEPT_FILES
from ..storage.shared import DATABASE, Option
from ..storage.spool import Spool
from ..storage.store import Busy, Newer, Store
from ..storage.upkeep import GONE
from ..system.awake import clock
from .backlog import Backlog
from .damage import DamagedRows
from .draining import Others

BACK: Final = 1.0  # the board's clock is this far ahead only if the machine's was set back
UNNOTICED: Final = 60.0  # seconds in which a host may miss that: twice its rescan
#: Errors that may be temporary, and are not the fault of an event; any other may be.
NO_EVENTS: Final = (Busy, Newer, OSError, MemoryError)
STORED: Final = ("config", "watched_since")  # shared options that are used here
LINE: Final = "line."  # evidence of hosts: several may report the same under one name


class Step(NamedTuple):
    """The result of a step."""

    more: bool  # more files are waiting
    changed: set[str]  # sessions that may have to be published again
    left: int = 0  # folded files that cannot be removed


class Clerk:
    """Keeps a host's board up to date with what all hosts committed."""

    def __init__(self, spool: Spool, store: Store, watching: bool = False) -> None:
        self.spool = spool
        self.store = store
        self.board = Board()
        self.others, self.damaged = Others(), DamagedRows()
        self.unkept = 0  # open questions whose events are not kept
        self.watching = watching  # True for a host, False for a command that only folds once
        self._shared: dict[str, Option] = {}  # the shared options, as stored in the table
        self._options: object = None  # of these, what was configured
        self._watched_since: float | None = None
        self._backlog = Backlog(self)
        self._unlinked: list[str] = []
        self._changed: set[str] = set()  # sessions, since they were last returned
        self._ahead = False  # whether the board in memory has uncommitted changes
        self._committed: dict[str, Session] | None = None  # the sessions before these
        self._known = clock()  # when the board was last updated
        self._requests = Requests()

    def step(self, now: float, arrived: Collection[str] = ()) -> Step:
        """Fold pending events and deadlines; raise Busy while another host holds the lock.

        `arrived`: if not empty, only these paths in new/ are pending.
        """
        if arrived:
            return self._fold(now, arrived)
        due = self.board.due()
        is_due = due is not None and due <= now
        if is_due or self._backlog.names or self._is_set_back(now) or self.spool.holds_any():
            return self._fold(now)
        self._catch_up()
        return self._fold(now) if self.store.unsound else Step(False, self._take_changed())

    def catch_up(self) -> set[str]:
        """Read what others committed; return the sessions that may have changed."""
        self._catch_up()
        return self._take_changed()

    @property
    def refused(self) -> int:
        """Return how many files this host has set aside."""
        return self._backlog.refused

    @property
    def notes(self) -> dict[str, str]:
        """Return what was set aside, left or not kept, for health."""
        notes = self.damaged.notes(time.time())
        if why := self._backlog.unloaded:
            notes["update"] = (
                f"bellboard was updated: restart this background process; events wait ({why})"
            )
        if (lost := self.board.ledger.forgotten) and self.board.is_crowded:
            notes["sessions"] = (
                f"too many: {amount(lost, 'session')} no longer shown (limit: {MOST_SESSIONS}; "
                "those that ask stay); the next event of a session shows it again"
            )
        if self.unkept:
            notes["questions"] = (
                f"requests that were not kept: {self.unkept} (limit: the newest {KEPT_FILES}, "
                f"{KEPT_BYTES >> 20} MB); answer them in their terminals"
            )
        return notes

    def try_again(self) -> None:
        """Fold at the next step what waits for code that could not be loaded, if it can be now."""
        self._backlog.try_again()

    def restore(self, before: Clerk, now: float) -> set[str]:
        """Write the sessions and options of a database that was damaged, or lost its log.

        Return what changed.  What is there now may know some of them as well, or that they are
        gone; without its log, it has older ones.
        """
        known = before.board.sessions if before._committed is None else before._committed
        with self.store.lock():
            self._refresh()
            self._ahead = True  # until COMMIT
            rows = self.store.all("SELECT session_id FROM sessions WHERE record IS NULL")
            gone = {row[0] for row in rows}
            for sid, s in known.items():
                there = self.board.sessions.get(sid)
                if sid not in gone if there is None else there.last < s.last:
                    self.board.keep(s)
            self._changed |= self.board.dirty
            self.store.go_on_after(before.store)
            self.store.write(self.board, (), (), 0.0, now)
            for key, (value, t) in before._shared.items():
                found = self._shared.get(key)
                if key != DATABASE and (found is None or found.t < t <= now):
                    self.store.set_option(key, value, os.getpid(), min(t, now))
        self._ahead = False
        self._follow()  # their revision is our own: no later refresh reports their questions
        return self._take_changed()

    def sweep(self, now: float) -> bool:
        """Forget the names of files that are gone, whoever folded them; give back free pages.

        Return whether to call this again soon.
        """
        self.store.check_commits()
        if not self.store.is_changed:  # otherwise a question may have come that is not known here
            self.spool.questions.drop_all_but(standing := self._requests.standing())
            self.unkept = self.spool.unkept(standing)
        self.store.sweep(now, self.spool.is_there)
        self.store.shrink()
        return self.store.check()

    def _take_changed(self) -> set[str]:
        """Return the sessions that changed since the last call, also if a step failed meanwhile."""
        changed, self._changed = self._changed, set()
        return changed

    def _catch_up(self) -> None:
        self.store.check_place()
        self.store.check_commits()
        self._refresh()

    def _refresh(self) -> None:
        known, self._known = self._known, clock()
        if not (self.store.is_changed or self._ahead):
            return
        if self._known > known + GONE / 2:  # asleep: deleted sessions may have left no row
            self._ahead = True
        self.store.check_version()
        board, options = self.board, self._options
        if self._ahead:  # the board was not committed: read everything again
            self._changed |= board.sessions.keys()
            board, options, self.store.revision, self._backlog.names = Board(), None, 0, []
        self._changed |= self.store.refresh(board)
        shared = self.store.options()
        stored, since = (shared[x].value if x in shared else None for x in STORED)
        if stored != options:
            board.configure(options_of(stored or {}, Options()))
        self.board, self._options, self._ahead, self._committed = board, stored, False, None
        self._shared, self._watched_since = shared, since
        self.store.caught_up()
        self._follow()

    def _follow(self) -> None:
        """Remove the files of questions that have ended in changed sessions."""
        if ended := self._requests.follow(self.board.sessions, self._changed):
            self.spool.questions.drop(ended)

    def _fold(self, now: float, arrived: Collection[str] = ()) -> Step:
        """Run a transaction; if it cannot be written, make the next one half as large."""
        self.others.let_drain(self.store)
        try:
            step = self._transact(now, arrived)
        except NO_EVENTS:
            raise
        except Exception as e:
            if isinstance(e, sqlite3.Error) and not isinstance(e, OF_VALUES):
                self.store.inspected = False  # an exhausted row number looks like a full disk
                raise
            if name := self._backlog.narrow(e):
                self._give_up(name)
            return Step(True, set())  # the next one returns what changed
        return step._replace(more=True) if self._backlog.widen() else step

    def _give_up(self, name: str) -> None:
        """Set a file aside that cannot be written, unless another host could write it."""
        with self.store.lock():
            self._refresh()
            if not self.store.applied([name]):
                self._backlog.blame(name, "it cannot be written")
                self.spool.finish()

    def _transact(self, now: float, arrived: Collection[str]) -> Step:
        spool, store, backlog = self.spool, self.store, self._backlog
        backlog.batch = []
        with store.lock():
            self.others.check_again(store)
            self._refresh()
            self._ahead, self._committed = True, dict(self.board.sessions)  # until COMMIT
            self.board.dirty |= self.damaged.set_aside(store, now)
            if not arrived:
                spool.claim_slots()
            old = bool(backlog.names)  # more may have come since it was listed
            if not old:
                backlog.scan(arrived, now)
            folded = list(self._set_back(now)) if self._is_set_back(now) else []
            names, fresh = backlog.fold(folded, now)
            folded += [("", f) for f in self.board.advance(backlog.reaches(now))]
            self._share_options(folded, now)
            spool.finish()
            self._changed |= self.board.dirty
            # hooks' names are never reused; those of evidence may be, and are kept for a while
            store.forget_applied(n for n in self._unlinked if not n.startswith(LINE))
            store.write(self.board, fresh, folded, self._live_since(), now, len(backlog.names))
        self._ahead, self._committed = False, None
        backlog.batch = []  # no file is to blame any more
        store.check_place()
        self._follow()
        standing = self._requests.standing()
        left = set(spool.unlink(names, standing))
        if self.unkept or not standing.isdisjoint(names):
            self.unkept = spool.unkept(standing)
        self._unlinked = [n for n in names if n not in left]
        store.remember_applied()
        if not backlog.names:
            store.drain.leave()
        if self.watching:
            store.keep_log_small()
        return Step(old or bool(backlog.names) or spool.is_behind, self._take_changed(), len(left))

    # ------------------------------------------------------------ clock, live events, options

    def _is_set_back(self, now: float) -> bool:
        return self.board.ledger.clock > now + BACK

    def _set_back(self, now: float) -> Iterator[tuple[str, Folded]]:
        """Set the board's clock back with the machine's; this is logged, so that it replays."""
        # Waiting events may have happened since, and count.
        t = min(now, max(now - UNNOTICED, self._backlog.oldest(otherwise=now)))
        if self._watched_since is not None and self._watched_since > t:
            self._watched_since = t
            self.store.set_option("watched_since", t, os.getpid(), now)
        for f in self.board.fold(Event("clock", "clock", t, t)):
            yield f"clock {now:.6f}", f

    def _live_since(self) -> float:
        """Return since when events count as live; earlier ones are not announced."""
        if not (self.watching or self.spool.hosts.alive()):
            return math.inf
        return math.inf if self._watched_since is None else float(self._watched_since)

    def _share_options(self, folded: Sequence[tuple[str, Folded]], now: float) -> None:
        """Share the options that were configured last."""
        configs = [f.event for _, f in folded if f.event.kind == "config"]
        if configs:
            self._options = settings_of(self.board.options)
            pid = configs[-1].settings.get("pid")
            self.store.set_option("config", self._options, pid if type(pid) is int else 0, now)
