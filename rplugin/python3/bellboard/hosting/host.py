"""A host: one for each Neovim. It folds what comes, publishes it, and looks after the rest."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

from ..agents import registry, tailing
from ..agents.installing.guard import Guard
from ..agents.registry import KEYS, agent_of
from ..core import words
from ..core.deadlines import NEVER
from ..core.evidence import Evidence
from ..core.session import Session, is_listed
from ..core.words import amount
from ..storage.spool import Spool
from ..storage.store import Logged
from ..system import watch as watching
from ..system.clock import clock
from ..system.notes import Notes
from ..system.reach import Reach
from ..system.watch import Watch
from ..witnesses import repository
from ..witnesses.observer import Observer
from ..witnesses.own_reports import Said
from .addresses import Addresses
from .callbacks import PAUSE, Commands, Effects
from .connection import Connection
from .health import Health
from .hook_pipes import HookPipes
from .jobs import Attempts, Job, Loop
from .links import Links
from .notify import Notifier
from .outbox import Outbox
from .outward import Outward, Write, name_of_board
from .publish import Publisher, Push, Pusher
from .tmux_status import Bars
from .turn import SharedBoard

# What the watch has reported and no fold has handled: events in the spool, or anything else.


MOST: Final = 1000  # paths to remember while they cannot be folded


class Arrivals:
    """Knows whether the spool has to be listed, or which of its files are new."""

    def __init__(self, spool: Spool) -> None:
        self._new, self._slot = f"{spool.new}/", f"{spool.slot}/"
        self._listed = (str(spool.new), str(spool.slot))  # reported when anything may have come
        self._came: set[str] = set()  # into new/
        self._is_partial = False  # nothing else came

    @property
    def only(self) -> Collection[str]:
        """Return the paths in new/, if nothing else can be pending; else none."""
        return self._came if self._is_partial else ()

    def take(self, paths: set[str]) -> set[str]:
        """Note changed paths; return those outside the spool."""
        others = {path for path in paths if not path.startswith(self._new)}
        self._came |= paths - others
        if len(self._came) > MOST:  # they cannot be folded now
            self._came, self._is_partial = set(), False
        outside = {path for path in others if not path.startswith(self._slot)}
        if others - outside or not outside.isdisjoint(self._listed):
            self._is_partial = False
        return outside

    def clear(self, is_more: bool = False) -> None:
        """Note that everything was folded, or that earlier files wait to be listed."""
        self._came, self._is_partial = set(), not is_more


# Load what decodes events soon after the start: an update may replace it while a host runs.


DECODE: Final = f"{__package__}.decode"  # loaded late otherwise, with the first file
REST: Final = 1.0  # seconds after the first round
APART: Final = 0.2  # seconds from one to the next: each takes up to 5 ms


class Loading:
    """Loads one part after the other, and nothing while the host starts."""

    def __init__(self) -> None:
        parts: list[Callable[[], object]] = [partial(import_module, DECODE)]
        parts += [partial(agent_of, key) for key in KEYS]
        self._left = iter(parts)
        self._due = 0.0

    def run(self) -> float:
        """Load the next one if it is due; return the seconds until the next call."""
        now = clock()
        if not self._due:
            self._due = now + REST
        elif now >= self._due:
            self._due = now + APART
            if (load := next(self._left, None)) is None:
                self._due = NEVER
            else:
                with contextlib.suppress(Exception):  # noted when an event needs it
                    load()
        return self._due - now


# Clean up the spool and the database from time to time, so that neither fills up.


PRUNE: Final = 600.0
AGAIN: Final = 0.2  # seconds until more old rows are pruned, or a check of the database is done


class Housekeeping:
    """Cleans up; `counts` holds the number of files in the spool."""

    def __init__(self, connection: Connection, attempt: Attempts) -> None:
        self._connection, self._spool, self._attempt = connection, connection.spool, attempt
        self.counts: dict[str, Any] = {}
        self.notes = Notes()  # how many files wait in vain
        self._refused = 0  # refused files at the last count
        self._pruned = -PRUNE
        self._due = {"spool": 0.0, "database": 0.0}

    def expect(self) -> None:
        """Clean up in the next round."""
        self._due = dict.fromkeys(self._due, 0.0)

    def run(self) -> float:
        """Run the clean-ups that are due; return the seconds until the next call."""
        now = time.monotonic()
        for about, work in (("spool", self._sweep), ("database", self._tidy)):
            if now >= self._due[about]:
                self._due[about] = now + self._attempt("rescan", about, work)
        return min(self._due.values()) - now

    def count(self, shared: SharedBoard) -> None:
        """Count the files again if some were set aside."""
        if shared.refused != self._refused:
            self._refused = shared.refused
            self._attempt.once("rescan", "spool", self._count)

    def _sweep(self) -> float:
        self._attempt.once("rescan", "folders", self._spool.restore)
        if self._connection.has_arrived:
            self._connection.announce()
        self._count()  # before what is stuck is tried again
        self._spool.sweep()
        registry.try_again()
        if (shared := self._connection.shared) is not None:
            shared.try_again()
        return NEVER

    def _count(self) -> None:
        counts: dict[str, Any] = self._spool.counts()
        self.counts = counts
        if stuck := counts.get("stuck"):
            where = f"{amount(stuck, 'file')} in {self._spool.new}"
            self.notes.say("stuck", f"{where} cannot be read now: check the disk, or delete them")
        else:
            self.notes.settle("stuck")

    def _tidy(self) -> float:
        shared = self._connection.shared
        if shared is None or not self._connection.has_arrived:
            return NEVER
        if shared.store.database.is_replaced():
            self._connection.close()
            return 0.0
        self._connection.check_again()
        goes_on = False
        with self._connection.use() as shared:
            if shared is not None:
                goes_on = shared.sweep(time.time())
        with self._connection.use() as shared:
            if shared is not None and time.monotonic() >= self._pruned + PRUNE:
                if shared.store.pruning.prune(time.time()):
                    goes_on = True
                else:
                    self._pruned = time.monotonic()
        return AGAIN if goes_on else NEVER


# A host: evidence or a deadline wakes it, and it folds, commits and publishes.
#
# There is one for each Neovim, or `bellboard serve` without one. All are equal and independent.
#
# A host is complete once it is constructed, and keeps what it receives before `run`. No failure
# ends it: if a job fails, or one session or source within a job, the rest goes on. Health names
# what failed, and the host retries it after a pause.


#: Modules whose work may run in another process.
MODULES: Final = (repository.__name__, watching.__name__, tailing.__name__)
OBSERVE: Final = "observe"  # the name of the job in health
RESCAN: Final = 30.0  # no system promises to report every change
JUMP: Final = 5.0  # the machine slept, or its clock was set: look at everything

Made = TypeVar("Made")


class Host:
    """Runs until it is stopped; calls `push` with the changes."""

    def __init__(
        self,
        home: Path,
        push: Push,
        config: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.home = home
        self.config = dict(config or {})
        self.pid = os.getpid()
        self.attempt = Attempts()
        self.connection = Connection(home, self.config)
        self._renewals = self._arrivals = 0  # of the connection, as last seen
        self.spool = self.connection.spool
        self.loop = Loop(self.attempt, self.spool.obstacle)
        self.outbox = Outbox(self.spool)
        self.reach = Reach(self.loop.wake, modules=MODULES)
        requests = self.config.get("pull_requests") is True
        self.board = name_of_board(home)
        self.observer = Observer(self._find, time.time, environ, requests, board=self.board)
        self.guard = Guard(home, environ, self.loop.wake, reports="server" in self.config)
        #: What is still to be checked in a rescan.
        self._unchecked: dict[str, Callable[[], object]] = {}
        self.watch: Watch | None = None  # once it runs
        self.bars = Bars()
        self.outward: Outward | None = None  # while the terminal of our reader reads reports
        self._environ = environ
        self.notes = Notes()  # settings that cannot be used
        self.commands = Commands()
        self.effects = self._set("callbacks", self._effects)
        self.notifier = self._set("notices", partial(self._notifier, environ))
        self.addresses = Addresses(self._judged_again)
        publisher = Publisher(self.addresses, self.attempt)
        self.reader = Pusher(
            push,
            publisher,
            self.connection,
            self.notifier,
            self.effects,
            self.attempt,
            self._examine,
        )
        self.upkeep = Housekeeping(self.connection, self.attempt)
        self.waiting = HookPipes(self.spool)
        self.links = Links(self.spool, self.config, environ, self.loop.wake, self.loop.call)
        connection, telling = self.connection, (self.commands, self.effects, self.waiting)
        notes = [
            *(part.notes for part in (*telling, self.links, self.attempt, self.outbox)),
            *(connection.notes, connection.board_notes, self.upkeep.notes),
            *(self.notes, self.loop.notes, self.addresses.notes),
            *(self.observer.notes, self.guard.notes, self.reach.notes),
        ]
        self.health = Health(self.connection, self.guard, self.notifier, notes)
        self.arrivals = Arrivals(self.spool)
        self._rescanned = self._skew = -1e9
        self._jobs: tuple[Job, ...] = (
            ("fold", self._fold),
            ("write", self._write),
            ("rescan", self._rescan),
            ("read", self.reader.read),
            ("answers", self._wait),
            ("publish", self._publish),
            ("callbacks", self._run_callbacks),
            ("notices", self.reader.notify),
            ("links", self._follow),
            ("observe", self._attend),
            ("tmux", self._show),
            ("health", self.health.share),
            ("load", Loading().run),
        )

    # ------------------------------------------------------------ calls from outside

    def stop(self) -> None:
        """Stop soon; may be called from any thread."""
        self.loop.stop()

    def rest(self) -> None:
        """Rest for a moment, in which the process is suspended; may be called from any thread."""
        self.loop.rest()

    def left(self) -> None:
        """Report the sessions that ended with our editor: the last words of a host."""
        with contextlib.suppress(Exception):
            if not self.spool.obstacle():
                self.observer.own_reports.left()

    def report(self, line: Mapping[str, Any], key: str | None = None) -> str:
        """Write evidence to the spool; return why that is delayed, or "".

        Raise ValueError if it can never be written.
        """
        if self.connection.is_outdated:
            raise ValueError(self.connection.notes["database"])
        why = self.outbox.put({"t": time.time(), **line}, key)
        if why:
            self.loop.wake()
        return why

    def session(self, sid: str) -> Session | None:
        """Fold pending events, and return a session, or None if it is not listed."""
        self.loop.round()
        shared = self.connection.shared
        s = shared.board.sessions.get(sid) if shared is not None else None
        return s if s is not None and is_listed(s) and not self.connection.is_outdated else None

    def answers(self, sid: str) -> Sequence[Logged]:
        """Return the answers to a session that were logged, with what followed, oldest first."""
        with self.connection.use() as shared:
            if shared is not None:
                return shared.store.answers(session_id=sid)
        return []

    def push_all(self) -> None:
        """Push everything: the reader missed a message."""
        self.reader.ask_full()
        self.loop.wake()

    def focus(self, t: float) -> None:
        """Note that our editor has had the focus since `t`; 0: it has no screen."""
        self.notifier.focus(t)
        self.loop.wake()

    def hand_in(self, sid: str, pid: int, shown: Sequence[str] | str) -> None:
        """Take what the terminal of a session shows: its contents, or its title."""
        self.observer.hand_in(sid, pid, shown)

    def program_status(self, tty: str, job: int, said: Sequence[Said], dropped: int = 0) -> None:
        """Take the sequences of a terminal in which programs report their status."""
        self.observer.take_reports(tty, job, said, dropped)

    def report_board(self, write: Write | None) -> None:
        """Report the board to a terminal that has no reports of it, or no longer."""
        self.outward = Outward(self.board, write, self._environ) if write is not None else None
        self.loop.wake()

    def list_unsaved(self, paths: list[str]) -> None:
        """List the files of which its editor has unsaved changes, for hooks that ask."""
        try:
            if not self.spool.obstacle():  # a note says that
                self.spool.hosts.list_unsaved(self.pid, paths)
            self.notes.settle("unsaved")
        except OSError as e:
            why = f"agents write over unsaved changes without a question: {e.strerror}"
            self.notes.say("unsaved", why)

    def set_mode(self, mode: str) -> None:
        """Set the notification mode: quiet, normal or all."""
        self.notifier.set_mode(mode)
        self.loop.wake()

    def push_notices(self) -> None:
        """Push the notification history."""
        self.reader.ask_notices()
        self.loop.wake()

    # ------------------------------------------------------------ running

    async def run(self) -> None:
        """Run until stopped."""
        gc.freeze()  # collecting what is loaded once took longer than most events
        gc.set_threshold(20_000)
        self.spool.prepare()
        try:
            await self.loop.run(self._jobs, self._open)
        finally:
            withdraw = partial(self.spool.hosts.withdraw, self.pid)
            parts = (self.links, self.observer, self.guard, self.watch, self.reach, self.notifier)
            ends: list[Callable[[], object]] = [part.close for part in parts if part is not None]
            if not self.spool.obstacle():  # these access the state folder
                clear = partial(self.bars.leave, self.spool.hosts)
                ends += [self.waiting.close, self._leave, withdraw]
                # the last one may wait for a folder of somebody's
                ends += [self.connection.close, self.outbox.send, clear]
            for end in ends:
                with contextlib.suppress(Exception):
                    end()

    def _leave(self) -> None:
        with self.connection.use() as shared:
            if shared is not None:
                self.notifier.leave(shared.store)

    # ------------------------------------------------------------ construction

    def _open(self) -> None:
        self.reach.open()
        self.watch = self.health.watch = watch = Watch(self._woken)
        self._expect()
        self._rearm()
        self.observer.open(watch)
        self.guard.open(watch)
        if self.config.get("links") is not False:  # the program of the fleet keeps none
            self.links.open(watch)

    def _effects(self, config: Mapping[str, Any]) -> Effects:
        return Effects(config.get("callbacks"), self.commands)

    def _notifier(self, environ: Mapping[str, str], config: Mapping[str, Any]) -> Notifier:
        return Notifier(
            self.home, config, environ, self.pid, self.commands, self.attempt, self._tell_others
        )

    def _set(self, name: str, make: Callable[[Mapping[str, Any]], Made]) -> Made:
        """Apply a setting; if it is invalid, note that and use the default."""
        try:
            return make(self.config)
        except Exception as e:
            self.notes.say(f"setting {name}", f"not used: {words.plain(e)}")
            return make({k: v for k, v in self.config.items() if k != name})

    # ------------------------------------------------------------ calls from its parts

    def _judged_again(self) -> None:
        """Publish the sessions with an address on which the gate's verdict changed."""
        self.connection.changed |= self.addresses.outdated()
        self.loop.wake()

    def _find(self, evidence: Evidence) -> None:
        self._tell_others(evidence.line, evidence.key)

    def _tell_others(self, line: Mapping[str, Any], key: str | None) -> None:
        with contextlib.suppress(ValueError):
            self.report(line, key)

    def _woken(self, paths: set[str]) -> None:
        """Handle changed paths: events in the spool, or files that the observer watches."""
        linked = {path for path in paths if self.links.is_about(path)}
        if linked:
            self.links.changed(linked)
        if others := self.arrivals.take(paths - linked):
            self.observer.changed(others)
            self.guard.changed(others)
        if self.loop.is_running:
            self.loop.wake()
            return
        self.loop.round()  # at once, which saves 0.05 ms over waking the loop

    # ------------------------------------------------------------ jobs

    def _fold(self) -> float:
        """Fold pending events."""
        wait = self.connection.fold(self.arrivals.only)
        self._look_at_connection()
        if self.connection.is_well:
            self.arrivals.clear(is_more=wait == 0.0)
        if self.connection.is_outdated:
            self.outbox.clear()
        return wait

    def _write(self) -> float:
        """Write evidence that had to wait; report all evidence again if some were dropped."""
        wait = self.outbox.send()
        if self.outbox.has_spilled:
            with self.connection.use() as shared:
                if shared is not None:
                    self.outbox.has_spilled = False
                    self.observer.renew(str(shared.store.option("watched_since")))
        return wait

    def _look_at_connection(self) -> None:
        """Start over if the database was replaced, or if this host has arrived in it."""
        connection = self.connection
        if self._renewals != connection.renewals:
            self._renewals = connection.renewals
            self.notifier.renew()
            self.reader.ask_full()
            self._expect()
            self.links.renew()
        if self._arrivals != connection.arrivals:
            self._arrivals = connection.arrivals
            self.observer.renew(connection.generation)

    def _rescan(self) -> float:
        """Look again at everything, at intervals and after the machine slept."""
        now = time.monotonic()
        skew = time.time() - now
        if now >= self._rescanned + RESCAN or abs(skew - self._skew) >= JUMP:
            self._rescanned, self._skew = now, skew
            self.attempt.forget("watch", "")
            self._expect()
            self.links.expect()
            self.attempt.once("rescan", "addresses", self.addresses.renew)
            self.upkeep.expect()
        waits = [self._check(part) for part in list(self._unchecked)]
        return min(*waits, self.upkeep.run(), self._rescanned + RESCAN - now)

    def _expect(self) -> None:
        """Have everything checked."""
        self._unchecked = {
            "watches": self._rearm,
            "sessions": self.observer.rescan,
            "hooks": self.guard.check,
        }

    def _check(self, part: str) -> float:
        """Check a part again; if that fails, return the seconds until the next attempt."""

        def check() -> float:
            self._unchecked[part]()
            del self._unchecked[part]
            return NEVER

        return self.attempt(OBSERVE, part, check)

    def _rearm(self) -> None:
        if self.watch is not None:
            self.watch.add(self.spool.new, arrivals=True)
            self.watch.add(self.spool.slot, arrivals=True)
            self.watch.rearm()

    def _wait(self) -> float:
        """Look after the hooks that wait for an answer."""
        waiting, shared = self.waiting, self.connection.shared
        waiting.note_changed(self.connection.changed)
        if shared is None or not self.connection.is_well or self.outbox.is_blocked:
            return waiting.go_blind()
        with self.connection.use() as shared:
            if shared is not None:
                return waiting.run(shared.store, shared.board.sessions)
        return PAUSE

    def _publish(self) -> float:
        """Publish the changes."""
        shared = self.connection.shared
        if shared is not None:
            self.upkeep.count(shared)
        self.observer.note_changed(self.connection.changed)
        return self.reader.publish()

    def _run_callbacks(self) -> float:
        """Run the effects that happen once per machine."""
        self.commands.look()
        with self.connection.use() as shared:
            if shared is not None:
                return self.effects.run(shared.store, self.pid)
        return PAUSE if self.connection.is_open else RESCAN

    def _follow(self) -> float:
        """Keep the links to other machines."""
        with self.connection.use() as shared:
            if shared is not None:
                return self.links.run(shared.board, shared.store)
        return PAUSE

    def _attend(self) -> float:
        """Attend to changed sessions, after they are published."""
        shared = self.connection.shared
        return self.observer.run(shared.board) if shared is not None else RESCAN

    def _show(self) -> float:
        """Show the board around our reader: in the tmux servers that asked, and its terminal."""
        wait = self.bars.run(self.connection, self.config, self.reader.sessions)
        if self.outward is not None:
            wait = min(wait, self.outward.run(self.reader.sessions, self.reader.count))
        return wait

    def _examine(self) -> dict[str, Any]:
        report = self.health.report(self.upkeep.counts, len(self.reader.sessions))
        return {**report, "answers": "on" if self.waiting.is_on else "off"}
