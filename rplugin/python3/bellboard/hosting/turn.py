"""One turn of a host: lock, read, fold, commit, remove."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

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
from ..storage.rows import Unsound
from ..storage.spool import Spool
from ..storage.state_folder import Refused
from ..storage.store import DATABASE, Busy, Draining, Newer, Option, Store
from ..system.clock import clock
from ..system.processes import is_suspended, stat_of

if TYPE_CHECKING:
    from .decode import Decoder


# Let another host work through a backlog alone, as long as it makes progress.


STALLED: Final = 0.4  # seconds without a commit after which a suspended draining host is ignored
LOST = 10.0  # seconds without a commit after which any draining host is ignored
GLANCE: Final = 2.0  # seconds between two reads of its progress


class Others:
    """Knows whether another host drains, and how far it has come."""

    def __init__(self) -> None:
        #: Its last progress: when, how many commits.
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
        store.check_commits()
        if self._progress is None or self._progress[1] != store.commits:
            self._progress = now, store.commits
        quiet = now - self._progress[0]
        if quiet < STALLED or (quiet < LOST and not _is_suspended(store.drain.holder())):
            raise Draining
        self._is_ignored = True

    def check_again(self, store: Store) -> None:
        """Raise Draining if one began while we waited for the lock."""
        if self._progress is None and store.drain.is_taken():
            raise Draining

    def is_to_read(self) -> bool:
        """Return whether to read what others committed; during a backlog, only now and then.

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


# Set damaged rows of the database aside, and report them for a day.


MOST_NOTED: Final = 5
NOTED: Final = 86400.0  # seconds in which health reports rows that were set aside


class DamagedRows:
    """The rows that were set aside recently."""

    def __init__(self) -> None:
        self._rows: list[Unsound] = []

    def set_aside(self, store: Store, now: float) -> set[str]:
        """Set damaged rows aside, within the lock; return the sessions to write again."""
        if store.inspect():
            self._rows = store.set_aside_since(now - NOTED)
        if store.unsound:
            self._rows += store.set_unsound_aside(now)
        mend = set(store.mend)
        store.mend.clear()
        return mend

    def notes(self, now: float) -> dict[str, str]:
        """Return the rows set aside recently, for health."""
        lately = [row for row in self._rows if row.t > now - NOTED]
        if not lately:
            return {}
        named = "; ".join(str(row) for row in lately[-MOST_NOTED:])
        more = f" and {len(lately) - MOST_NOTED} before" if len(lately) > MOST_NOTED else ""
        return {"rows": f"of the database {named}{more}; they are in its table `damaged`"}


# The files that wait in the spool, and how many of them the next transaction folds.
#
# If a transaction cannot be written although it was folded, the next ones hold half as many
# files each, until a single file fails; that file goes to `spool/bad`, and the rest continues.


BATCH: Final = 1000  # files in one transaction, so that other hosts need not wait long
SLICE: Final = 0.1  # seconds to read and fold in one transaction, because files may be large


class Owner(Protocol):
    """Whoever folds the files."""

    spool: Spool
    store: Store
    board: Board


