"""A host: evidence or a deadline wakes it, and it folds, commits and publishes.

There is one for each Neovim, or `bellboard serve` without one.  All are equal and independent.

A host is complete once it is constructed, and keeps what it receives before `run`.  No failure ends
it: if a job fails, or one session or source within a job, the rest goes on.  Health names what
failed, and the host retries it after a pause.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from ..core import words
from ..core.finding import Finding
from ..core.session import Session, is_listed
from ..storage.history import Logged
from ..storage.store import Store
from ..system.reach import Reach
from ..system.watch import Watch
from ..witnesses.own_reports import Said
from .addresses import Addresses
from .arrivals import Arrivals
from .attempts import Attempts
from .bars import Bars
from .bell import Bell
from .commands import Commands
from .connection import Connection
from .effects import PAUSE, Effects
from .fleet import Fleet
from .health import Health
from .links import Links
from .loading import Loading
from .loop import Job, Loop
from .outbox import Outbox
from .publishing import Publisher
from .reader import Push, Reader
from .senses import MODULES, Senses
from .upkeep import Upkeep
from .waiting import Waiting

RESCAN: Final = 30.0  # no system promises to report every change
PATIENCE: Final = 0.1  # seconds to create a database: the event loop is blocked meanwhile
JUMP: Final = 5.0  # the machine slept, or its clock was set: look at everything

Made = TypeVar("Made")


class Host:
    """Runs until it is stopped; calls `push` with what changes."""

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
        self.connection = Connection(home, self, self._store)
        self.spool = self.connection.spool
        self.loop = Loop(self.attempt, self.spool.obstacle)
        self.outbox = Outbox(self.spool, self._spilled, self.loop.wake)
        self.reach = Reach(self.loop.wake, modules=MODULES)
        self.senses = Senses(
            self.spool, self.config, environ, self.reach, self.attempt, self._find, self.loop.wake
        )
        self.bars = Bars(self.reach)
        self.notes: dict[str, str] = {}  # for health: settings that cannot be used
        self.commands = Commands()
        self.effects = self._set("callbacks", self._effects)
        self.bell = self._set("notices", partial(self._bell, environ))
        self.addresses = Addresses(self._judged)
        publisher = Publisher(self.addresses, self.attempt)
        self.fleet = Fleet(self)
        self._push = push
        self.reader = Reader(
            self._deliver,
            publisher,
            self.connection,
            self.bell,
            self.effects,
            self.attempt,
            self._examine,
        )
        self.upkeep = Upkeep(self.connection, self.attempt)
        self.waiting = Waiting(self.spool)
        self.links = Links(self.spool, self.config, environ, self.loop.wake, self.loop.call)
        parts = (self.addresses, self.senses, self.reach, self.commands, self.effects)
        noted = (
            *(*parts, self.waiting, self.links, self.fleet, self.attempt, self.outbox),
            *(self.connection, self.upkeep, self, self.loop),
        )
        self.health = Health(self.connection, self.senses, self.bell, noted)
        self.arrivals = Arrivals(self.spool)
        self._rescanned = self._skew = -1e9
        self._jobs: tuple[Job, ...] = (
            ("fold", self._fold),
            ("write", self.outbox.send),
            ("rescan", self._rescan),
            ("read", self.reader.read),
            ("answers", self._wait),
            ("publish", self._publish),
            ("callbacks", self._run_callbacks),
            ("notices", self.reader.notify),
            ("links", self._follow),
            ("fleet", self.fleet.run),
            ("observe", self._attend),
            ("tmux", self._show),
            ("health", self.health.share),
            ("load", Loading().run),
        )

    # ------------------------------------------------------------ calls from outside

    def stop(self) -> None:
        """Stop soon; may be called from any thread."""
        self.loop.stop()

    def left(self) -> None:
        """Report what has ended with our editor: the last words of a host."""
        with contextlib.suppress(Exception):
            if not self.spool.obstacle():
                self.senses.left()

    def report(self, line: Mapping[str, Any], key: str | None = None) -> str:
        """Write evidence to the spool; return why that is delayed, or "".

        Raise ValueError if it can never be written.
        """
        if self.connection.is_outdated:
            raise ValueError(self.connection.notes["database"])
        return self.outbox.put({"t": time.time(), **line}, key)

    def session(self, sid: str) -> Session | None:
        """Fold pending events, and return a session, or None if it is not listed."""
        self.loop.round()
        clerk = self.connection.clerk
        s = clerk.board.sessions.get(sid) if clerk is not None else None
        return s if s is not None and is_listed(s) and not self.connection.is_outdated else None

    def answers(self, sid: str) -> Sequence[Logged]:
        """Return the answers to a session that were logged, with what followed, oldest first."""
        return self.connection.use(lambda clerk: clerk.store.answers(session_id=sid), otherwise=[])

    def push_all(self) -> None:
        """Push everything: the reader missed a message."""
        self.reader.ask_full()
        self.loop.wake()

    def focus(self, t: float) -> None:
        """Note that our editor has had the focus since `t`; 0: it has no screen."""
        self.bell.focus(t)
        self.loop.wake()

    def hand_in(self, sid: str, pid: int, shown: Sequence[str] | str) -> None:
        """Take what the terminal of a session shows: its contents, or its title."""
        self.senses.hand_in(sid, pid, shown)

    def program_status(self, tty: str, job: int, said: Sequence[Said], dropped: int = 0) -> None:
        """Take the sequences of a terminal in which programs report their status."""
        self.senses.take_reports(tty, job, said, dropped)

    def set_mode(self, mode: str) -> None:
        """Set the notification mode: quiet, normal or all."""
        self.bell.set_mode(mode)
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
            leave = partial(self.connection.use, lambda clerk: self.bell.leave(clerk.store), None)
            withdraw = partial(self.spool.hosts.withdraw, self.pid)
            parts = (self.links, self.fleet, self.senses, self.reach, self.bell)
            ends: list[Callable[[], object]] = [part.close for part in parts]
            if not self.spool.obstacle():  # these access the state folder
                clear = partial(self.bars.leave, self.spool.hosts)
                ends += [self.waiting.close, leave, withdraw]
                # the last one may wait for a folder of somebody's
                ends += [self.connection.close, self.outbox.send, clear]
            for end in ends:
                with contextlib.suppress(Exception):
                    end()

    # ------------------------------------------------------------ construction

    def _store(self) -> Store:
        return Store(self.home, patience=PATIENCE)

    def _open(self) -> None:
        watch = Watch(self._woken, reach=self.reach)
        self.senses.open(watch)
        self.links.open(watch)
        self.fleet.open(watch)

    def _effects(self, config: Mapping[str, Any]) -> Effects:
        return Effects(config.get("callbacks"), self.commands)

    def _bell(self, environ: Mapping[str, str], config: Mapping[str, Any]) -> Bell:
        return Bell(
            self.home, config, environ, self.pid, self.commands, self.attempt, self._tell_others
        )

    def _set(self, name: str, make: Callable[[Mapping[str, Any]], Made]) -> Made:
        """Apply a setting; if it is invalid, note that and use the default."""
        try:
            return make(self.config)
        except Exception as e:
            self.notes[f"setting {name}"] = f"not used: {words.plain(e)}"
            return make({k: v for k, v in self.config.items() if k != name})

    # ------------------------------------------------------------ calls from its parts

    def arrived(self, generation: str) -> None:
        """Handle that this host was announced; `generation` changes when no host was left."""
        self.senses.renew(generation)

    def renewed(self) -> None:
        """Handle that the database was replaced, or cannot be reached."""
        self.bell.renew()
        self.reader.ask_full()
        self.senses.expect()
        self.links.renew()

    def _judged(self) -> None:
        """Note, in a thread, that the gate's verdict on an address changed."""
        self.loop.call(self._rejudge)

    def _rejudge(self) -> None:
        self.connection.changed |= self.addresses.outdated()
        self.loop.round()

    def _find(self, finding: Finding) -> None:
        self._tell_others(finding.line, finding.key)

    def _tell_others(self, line: Mapping[str, Any], key: str | None) -> None:
        with contextlib.suppress(ValueError):
            self.report(line, key)

    def _spilled(self) -> None:
        """Report all findings again: some were dropped while nothing could be written."""
        self.connection.use(
            lambda clerk: self.senses.renew(str(clerk.store.option("watched_since"))), None
        )

    def _woken(self, paths: set[str]) -> None:
        """Handle changed paths: events in the spool, or files that the lookout watches."""
        linked = {path for path in paths if self.links.is_about(path)}
        if linked:
            self.links.changed(linked)
            self.fleet.ask()
        if others := self.arrivals.take(paths - linked):
            self.senses.changed(others)
        if self.loop.is_running:
            self.loop.wake()
            return
        self.loop.round()  # at once, which saves 0.05 ms over waking the loop

    def _deliver(self, message: dict[str, Any]) -> None:
        """Send a message to our reader, and to the fleet even if our reader is suspended."""
        try:
            self._push(message)
        finally:
            self.attempt.once("fleet", "", partial(self.fleet.note, message))

    # ------------------------------------------------------------ jobs

    def _fold(self) -> float:
        """Fold pending events."""
        wait = self.connection.fold(self.arrivals.only)
        if self.connection.is_well:
            self.arrivals.clear()
        if self.connection.is_outdated:
            self.outbox.clear()
        return wait

    def _rescan(self) -> float:
        """Check what no system reports, at intervals and after the machine slept."""
        now = time.monotonic()
        skew = time.time() - now
        if now >= self._rescanned + RESCAN or abs(skew - self._skew) >= JUMP:
            self._rescanned, self._skew = now, skew
            self.attempt.forget("watch", "")
            self.senses.expect()
            self.links.expect()
            self.attempt.once("rescan", "addresses", self.addresses.renew)
            self.upkeep.expect()
        return min(self.senses.rescan(), self.upkeep.run(), self._rescanned + RESCAN - now)

    def _wait(self) -> float:
        """Look after the hooks that wait for an answer."""
        waiting, clerk = self.waiting, self.connection.clerk
        waiting.note_changed(self.connection.changed)
        if clerk is None or not self.connection.is_well or self.outbox.is_blocked:
            return waiting.go_blind()
        return self.connection.use(
            lambda clerk: waiting.run(clerk.store, clerk.board.sessions), PAUSE
        )

    def _publish(self) -> float:
        """Publish what changed."""
        clerk = self.connection.clerk
        if clerk is not None:
            self.upkeep.count(clerk)
        self.senses.note_changed(self.connection.changed)
        return self.reader.publish()

    def _run_callbacks(self) -> float:
        """Run the effects that happen once per machine."""
        otherwise = PAUSE if self.connection.is_open else RESCAN
        return self.connection.use(lambda clerk: self.effects.run(clerk.store, self.pid), otherwise)

    def _follow(self) -> float:
        """Keep the links to other machines."""
        return self.connection.use(lambda clerk: self.links.run(clerk.board, clerk.store), PAUSE)

    def _attend(self) -> float:
        """Attend to changed sessions, after they are published."""
        clerk = self.connection.clerk
        return self.senses.attend(clerk.board) if clerk is not None else RESCAN

    def _show(self) -> float:
        """Update the status in the tmux servers that asked for it."""
        return self.bars.run(self.connection, self.config, self.reader.sessions)

    def _examine(self) -> dict[str, Any]:
        report = self.health.report(self.upkeep.counts, len(self.reader.sessions))
        return {**report, "answers": "on" if self.waiting.is_on else "off"}
