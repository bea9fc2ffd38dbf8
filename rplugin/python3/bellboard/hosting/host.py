"""A host: evidence or a deadline wakes it, it folds, commits and publishes.

One per Neovim, or `bellboard serve` without one; all are equal, and none is needed by the others.
This file holds the only clock and the only event loop.

A host does not die of what may heal: a lock that is held, a full disk, a damaged database.  It
goes on showing what it knows, says in its health what is wrong, and comes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from .. import __version__
from ..core.options import Options, options_of
from ..core.session import Session, is_listed
from ..installing.guard import Guard
from ..panes.bars import ASKED, Bars
from ..panes.places import Places
from ..storage.database import set_aside
from ..storage.spool import Spool
from ..storage.store import Busy, Change, Damaged, Newer, Store
from ..witnesses.lookout import Lookout
from ..witnesses.processes import stat_of
from ..witnesses.reach import Reach
from ..witnesses.watch import Watch
from ..witnesses.witness import Finding
from .bell import Bell
from .effects import Effects
from .folding import Clerk, settings_of
from .publishing import Publisher

RESCAN: Final = 30.0  # no system promises to report every change
PUBLISH: Final = 1 / 30  # seconds between two pushes under load
PRUNE: Final = 600.0
NOTICES: Final = 200  # of the past that a reader is told, when it asks
LONGEST_WAIT: Final = 0.25  # for the lock, between two tries
LONGEST_LOOK: Final = 0.02  # at sessions, while the event loop stands still
STUCK: Final = 5.0  # so long without the lock, health names who may hold it
JUMP: Final = 5.0  # the machine slept, or its clock was set: look at everything

Push = Callable[[dict[str, Any]], None]


class Host:
    """Runs until it is stopped; tells `push` what changes."""

    def __init__(
        self,
        home: Path,
        push: Push,
        config: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.home = home
        self.push = push
        self.config = dict(config or {})
        self.pid = os.getpid()
        self.spool = Spool(home)
        self._new, self._slot = f"{self.spool.new}/", f"{self.spool.slot}/"
        self.clerk: Clerk | None = None
        self.publisher = Publisher(Places(self._judged))
        self.reach = Reach(self._wake)
        self.bars = Bars(self.reach)
        self.effects = Effects(self.config.get("callbacks") or {})
        self.bell = Bell(self.config, environ, self.pid, self.effects, self.tell)
        self.notes: dict[str, str] = {}  # for health: what is not as it should be
        self._environ = environ
        self._counts: dict[str, Any] = {}
        self._changed: set[str] = set()
        self._unattended: set[str] = set()  # changed, and the lookout does not know yet
        self._arrived = self._stopped = self._turning = False
        self._came: set[str] = set()  # into new/, and not folded yet
        self._elsewhere = True  # something else may have come as well
        self._told_early = False  # what changed is told already, what happened not yet
        self._timer: asyncio.TimerHandle | None = None
        self._last_push = self._rescanned = self._pruned = self._skew = -1e9
        self._tries = self._refused = 0
        self._locked_out_since = 0.0

    async def run(self) -> None:
        """Live."""
        self._loop = asyncio.get_running_loop()
        gc.freeze()  # what is loaded stays: to walk through it took longer than most events
        gc.set_threshold(20_000)
        self._over: asyncio.Future[None] = self._loop.create_future()
        self.spool.prepare()
        self.watch = self._watch()
        asks = self.config.get("pull_requests") is True
        how: dict[str, Any] = {"environ": self._environ, "pull_requests": asks}
        self.lookout = Lookout(self.watch, self.reach, self._find, time.time, **how)
        tells = "server" in self.config
        self.guard = Guard(self.home, self._environ, self.watch, self.reach, self._wake, tells)
        try:
            self.watch.add(self.spool.new, arrivals=True)
            self.watch.add(self.spool.slot, arrivals=True)
            self._turn()
            await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self.lookout.close()
            self.guard.close()
            self.watch.close()
            self.reach.close()
            if self.clerk is not None:
                self.bell.leave(self.clerk.store)
            self._close()
            with contextlib.suppress(OSError):
                self.spool.withdraw(self.pid)

    def stop(self) -> None:
        """End at the next occasion."""
        self._stopped = True
        self._wake()

    def tell(self, line: Mapping[str, Any], key: str | None = None) -> None:
        """Put evidence into the spool, as every change of a session comes."""
        with contextlib.suppress(OSError, ValueError):
            self.spool.write({"t": time.time(), **line}, key)

    def session(self, sid: str) -> Session | None:
        """What is known of a session once all that waits is folded; None if it is not listed."""
        self._turn()
        s = self.clerk.board.sessions.get(sid) if self.clerk is not None else None
        return s if s is not None and is_listed(s) and not self.publisher.stale else None

    def tell_all(self) -> None:
        """The reader missed something: tell it everything."""
        self.publisher.ask_full()
        self._wake()

    def _wake(self) -> None:
        self._loop.call_soon(self._turn)

    def focus(self, t: float) -> None:
        """The user is at our editor since then."""
        self.bell.focus(t)
        self._wake()

    def set_mode(self, mode: str) -> None:
        """What rings at all from now on: quiet, normal or all."""
        self.bell.set_mode(mode)
        self._wake()

    def tell_notices(self) -> None:
        """The reader wants to know what has rung."""
        if self.clerk is not None:
            with contextlib.suppress(Busy, Damaged, sqlite3.Error):
                rung = [r._asdict() for r in self.clerk.store.notices(NOTICES)]
                message = self.publisher.push(None, (), (), None, time.time(), once={"rung": rung})
                if message is not None:
                    self.push(message)

    def _store(self) -> Store:
        return Store(self.home)

    def _watch(self) -> Watch:
        return Watch(self._woken, reach=self.reach)

    def _woken(self, paths: set[str]) -> None:
        """Something changed: events in the spool, or what the lookout watches."""
        others: set[str] = set()
        for path in paths:
            (self._came if path.startswith(self._new) else others).add(path)
        if others:
            self._elsewhere = True
            others = {p for p in others if not p.startswith(self._slot)}
            self.lookout.changed(others)
            self.guard.changed(others)
        if self._turning:
            self._wake()
        else:
            self._tell_early()
            self._turn()  # at once: a task that waits for it would come 0.05 ms later

    def _judged(self) -> None:
        """In a thread: a place may be jumped to now, or no more."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._rejudge)

    def _rejudge(self) -> None:
        self._changed |= self.publisher.places.outdated()
        self._turn()

    def _find(self, finding: Finding) -> None:
        self.tell(finding.line, finding.key)

    def _turn(self) -> None:
        """One turn: fold, publish, and come again when time brings something."""
        if self._over.done():
            return
        if self._stopped:
            self._over.set_result(None)
            return
        self._turning = True
        try:
            jobs = self._work, self._rescan, self._publish, self._act, self._look, self._show
            wait = min(job() for job in jobs)
        except BaseException as e:
            self._over.set_exception(e)
            return
        finally:
            self._turning = False
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(wait, 0.0), self._turn)

    # ------------------------------------------------------------ coming and going

    def _open(self) -> Clerk:
        self.spool.prepare()
        store = self._store()
        try:
            store.skip_changes()
        except BaseException:
            store.close()
            raise
        if store.network:
            self.notes["home"] = f"{self.home} is on {store.network}: slower, and less safe"
        self.clerk = Clerk(self.spool, store, watching=True)
        self.bell.renew()
        self.publisher.ask_full()
        self.watch.rearm()
        return self.clerk

    def _close(self) -> None:
        if self.clerk is not None:
            self.clerk.store.close()
        self.clerk, self._arrived = None, False

    def _arrive(self, clerk: Clerk) -> None:
        """Be announced; the first host after a time without any lets the board know of the gap."""
        self._changed |= clerk.catch_up()
        store, now = clerk.store, time.time()
        with store.lock():
            others = [p for p in self.spool.alive_hosts() if p != self.pid]
            self.spool.announce(self.pid)
            if not others or store.option("watched_since") is None:
                self.spool.write({"t": now, "restart": {}}, f"restart {self.pid} {now}")
                store.set_option("watched_since", now, self.pid, now)
        wanted = self.config.get("options")
        if wanted is not None and (options := options_of(wanted, Options())) != clerk.board.options:
            told = {**settings_of(options), "pid": self.pid}
            self.spool.write({"t": now, "config": told}, f"config {self.pid} {now}")
        self._arrived = True
        self.lookout.renew(str(store.option("watched_since")))

    # ------------------------------------------------------------ living

    def _work(self) -> float:
        """Fold what waits; how long until there is something to do again."""
        if self.publisher.stale:
            return RESCAN
        try:
            clerk = self.clerk or self._open()
            if not self._arrived:
                self._arrive(clerk)
            arrived = () if self._elsewhere else self._came
            step = clerk.step(time.time(), arrived)
            self._came, self._elsewhere = set(), False
        except Busy:
            return self._locked_out()
        except Newer as e:
            return self._outdated(str(e))
        except Damaged as e:
            return self._damaged(e)
        except (sqlite3.Error, OSError) as e:
            # full, read-only, gone: the spool keeps everything until it can be written again
            self.notes["database"] = f"cannot be written: {e}"
            if isinstance(e, FileNotFoundError):
                self._close()
            self._tries += 1
            return min(LONGEST_WAIT * 2.0 ** min(self._tries, 9), RESCAN)
        self._tries, self._locked_out_since = 0, 0.0
        self.notes.pop("database", None)
        self.notes.pop("spool", None)
        if step.left:
            self.notes["spool"] = f"{step.left} events are counted but cannot be removed"
        self._changed |= step.changed
        if step.more:
            return 0.0
        due = clerk.board.due()
        return max(0.0, due - time.time()) if due is not None else RESCAN

    def _locked_out(self) -> float:
        """Another host folds; it takes milliseconds, unless it is suspended."""
        now = time.monotonic()
        self._locked_out_since = self._locked_out_since or now
        if now - self._locked_out_since > STUCK and self.clerk is not None:
            pid = self.clerk.store.holder()
            stat = stat_of(pid) if pid else None
            self.notes["database"] = (
                f"held by process {pid}, which is suspended: kill -CONT {pid}, or end it"
                if stat and stat[0] in ("T", "t")
                else f"held by process {pid or 'of unknown number'} for long"
            )
        self._tries += 1
        return min(LONGEST_WAIT, 0.001 * 2.0 ** min(self._tries, 9)) * (0.5 + random.random())

    def _outdated(self, why: str) -> float:
        """A newer program has the database: show the last state, and touch nothing any more."""
        self.notes["database"] = why
        self.publisher.stale = True
        self.publisher.ask_full()
        if self.clerk is not None and not self.clerk.board.sessions:
            with contextlib.suppress(sqlite3.Error, Busy, msgspec.MsgspecError):
                self.clerk.store.refresh(self.clerk.board)
        return RESCAN

    def _damaged(self, damage: Damaged) -> float:
        """Begin with an empty one, once nobody else has this one open."""
        self._close()
        there = set_aside(self.home, damage.inode)
        if there is None:
            others = [p for p in self.spool.alive_hosts() if p != self.pid]
            self.notes["database"] = f"{damage}; end the others that have it open: {others}"
        else:
            self.notes["set aside"] = f"{damage}; it is now {there}"
        return LONGEST_WAIT * (1 + random.random())

    def _rescan(self) -> float:
        """Every now and then, and after a sleep of the machine: what no system reports."""
        now = time.monotonic()
        skew = time.time() - now
        if now < self._rescanned + RESCAN and abs(skew - self._skew) < JUMP:
            return self._rescanned + RESCAN - now
        self._rescanned, self._skew = now, skew
        self.watch.rearm()
        with contextlib.suppress(OSError):
            if self._arrived:
                self.spool.announce(self.pid)
            self.spool.sweep()
        self._count()
        self.publisher.places.renew()
        self.lookout.rescan()
        self.guard.look()
        if self.clerk is not None and self._arrived and not self.publisher.stale:
            if self.clerk.store.is_replaced():
                self._close()
                return 0.0
            with contextlib.suppress(Busy, Newer, Damaged, sqlite3.Error, OSError):
                self.clerk.sweep(time.time())
                if now >= self._pruned + PRUNE:
                    self.clerk.store.prune(time.time())
                    self._pruned = now
        return RESCAN

    def _count(self) -> None:
        with contextlib.suppress(OSError):
            self._counts = self.spool.counts()

    # ------------------------------------------------------------ publishing

    def _tell_early(self) -> None:
        """Show what an event will change before it is committed, which takes twice as long.

        Whoever folds it, should this host die now, comes to the same.  What happened, and may be
        announced, is told only once it is committed.
        """
        clerk = self.clerk
        if clerk is None or self._elsewhere or self.publisher.stale or "database" in self.notes:
            return
        if time.monotonic() < self._last_push + 2 * PUBLISH:
            return  # it makes two pushes of one
        board, now = clerk.board, time.time()

        def show(changed: set[str]) -> None:
            self.bell.see(board, changed)
            message = self.publisher.push(board, changed, (), None, now, self.bell.shown())
            if message is not None:
                self._told_early = True
                self.push(message)

        clerk.preview(now, self._came, show)

    def _publish(self) -> float:
        """Tell what changed, at once when it is quiet; how long until it may."""
        early = self._last_push + PUBLISH - time.monotonic()
        if early > 0 and not self._told_early:
            return early
        self._told_early = False
        clerk, changes = self.clerk, self._read()
        if clerk is not None and clerk.refused != self._refused:
            self._refused = clerk.refused
            self._count()
        changed, self._changed = self._changed, set()
        self._unattended |= changed
        board = clerk.board if clerk is not None else None
        if clerk is not None:
            self.bell.see(clerk.board, changed)
            self.bell.hear(changes, clerk.store)
        health, beside = self.health(), self.bell.shown()
        message = self.publisher.push(board, changed, changes, health, time.time(), beside)
        if message is not None:
            self._last_push = time.monotonic()
            self.push(message)
        if clerk is not None:
            self.effects.ask(changes, clerk.board)
        return RESCAN

    def _act(self) -> float:
        """Do what must happen once in the world, and say what calls the user here."""
        if self.clerk is None or self.publisher.stale:
            return RESCAN
        store = self.clerk.store
        again = self.effects.run(store, self.pid)
        wait, notices = self.bell.act(store, self.clerk.board)
        shown = self.bell.shown()
        once = {"notices": notices} if notices else {}
        message = self.publisher.push(None, (), (), None, time.time(), shown, once)
        if message is not None:
            self.push(message)
        return min(wait, RESCAN if again is None else again)

    def _look(self) -> float:
        """See to what changed sessions need, after they are shown, and a little at a time.

        A host that starts among hundreds of them would else say nothing for seconds.
        """
        until = time.monotonic() + LONGEST_LOOK
        while self.clerk is not None and self._unattended:
            if time.monotonic() > until:
                return 0.0
            self.lookout.attend(self.clerk.board.sessions, (self._unattended.pop(),))
        if self.clerk is None:
            return RESCAN
        self.lookout.look_at_ports()
        return min(self.lookout.prove(self.clerk.board.options), RESCAN)

    def _show(self) -> float:
        """Keep the status of the tmux servers that asked for it true."""
        if (early := self.bars.early()) > 0:
            return early
        asked: object = None
        if self.clerk is not None and not self.publisher.stale:
            with contextlib.suppress(sqlite3.Error, msgspec.MsgspecError):
                asked = self.clerk.store.option(ASKED)
        return self.bars.tell(asked, self.publisher.sessions, time.time())

    def _read(self) -> list[Change]:
        """What others committed, also while one of them holds the lock."""
        changes: list[Change] = []
        if self.clerk is not None and not self.publisher.stale:
            # `_work` meets what stands in the way as well, and says it
            with contextlib.suppress(Busy, Newer, Damaged, sqlite3.Error):
                changes = self.clerk.store.changes()  # first: the board then has what they tell of
                self._changed |= self.clerk.catch_up()
        return changes

    def health(self) -> dict[str, Any]:
        """What :checkhealth and doctor want to know of a running host."""
        ledger = self.clerk.board.ledger if self.clerk is not None else None
        return {
            "version": __version__,
            "pid": self.pid,
            "home": str(self.home),
            "watch": self.watch.how,
            "watch_note": self.watch.note,
            "notices": self.bell.health(),
            "notes": {
                **self.publisher.places.notes,
                **self.lookout.notes,
                **self.reach.notes,
                **self.guard.notes,
                **self.notes,
            },
            "counts": dict(ledger.counts) if ledger else {},
            "spool": self._counts,
            "sessions": self.publisher.listed,
            **({"vanished": self.guard.vanished} if self.guard.vanished else {}),
        }
