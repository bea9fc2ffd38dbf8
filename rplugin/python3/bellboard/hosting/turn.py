"""One turn of a host: lock, read, fold, commit; then remove the files.

`SharedBoard.turn` is the page on which an event becomes a change that all hosts see, exactly once.
What must hold there, whoever dies, is written in `storage/store.py`.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from ..core.board import Board
from ..core.events import Event
from ..core.options import Options, options_of, settings_of
from ..core.records import MOST_SESSIONS, Folded, Requests
from ..core.session import Session
from ..core.words import amount
from ..storage.answers import KEPT_BYTES, KEPT_FILES
from ..storage.database import OF_VALUES
from ..storage.event_file import OF_THE_SYSTEM, Item
from ..storage.pruning import GONE
from ..storage.spool import Spool
from ..storage.state_folder import Refused
from ..storage.store import DATABASE, Busy, Draining, Newer, SharedOption, Store, Transaction
from ..system.clock import clock
from ..system.notes import Notes
from ..system.processes import is_suspended, stat_of

if TYPE_CHECKING:
    from .decode import Decoder

BACK: Final = 1.0  # the board's clock is this far ahead only if the machine's was set back
UNNOTICED: Final = 60.0  # seconds in which a host may miss that: twice its rescan
#: Errors that may be temporary, and are not the fault of an event; any other may be.
NO_EVENTS: Final = (Busy, Newer, OSError, MemoryError)
STORED: Final = ("config", "watched_since")  # shared options that are used here
MOST_NOTED: Final = 5  # unreadable rows that health names
NOTED: Final = 86400.0  # seconds in which it does
LINE: Final = "line."  # evidence of hosts: several may report the same under one name


class Turned(NamedTuple):
    """The result of a turn."""

    more: bool  # more files are waiting
    changed: set[str]  # sessions that may have to be published again
    left: int = 0  # folded files that cannot be removed


class Turn:
    """The state of one turn until COMMIT; if that fails, the database is read again."""

    def __init__(self, now: float, committed: dict[str, Session], tables: Transaction) -> None:
        self.now = now
        self.tables = tables  # to write to
        self.committed = committed  # the sessions, as they are in the database
        self.log: list[tuple[str, Folded]] = []  # what was folded, each with its file
        self.fresh: list[str] = []  # files whose events were folded
        self.folded: list[str] = []  # these, and files that were folded before: to be removed


class SharedBoard:
    """A host's board, kept up to date with what all hosts committed."""

    def __init__(
        self, spool: Spool, store: Store, notes: Notes | None = None, watching: bool = False
    ) -> None:
        self.spool = spool
        self.store = store
        self.board = Board()
        self.notes = Notes() if notes is None else notes  # what was set aside, left or not kept
        self.others = Others()
        self.unkept = 0  # open questions whose events are not kept
        self.watching = watching  # True for a host, False for a command that only folds once
        self._waiting = Backlog(spool)
        self._open: Turn | None = None  # not committed, and dropped with the next refresh
        self._is_old = False  # whether the board has to be read again from the start
        self._changed: set[str] = set()  # sessions, since they were last returned
        self._removed: list[str] = []  # files, whose names the database still has
        self._requests = Requests()
        self._shared: dict[str, SharedOption] = {}  # the shared options, as stored in the table
        self._options: object = None  # of these, what was configured
        self._watched_since: float | None = None
        self._known = clock()  # when the board was last updated

    # ------------------------------------------------------------ a turn

    def turn(self, now: float, arrived: Collection[str] = ()) -> Turned:
        """Fold the files that wait, and deadlines; raise Busy while another host holds the lock.

        `arrived`: if not empty, only these paths in new/ are pending.
        """
        if not arrived and not self._is_due(now):
            changed = self.catch_up()
            if not self.store.unsound:
                self._note()
                return Turned(False, changed)
            self._changed |= changed
        self.others.let_drain(self.store)
        try:
            turned = self._turn(now, arrived)
        except NO_EVENTS:
            raise
        except Exception as e:
            self._narrow(e)
            return Turned(True, set())  # the next one returns what changed
        self._note()
        return turned._replace(more=True) if self._waiting.widen() else turned

    def _turn(self, now: float, arrived: Collection[str]) -> Turned:
        """Lock, read, fold, commit; then remove the files."""
        waiting, store = self._waiting, self.store
        waiting.batch = []
        with store.transaction() as tables:  # BEGIN IMMEDIATE … COMMIT, or ROLLBACK
            self.others.check_again(store)
            self._refresh()  # what other hosts have committed
            tx = self._open = Turn(now, dict(self.board.sessions), tables)
            self.board.dirty |= tables.delete_unsound(now)
            may_be_more = self._list(now, arrived)
            self._set_back(tx)
            self._fold_files(tx)
            tx.log += [("", f) for f in self.board.advance(waiting.read_until(now))]
            self._share_options(tx)
            self.spool.finish()
            self._changed |= self.board.dirty
            # hooks' names are never reused; those of evidence may be, and are kept for a while
            tables.forget_applied(n for n in self._removed if not n.startswith(LINE))
            tables.write(self.board, tx.fresh, tx.log, self._live_since(), now, len(waiting.names))
        self._open, waiting.batch = None, []  # committed: no file is to blame any more
        store.database.check_place()
        left = self._remove(tx.folded)
        if not waiting.names:
            store.drain.leave()
        if self.watching:
            store.pruning.keep_log_small()
        more = may_be_more or bool(waiting.names) or self.spool.is_behind
        return Turned(more, self._take_changed(), left)

    def _is_due(self, now: float) -> bool:
        due = self.board.due()
        is_due = due is not None and due <= now
        return is_due or bool(self._waiting.names) or self._is_behind(now) or self.spool.holds_any()

    def _list(self, now: float, arrived: Collection[str]) -> bool:
        """List waiting files, unless some are left; return whether more may have come since."""
        if not arrived:
            self.spool.claim_slots()
        if self._waiting.names:
            return True
        if self._waiting.scan(arrived, now):
            with contextlib.suppress(OSError):  # then others fold some of it
                self.store.drain.take()
        return False

    def _fold_files(self, tx: Turn) -> None:
        """Fold the oldest files, one by one; those that were applied before are only removed."""
        waiting, until = self._waiting, time.monotonic() + SLICE
        applied = self.store.applied(waiting.take())
        done = 0
        for name in waiting.batch:
            if name in applied:
                tx.folded.append(name)
            elif done and time.monotonic() > until:
                break
            elif (item := waiting.read(name)) is not None and self._fold_item(item, tx):
                tx.fresh.append(name)
                tx.folded.append(name)
            done += 1
        waiting.drop(done)

    def _fold_item(self, item: Item, tx: Turn) -> bool:
        """Fold the events of a file, or refuse the file; return False if it is left for later."""
        name = item.name
        # A backlog is folded with the clock of its events, so that deadlines between them count.
        t = max(self.board.ledger.clock, min(tx.now, item.t))
        try:
            for event in self._decoder.events(item, t):
                if event.kind == "junk":
                    self._waiting.refuse(name, "not an event", event.why)
                folded = self.board.fold(event)
                tx.log += [(name if f.event.kind == event.kind else "", f) for f in folded]
        except MemoryError:
            raise
        except (ImportError, SyntaxError, OSError) as e:
            # No event's fault: another host may be able to fold it.
            if isinstance(e, OSError) and e.errno in OF_THE_SYSTEM:
                raise
            self._waiting.leave(name, str(e))
            return False
        except Exception:
            # one poisoned event must not crash-loop every Neovim
            self._waiting.blame(name, "it cannot be folded")
        return True

    @cached_property
    def _decoder(self) -> Decoder:
        try:
            from .decode import Decoder  # a command rarely finds a file to decode
        except (MemoryError, OSError):
            raise
        except Exception as e:
            raise ImportError(f"hosting.decode: {e}") from e
        return Decoder()

    def _remove(self, folded: list[str]) -> int:
        """Remove files whose events are committed; return how many cannot be."""
        self._follow()
        standing = self._requests.standing()
        left = set(self.spool.unlink(folded, standing))
        if self.unkept or not standing.isdisjoint(folded):
            self.unkept = self.spool.unkept(standing)
        self._removed = [n for n in folded if n not in left]
        self.store.remember_applied()
        return len(left)

    def _narrow(self, error: Exception) -> None:
        """Take fewer files after a failure, until only the file that cannot be written is left."""
        if isinstance(error, sqlite3.Error) and not isinstance(error, OF_VALUES):
            raise error  # the fault of the database, or of what it is on
        name = self._waiting.narrow(error)
        if not name:
            return
        with self.store.transaction():  # set it aside, unless another host could write it
            self._refresh()
            if not self.store.applied([name]):
                self._waiting.blame(name, "it cannot be written")
                self.spool.finish()

    # ------------------------------------------------------------ what others committed

    def catch_up(self) -> set[str]:
        """Read the commits of others; return the sessions that may have changed."""
        self.store.database.check_place()
        self.store.database.check_commits()
        self._refresh()
        return self._take_changed()

    def _refresh(self) -> None:
        known, self._known = self._known, clock()
        is_old = self._is_old or self._open is not None  # what was not committed is dropped
        if not (self.store.database.is_changed or is_old):
            return
        if self._known > known + GONE / 2:  # asleep: deleted sessions may have left no row
            is_old = self._is_old = True
        self.store.database.check_version()
        board, options = self.board, self._options
        if is_old:  # read everything again
            self._changed |= board.sessions.keys()
            board, options, self.store.revision, self._waiting.names = Board(), None, 0, []
        self._changed |= self.store.refresh(board)
        shared = self.store.options()
        stored, since = (shared[x].value if x in shared else None for x in STORED)
        if stored != options:
            board.configure(options_of(stored or {}, Options()))
        self.board, self._options, self._is_old, self._open = board, stored, False, None
        self._shared, self._watched_since = shared, since
        self.store.caught_up()
        self._follow()

    def _follow(self) -> None:
        """Remove the files of questions that have ended in changed sessions."""
        if ended := self._requests.follow(self.board.sessions, self._changed):
            self.spool.questions.drop(ended)

    def _take_changed(self) -> set[str]:
        """Return the sessions that changed since the last call, also if a turn failed meanwhile."""
        changed, self._changed = self._changed, set()
        return changed

    def restore(self, before: SharedBoard, now: float) -> set[str]:
        """Write the sessions and options of a database that was damaged, or lost its log.

        Return what changed.  What is there now may know some of them as well, or that they are
        gone; without its log, it has older ones.
        """
        known = before._open.committed if before._open is not None else before.board.sessions
        with self.store.transaction() as tables:
            self._refresh()
            self._is_old = True  # until COMMIT
            rows = self.store.database.all("SELECT session_id FROM sessions WHERE record IS NULL")
            gone = {row[0] for row in rows}
            for sid, s in known.items():
                there = self.board.sessions.get(sid)
                if sid not in gone if there is None else there.last < s.last:
                    self.board.keep(s)
            self._changed |= self.board.dirty
            tables.go_on_after(before.store)
            tables.write(self.board, (), (), 0.0, now)
            for key, (value, t) in before._shared.items():
                found = self._shared.get(key)
                if key != DATABASE and (found is None or found.t < t <= now):
                    tables.set_option(key, value, os.getpid(), min(t, now))
        self._is_old = False
        self._follow()  # their revision is our own: no later refresh reports their questions
        return self._take_changed()

    # ------------------------------------------------------------ clock, live events, options

    def _is_behind(self, now: float) -> bool:
        """Return whether the machine's clock was set back: the board's is ahead."""
        return self.board.ledger.clock > now + BACK

    def _set_back(self, tx: Turn) -> None:
        """Set the board's clock back with the machine's; this is logged, so that it replays."""
        now = tx.now
        if not self._is_behind(now):
            return
        # Waiting events may have happened since, and count.
        t = min(now, max(now - UNNOTICED, self._waiting.oldest(otherwise=now)))
        if self._watched_since is not None and self._watched_since > t:
            self._watched_since = t
            tx.tables.set_option("watched_since", t, os.getpid(), now)
        tx.log += [(f"clock {now:.6f}", f) for f in self.board.fold(Event("clock", "clock", t, t))]

    def _live_since(self) -> float:
        """Return since when events count as live; earlier ones are not announced."""
        if not (self.watching or self.spool.hosts.alive()):
            return math.inf
        return math.inf if self._watched_since is None else float(self._watched_since)

    def _share_options(self, tx: Turn) -> None:
        """Share the options that were configured last."""
        configs = [f.event for _, f in tx.log if f.event.kind == "config"]
        if configs:
            self._options = settings_of(self.board.options)
            pid = configs[-1].settings.get("pid")
            tx.tables.set_option("config", self._options, pid if type(pid) is int else 0, tx.now)

    # ------------------------------------------------------------ from time to time

    def sweep(self, now: float) -> bool:
        """Forget the names of files that are gone, whoever folded them; give back free pages.

        Return whether to call this again soon.
        """
        self.store.database.check_commits()
        if not self.store.database.is_changed:  # otherwise a question may be new, and not known
            self.spool.questions.drop_all_but(standing := self._requests.standing())
            self.unkept = self.spool.unkept(standing)
        self._note()
        self.store.sweep(now, self.spool.is_there)
        self.store.pruning.shrink()
        return self.store.pruning.check()

    def try_again(self) -> None:
        """Fold at the next turn the files that wait for code, if it can be loaded now."""
        self._waiting.try_again()

    @property
    def refused(self) -> int:
        """Return how many files this host has set aside."""
        return self._waiting.refused

    def _note(self) -> None:
        notes: dict[str, str] = {}
        if rows := self.store.lost_since(time.time() - NOTED):
            named = "; ".join(rows[-MOST_NOTED:])
            notes["rows"] = f"lost from the database, as unreadable: {len(rows)}: {named}"
        if why := self._waiting.unloaded:
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
        self.notes.replace(notes)