class Backlog:
    """What waits in a spool, as far as it was listed."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.names: list[str] = []  # newest first
        self.batch: list[str] = []  # the files of the current transaction, which may be to blame
        self.refused = 0  # files set aside
        self._listed = 0.0  # when
        self._unloaded: dict[str, str] = {}  # files that wait for code that cannot be loaded → why
        self._again = False  # whether to try those again
        self._most = BATCH  # files in the next transaction
        self._suspect = ""  # a file that failed alone

    @cached_property
    def _decoder(self) -> Decoder:
        try:
            from .decode import Decoder  # a command rarely finds a file to decode
        except (MemoryError, OSError):
            raise
        except Exception as e:
            raise ImportError(f"hosting.decoding: {e}") from e
        return Decoder()

    def scan(self, arrived: Collection[str], now: float) -> None:
        """List what waits; if that is more than one transaction holds, claim to work through it."""
        if self._again:
            self._unloaded, self._again, arrived = {}, False, ()
        self._listed = now
        names = self._owner.spool.only(arrived) or self._owner.spool.scan()[::-1]
        self.names = [n for n in names if n not in self._unloaded] if self._unloaded else names
        if len(self.names) > self._most:
            self._owner.store.drain.take()

    def fold(self, folded: list[tuple[str, Folded]], now: float) -> tuple[list[str], list[str]]:
        """Fold the oldest files; return the names of all folded, and of those just folded."""
        until = time.monotonic() + SLICE
        batch = self.batch = self.names[: -self._most - 1 : -1]
        applied = self._owner.store.applied(batch)
        names: list[str] = []
        fresh: list[str] = []
        done = 0
        for name in batch:
            if name in applied:
                names.append(name)
            elif done and time.monotonic() > until:
                break
            elif (item := self._read(name)) is not None and self._fold_item(item, now, folded):
                fresh.append(name)
                names.append(name)
            done += 1
        del self.names[len(self.names) - done :]
        return names, fresh

    def events(self, item: Item, now: float) -> list[Event]:
        """Decode a file."""
        # A backlog is folded with the clock of its events, so that deadlines between them count.
        return self._decoder.events(item, max(self._owner.board.ledger.clock, min(now, item.t)))

    def oldest(self, otherwise: float) -> float:
        """Return the time of the next file, if one waits."""
        while self.names:
            with contextlib.suppress(FileNotFoundError):
                return os.lstat(self._owner.spool.new / self.names[-1]).st_mtime
            self.names.pop()  # it is gone
        return otherwise

    def reaches(self, now: float) -> float:
        """Return up to when nothing waits any more: what waits may end a later deadline.

        If the last transaction failed, this one may be without a file, for the deadlines alone.
        """
        if not self.batch:
            return now
        return min(now, self.oldest(otherwise=self._listed))  # more may have come since

    def narrow(self, error: Exception) -> str:
        """Take fewer files next time; return the one that cannot be written, once it is known.

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

    @property
    def unloaded(self) -> str:
        """Return why files wait for code that cannot be loaded, or ""."""
        while self._unloaded:
            name, why = self._unloaded.popitem()
            if self._owner.spool.is_there(name):  # no other host has folded it
                self._unloaded[name] = why
                return why
        return ""

    def try_again(self) -> None:
        """Fold what waits for code, if that can be loaded now."""
        self._again = bool(self._unloaded)

    def blame(self, name: str, reason: str) -> None:
        """Set a file aside with the traceback of the error that is being handled."""
        import traceback

        self._refuse(name, reason, traceback.format_exc())

    def _refuse(self, name: str, reason: str, detail: str = "") -> None:
        self.refused += 1
        self._owner.spool.set_aside(name, reason, detail)

    def _read(self, name: str) -> Item | None:
        """Read a file; return None if it is gone, refused, or left for later."""
        try:
            return self._owner.spool.read(name)
        except Refused as why:
            self._refuse(name, str(why))
        except OSError as e:
            if e.errno in OF_THE_SYSTEM:
                raise
            self._owner.spool.leave(name)
        return None

    def _fold_item(self, item: Item, now: float, into: list[tuple[str, Folded]]) -> bool:
        """Fold the events of a file; refuse what cannot be folded; return False if it is left."""
        name = item.name
        try:
            for event in self.events(item, now):
                if event.kind == "junk":
                    self._refuse(name, "not an event", event.why)
                folded = self._owner.board.fold(event)
                into += [(name if f.event.kind == event.kind else "", f) for f in folded]
        except MemoryError:
            raise
        except (ImportError, SyntaxError, OSError) as e:
            # No event's fault: another host may be able to fold it.
            if isinstance(e, OSError) and e.errno in OF_THE_SYSTEM:
                raise
            self._unloaded[name] = str(e)
            return False
        except Exception:
            # one poisoned event must not crash-loop every Neovim
            self.blame(name, "it cannot be folded")
        return True


# One step of a host: lock, read, fold, commit, unlink (the contract is in `store.py`).


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


class SharedBoard:
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

    def restore(self, before: SharedBoard, now: float) -> set[str]:
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
