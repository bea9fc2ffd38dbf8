"""One step of a host: lock, read, fold, commit, unlink (the contract is in `store.py`).

If a transaction cannot be written although it was folded, the next ones hold half as many files
each, until a single file fails; that file goes to `spool/bad`, and the rest continues.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ..agents import evidence
from ..agents.dialects import dialect_of
from ..agents.origins import origin_of
from ..core.board import Board
from ..core.bounds import bounded
from ..core.events import ASKING, Event, Origin
from ..core.front import requests_of
from ..core.ledger import Folded
from ..core.options import Options, options_of
from ..storage.causes import OF_VALUES
from ..storage.ground import Refused
from ..storage.item import OF_THE_SYSTEM, Item
from ..storage.rows import Unsound
from ..storage.spool import Spool
from ..storage.store import Busy, Draining, Newer, Store
from ..storage.upkeep import GONE
from ..system.processes import Ttys, stat_of

BATCH: Final = 1000  # files in one transaction, so that other hosts need not wait long
SLICE: Final = 0.1  # seconds to read and fold in one transaction, because files may be large
ORIGINS: Final = 256  # origins to cache; the spool caches as many headers
STALLED: Final = 0.4  # seconds without a commit after which a suspended draining host is ignored
GLANCE: Final = 2.0  # seconds between two reads of its progress
LOST: Final = 10.0  # seconds without a commit after which any draining host is ignored
BACK: Final = 1.0  # the board's clock is this far ahead only if the machine's was set back
UNNOTICED: Final = 60.0  # seconds in which a host may miss that: twice its rescan
SMALL: Final = 4096  # bytes of a payload that cannot contain anything too large to store
MOST_NOTED: Final = 5
NOTED: Final = 86400.0  # seconds in which health reports rows that were set aside
#: Errors that may be temporary, and are not the fault of an event; any other may be.
NO_EVENTS: Final = (Busy, Newer, OSError, MemoryError)
NOTHING: Final[frozenset[str]] = frozenset()
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
        self.refused = 0  # files set aside
        self.watching = watching  # True for a host, False for a command that only folds once
        self._options: object = None  # as the table has them
        self._watched_since: float | None = None
        self._backlog: list[str] = []  # what was listed, newest first
        self._unlinked: list[str] = []
        self._ahead = False  # whether the board in memory has uncommitted changes
        self._most = BATCH  # files in the next transaction
        self._suspect = ""  # a file that failed alone
        self._known = time.monotonic()  # when the board was last updated
        self._read = 0.0  # when the commits of others were last shown
        #: The last progress of another host that drains: when, how many commits.
        self._drained: tuple[float, int] | None = None
        self._batch: list[str] = []  # the files of the current transaction
        self._set_aside: list[Unsound] = []  # rows of the database
        self._requests: dict[str, frozenset[str]] = {}  # session → the files of what it asks
        self._ttys = Ttys()
        self._origins: dict[int, tuple[object, Origin]] = {}

    def preview(
        self, now: float, arrived: Collection[str], show: Callable[[set[str]], None]
    ) -> None:
        """Show what a single new event will change, without waiting for the lock.

        Nothing is kept: `step` folds it again.  Showing it within the lock, between fold and
        COMMIT, would save that second fold, but all other hosts wait for the one with the lock:
        `bench/latency.py --hosts 8` went from 1.7 ms to 7.3 ms (p25 on a busy machine; floor 0.33),
        and one host alone from 0.9 to 1.7.
        """
        if self._ahead or self._backlog or self.store.is_changed:
            return
        for name in self.spool.only(arrived):
            with contextlib.suppress(Exception):  # `step` reports what is wrong with it
                item = self.spool.read(name)
                if item is not None:
                    for event in self._events(item, now):
                        self.board.suppose(event, show)

    def step(self, now: float, arrived: Collection[str] = ()) -> Step:
        """Fold pending events and deadlines; raise Busy while another host holds the lock.

        `arrived`: if not empty, only these paths in new/ are pending.
        """
        if arrived:
            return self._fold(now, arrived)
        due = self.board.due()
        is_due = due is not None and due <= now
        if is_due or self._backlog or self._is_set_back(now) or self._holds_any():
            return self._fold(now)
        changed = self.catch_up()
        return self._fold(now) if self.store.unsound else Step(False, changed)

    def catch_up(self) -> set[str]:
        """Read what others committed; return the sessions that may have changed."""
        self.store.check_commits()
        return self._refresh()

    def is_to_read(self) -> bool:
        """Return whether to read what others committed; during a backlog, only now and then.

        Reading and showing every step of it took the hosts longer than the backlog itself.
        """
        now = time.monotonic()
        if self._drained is not None and now < self._read + GLANCE:
            return False
        self._read = now
        return True

    def sweep(self, now: float) -> None:
        """Forget the names of files that are gone, whoever folded them; give back free pages."""
        self.store.check_commits()
        if not self.store.is_changed:  # otherwise a question may have come that is not known here
            self.spool.drop_all_but(self._standing())
        self.store.sweep(now, self._is_there)
        self.store.shrink()

    def _refresh(self) -> set[str]:
        changed: set[str] = set()
        known, self._known = self._known, time.monotonic()
        if not (self.store.is_changed or self._ahead):
            return changed
        if self._known > known + GONE / 2:  # suspended: deleted sessions may have left no row
            self._ahead = True
        self.store.check_version()
        board, options = self.board, self._options
        if self._ahead:  # the board was not committed: read everything again
            changed = set(board.sessions)
            board, options, self.store.revision, self._backlog = Board(), None, 0, []
        changed |= self.store.refresh(board)
        stored = self.store.option("config")
        if stored != options:
            board.configure(options_of(stored or {}, Options()))
        self.board, self._options, self._ahead = board, stored, False
        self._watched_since = self.store.option("watched_since")
        self.store.caught_up()
        self._follow(changed)
        return changed

    def _follow(self, changed: Collection[str]) -> None:
        """Follow what changed sessions ask; remove the files of questions that have ended."""
        for sid in changed:
            s = self.board.sessions.get(sid)
            asked, before = requests_of(s) if s else NOTHING, self._requests.pop(sid, NOTHING)
            if asked:
                self._requests[sid] = asked
            if before - asked:
                self.spool.drop(before - asked)

    def _standing(self) -> frozenset[str]:
        """Return the files of all questions that stand."""
        return NOTHING.union(*self._requests.values())

    def _set_rows_aside(self, now: float) -> None:
        """Set damaged rows aside, within the lock."""
        store = self.store
        if store.inspect():
            self._set_aside = store.set_aside_since(now - NOTED)
        if store.unsound:
            self._set_aside += store.set_unsound_aside(now)
        self.board.dirty |= store.mend
        store.mend.clear()

    def notes(self, now: float) -> dict[str, str]:
        """Return the rows set aside recently, for health."""
        lately = [row for row in self._set_aside if row.t > now - NOTED]
        if not lately:
            return {}
        named = "; ".join(str(row) for row in lately[-MOST_NOTED:])
        more = f" and {len(lately) - MOST_NOTED} before" if len(lately) > MOST_NOTED else ""
        return {"rows": f"of the database {named}{more}; they are in its table `damaged`"}

    def _fold(self, now: float, arrived: Collection[str] = ()) -> Step:
        """Run a transaction; if it cannot be written, make the next one half as large."""
        self._let_drain()
        try:
            step = self._transact(now, arrived)
        except NO_EVENTS:
            raise
        except Exception as e:
            if isinstance(e, sqlite3.Error) and not isinstance(e, OF_VALUES):
                self.store.inspected = False  # an exhausted row number looks like a full disk
                raise
            return self._halve(e)
        if self._most < BATCH:
            self._most = min(2 * self._most, BATCH) or 1
            step = step._replace(more=True)
        return step

    def _let_drain(self) -> None:
        """Raise Draining while another host works through a backlog and makes progress."""
        store, now = self.store, time.monotonic()
        if not store.drain.is_taken():
            self._drained = None
            return
        store.check_commits()
        if self._drained is None or self._drained[1] != store.commits:
            self._drained = now, store.commits
        quiet = now - self._drained[0]
        if quiet < STALLED or (quiet < LOST and not self._is_suspended(store.drain.holder())):
            raise Draining

    @staticmethod
    def _is_suspended(pid: int | None) -> bool:
        stat = stat_of(pid) if pid else None
        return stat is None or stat[0] in ("T", "t")

    def _halve(self, error: Exception) -> Step:
        """Narrow down the file that cannot be written; raise if there is none."""
        failed = self._batch
        if not failed:
            raise error
        if len(failed) > 1:
            self._most = len(failed) // 2
        elif failed[0] != self._suspect:
            self._suspect, self._most = failed[0], 0  # a deadline may be the cause
        else:
            with self.store.lock():
                self._refresh()
                if not self.store.applied(failed):
                    self._refuse(failed[0], "it cannot be written", traceback.format_exc())
        return Step(True, set())

    def _transact(self, now: float, arrived: Collection[str]) -> Step:
        spool, store = self.spool, self.store
        self._batch = []
        with store.lock():
            if self._drained is None and store.drain.is_taken():
                raise Draining  # since we began to wait
            changed = self._refresh()
            self._ahead = True  # until COMMIT
            self._set_rows_aside(now)
            if not arrived:
                spool.claim_slots()
            old = bool(self._backlog)  # more may have come since it was listed
            if not old:
                self._backlog = spool.only(arrived) or spool.scan()[::-1]
                if len(self._backlog) > self._most:
                    store.drain.take()
            folded = list(self._set_back(now)) if self._is_set_back(now) else []
            names, fresh = self._fold_files(folded, now)
            folded += [("", f) for f in self.board.advance(now)]
            self._share_options(folded, now)
            changed |= self.board.dirty
            # names of hooks are never reused; those of evidence may be, and are kept for a while
            store.forget_applied(n for n in self._unlinked if not n.startswith(LINE))
            store.write(self.board, fresh, folded, self._live_since(), now, len(self._backlog))
        self._ahead = False
        store.check_place()
        self._follow(changed)
        left = set(spool.unlink(names, self._standing()))
        self._unlinked = [n for n in names if n not in left]
        store.remember_applied()
        if not self._backlog:
            store.drain.leave()
        if self.watching:
            store.keep_log_small()
        return Step(old or bool(self._backlog), changed, len(left))

    def _fold_files(
        self, folded: list[tuple[str, Folded]], now: float
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Fold the oldest files; return the names of all done, and of those just folded."""
        until = time.monotonic() + SLICE
        batch = self._batch = self._backlog[: -self._most - 1 : -1]
        applied = self.store.applied(batch)
        names: list[str] = []
        fresh: list[str] = []
        for name in batch:
            if name not in applied:
                if fresh and time.monotonic() > until:
                    break
                found = self._fold_file(name, now)
                if found is not None:
                    folded += found
                    fresh.append(name)
            names.append(name)
        del self._backlog[len(self._backlog) - len(names) :]
        return names, fresh

    def _fold_file(self, name: str, now: float) -> list[tuple[str, Folded]] | None:
        """Fold a file, or refuse it; return None if it is gone."""
        try:
            item = self.spool.read(name)
            if item is None:
                return None
            found: list[tuple[str, Folded]] = []
            for event in self._events(item, now):
                if event.kind == "junk":
                    self._refuse(name, "not an event", event.why)
                folded = self.board.fold(event)
                found += [(name if f.event.kind == event.kind else "", f) for f in folded]
            return found
        except Refused as why:
            self._refuse(name, str(why))
        except OSError as e:
            if e.errno in OF_THE_SYSTEM:
                raise
            self._refuse(name, "it cannot be read", traceback.format_exc())
        except Exception:
            # one poisoned event must not crash-loop every Neovim
            self._refuse(name, "it cannot be folded", traceback.format_exc())
        return []

    def _refuse(self, name: str, reason: str, detail: str = "") -> None:
        self.refused += 1
        self.spool.set_aside(name, reason, detail)

    def _events(self, item: Item, now: float) -> list[Event]:
        """Decode a file, with every value limited so that it can be stored."""
        events = self._decoded(item, now)
        if item.kind == "hook" and len(item.payload) <= SMALL:
            return events  # the decoder has checked its numbers
        return [bounded(event) for event in events]

    def _decoded(self, item: Item, now: float) -> list[Event]:
        # A backlog is folded with the clock of its events, so that deadlines between them count.
        clock = max(self.board.ledger.clock, min(now, item.t))
        if item.kind == "line":
            event = evidence.read(item.payload, clock)
            return [event if event.clock == clock else replace(event, clock=clock)]
        if item.event == "view":
            return evidence.of_tmux(item.payload, item.t, clock, origin_of(item.origin))
        origin = self._origin(item.origin)
        event = dialect_of(origin.agent).event(item.payload, item.t, clock, origin, item.truncated)
        if event.kind in ASKING:
            event = replace(event, request=item.name, channel=item.channel)
        return [event]

    def _origin(self, given: dict[str, object] | None) -> Origin:
        """Decode an origin and add its terminal; cached, as the spool shares equal origins."""
        known = self._origins.get(id(given))
        if known is not None and known[0] is given:
            return known[1]
        origin = origin_of(given)
        if origin.tty is None and origin.pid is not None:
            tty = self._ttys.of(origin.pid)
            origin = replace(origin, tty=tty) if tty else origin
        if len(self._origins) >= ORIGINS:
            self._origins.clear()
        self._origins[id(given)] = (given, origin)
        return origin

    # ------------------------------------------------------------ clock, live events, options

    def _is_set_back(self, now: float) -> bool:
        return self.board.ledger.clock > now + BACK

    def _set_back(self, now: float) -> Iterator[tuple[str, Folded]]:
        """Set the board's clock back with the machine's; this is logged, so that it replays."""
        t = now
        for name in self._backlog[-1:]:  # waiting events may have happened since, and count
            with contextlib.suppress(FileNotFoundError):
                t = min(t, max(now - UNNOTICED, os.lstat(self.spool.new / name).st_mtime))
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

    # ------------------------------------------------------------ files

    def _is_there(self, name: str) -> bool:
        return os.path.lexists(self.spool.new / name)

    def _holds_any(self) -> bool:
        return _holds(self.spool.new) or _holds(self.spool.slot)


def _holds(directory: Path) -> bool:
    """Return whether a folder has any entries; takes a few microseconds."""
    with os.scandir(directory) as entries:
        return next(entries, None) is not None


def settings_of(options: Options) -> dict[str, Any]:
    """Return all options as settings, so that omitted ones go back to their defaults."""
    return {**msgspec.to_builtins(options), "approval": options.approval or False}