# The files that wait in the spool, and how many of them the next transaction folds.
#
# If a transaction cannot be written although it was folded, the next ones hold half as many
# files each, until a single file fails; that file goes to `spool/bad`, and the rest continues.


BATCH: Final = 1000  # files in one transaction, so that other hosts need not wait long
SLICE: Final = 0.1  # seconds to read and fold in one transaction, because files may be large


class Backlog:
    """The files that wait in a spool, as far as they were listed."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.names: list[str] = []  # newest first
        self.batch: list[str] = []  # the files of the current transaction, which may be to blame
        self.refused = 0  # files set aside
        self._listed = 0.0  # when
        self._unloaded: dict[str, str] = {}  # files that wait for code that cannot be loaded → why
        self._again = False  # whether to try those again
        self._most = BATCH  # files in the next transaction
        self._suspect = ""  # a file that failed alone

    def scan(self, arrived: Collection[str], now: float) -> bool:
        """List the files that wait; return whether they are more than one transaction holds."""
        if self._again:
            self._unloaded, self._again, arrived = {}, False, ()
        self._listed = now
        names = self._spool.only(arrived) or self._spool.scan()[::-1]
        self.names = [n for n in names if n not in self._unloaded] if self._unloaded else names
        return len(self.names) > self._most

    def take(self) -> Sequence[str]:
        """Return the oldest files, for one transaction."""
        self.batch = self.names[: -self._most - 1 : -1]
        return self.batch

    def drop(self, done: int) -> None:
        """Note that so many files were read."""
        del self.names[len(self.names) - done :]

    def read(self, name: str) -> Item | None:
        """Read a file; return None if it is gone, refused, or left for later."""
        try:
            return self._spool.read(name)
        except Refused as why:
            self.refuse(name, str(why))
        except OSError as e:
            if e.errno in OF_THE_SYSTEM:
                raise
            self._spool.ignore(name)
        return None

    def refuse(self, name: str, reason: str, detail: str = "") -> None:
        """Set a file aside, into `spool/bad`."""
        self.refused += 1
        self._spool.set_aside(name, reason, detail)

    def blame(self, name: str, reason: str) -> None:
        """Set a file aside, with the traceback of the error that is being handled."""
        import traceback

        self.refuse(name, reason, traceback.format_exc())

    def oldest(self, otherwise: float) -> float:
        """Return the time of the next file, if one waits."""
        while self.names:
            with contextlib.suppress(FileNotFoundError):
                return os.lstat(self._spool.new / self.names[-1]).st_mtime
            self.names.pop()  # it is gone
        return otherwise

    def read_until(self, now: float) -> float:
        """Return the time before which nothing waits: a file that waits may end a later deadline.

        If the last transaction failed, this one may be without a file, for the deadlines alone.
        """
        if not self.batch:
            return now
        return min(now, self.oldest(otherwise=self._listed))  # more may have come since

    def narrow(self, error: Exception) -> str:
        """Take fewer files next time; return the last one left, which cannot be written.

        Raise the error if no file is to blame.
        """
        if not self.batch:
            raise error
        if len(self.batch) > 1:
            self._most = len(self.batch) // 2
        elif self.batch[0] != self._suspect:
            self._suspect, self._most = self.batch[0], 0  # a deadline may be the cause
        else:
            return self._suspect
        return ""

    def widen(self) -> bool:
        """Take more files again, after a success; return False if nothing had failed."""
        is_narrow = self._most < BATCH
        self._most = min(2 * self._most, BATCH) or 1
        return is_narrow

    def leave(self, name: str, why: str) -> None:
        """Leave a file where it is until the code that it needs can be loaded."""
        self._unloaded[name] = why

    @property
    def unloaded(self) -> str:
        """Return why files wait for code that cannot be loaded, or ""."""
        while self._unloaded:
            name, why = self._unloaded.popitem()
            if self._spool.is_there(name):  # no other host has folded it
                self._unloaded[name] = why
                return why
        return ""

    def try_again(self) -> None:
        """Fold the files that wait for code, if it can be loaded now."""
        self._again = bool(self._unloaded)


# Let another host work through a backlog alone, as long as it makes progress.


STALLED: Final = 0.4  # seconds without a commit after which a suspended draining host is ignored
LOST = 10.0  # seconds without a commit after which any draining host is ignored
GLANCE: Final = 2.0  # seconds between two reads of its progress


class Others:
    """Knows whether another host drains, and how far it has come."""

    def __init__(self) -> None:
        #: The last progress of that host: when, how many commits.
        self._progress: tuple[float, int] | None = None
        self._is_ignored = False  # until it is done: our own commits would look like its progress
        self._read = 0.0  # when the commits of others were last shown

    def let_drain(self, store: Store) -> None:
        """Raise Draining while another host works through a backlog and makes progress."""
        now = time.monotonic()
        if not store.drain.is_taken():
            self._progress, self._is_ignored = None, False
            return
        if self._is_ignored:
            return
        store.database.check_commits()
        if self._progress is None or self._progress[1] != store.database.commits:
            self._progress = now, store.database.commits
        quiet = now - self._progress[0]
        if quiet < STALLED or (quiet < LOST and not _is_suspended(store.drain.holder())):
            raise Draining
        self._is_ignored = True

    def check_again(self, store: Store) -> None:
        """Raise Draining if one began while we waited for the lock."""
        if self._progress is None and store.drain.is_taken():
            raise Draining

    def is_to_read(self) -> bool:
        """Return whether to read the commits of others; during a backlog, only now and then.

        Reading and showing every step of it took the hosts longer than the backlog itself.
        """
        now = time.monotonic()
        waits = self._progress is not None and not self._is_ignored
        if waits and now < self._read + GLANCE:
            return False
        self._read = now
        return True


def _is_suspended(pid: int | None) -> bool:
    return not pid or stat_of(pid) is None or is_suspended(pid)
