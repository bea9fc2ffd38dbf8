"""What a host observes besides the spool: file watches, the lookout, the guard of the hooks.

Each of them, and each session in them, is guarded: a failure is reported in health and retried
after a pause, and does not affect the others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ..agents import tailing
from ..agents.installing.guard import Guard
from ..core.board import Board
from ..core.deadlines import NEVER
from ..core.evidence import Evidence
from ..storage.spool import Spool
from ..system import watch as watching
from ..system.reach import Reach
from ..system.watch import Watch
from ..witnesses import repository
from ..witnesses.observer import MOST_EARLY, Observer
from ..witnesses.own_reports import Said
from .jobs import Attempts

SLICE: Final = 0.02  # seconds in a row for sessions: the event loop is blocked meanwhile
#: Modules whose work may run in another process.
MODULES: Final = (repository.__name__, watching.__name__, tailing.__name__)
OBSERVE: Final = "observe"  # the name of the job in health


class Senses:
    """Observes from `open` on, which needs a running event loop."""

    def __init__(
        self,
        spool: Spool,
        config: Mapping[str, Any],
        environ: Mapping[str, str],
        reach: Reach,
        attempt: Attempts,
        find: Callable[[Evidence], None],
        wake: Callable[[], None],
    ) -> None:
        self.watch: Watch | None = None
        self.lookout: Observer | None = None
        self.guard: Guard | None = None
        self._spool, self._config, self._environ = spool, config, environ
        self._reach = reach
        self._attempt, self._find, self._wake = attempt, find, wake
        self._generation = ""
        self._unattended: set[str] = set()  # changed sessions that the lookout has not seen yet
        self._undone: dict[str, None] = {}  # parts of the rescan still to do
        self._reported: list[tuple[str, int, Sequence[Said], int]] = []  # not taken yet
        self._parts: dict[str, Callable[[], None]] = {
            "watches": self._rearm,
            "sessions": self._rescan,
            "hooks": self._guard,
        }

    def open(self, watch: Watch) -> None:
        """Start observing."""
        self.watch = watch
        self.expect()
        self.rescan()

    def left(self) -> None:
        """Report what has ended with our editor."""
        if self.lookout is not None:
            self.lookout.own_reports.left()

    def close(self) -> None:
        """Stop observing."""
        for sense in (self.lookout, self.guard, self.watch):
            if sense is not None:
                with contextlib.suppress(Exception):
                    sense.close()

    def renew(self, generation: str) -> None:
        """Report everything again, after a time without hosts."""
        self._generation = generation
        if self.lookout is not None:
            self._do("sessions", partial(self.lookout.renew, generation))

    def changed(self, paths: set[str]) -> None:
        """Take paths that a watch reported."""
        if self.lookout is not None:
            self._do("sessions", partial(self.lookout.changed, paths))
        if self.guard is not None:
            self._do("hooks", partial(self.guard.changed, paths))

    def hand_in(self, sid: str, pid: int, shown: Sequence[str] | str) -> None:
        """Take the contents or the title of the terminal of a session from the editor."""
        if self.lookout is not None:
            self._do("sessions", partial(self.lookout.hand_in, sid, pid, shown))

    def take_reports(self, tty: str, job: int, said: Sequence[Said], dropped: int) -> None:
        """Take what programs report of themselves in a terminal, from the editor."""
        self._reported.append((tty, job, said, dropped))
        del self._reported[:-MOST_EARLY]
        if self.lookout is not None:
            self._do("sessions", partial(self._hand_on, self.lookout))

    def expect(self) -> None:
        """Make the next rescan check everything."""
        self._undone = dict.fromkeys(self._parts)

    def rescan(self) -> float:
        """Check what no watch reports; return the seconds until failures are retried."""
        wait = NEVER
        for part in list(self._undone):
            wait = min(wait, self._attempt(OBSERVE, part, partial(self._finish, part)))
        return wait

    def note_changed(self, sids: Iterable[str]) -> None:
        """Note sessions whose needs may have changed."""
        self._unattended.update(sids)

    def attend(self, board: Board) -> float:
        """Attend to changed sessions, a few at a time; return the seconds until the next call.

        Otherwise a host that starts among hundreds of sessions would block for seconds.
        """
        lookout = self.lookout
        if lookout is None:
            return NEVER
        until, wait = time.monotonic() + SLICE, NEVER
        for sid in list(self._unattended):
            if time.monotonic() > until:
                return 0.0
            again = self._attempt(
                OBSERVE, f"session {sid}", partial(self._attend, lookout, board, sid)
            )
            wait = min(wait, again)
        proof = self._attempt(OBSERVE, "tools", lambda: lookout.prove(board.options))
        self._attempt.once(OBSERVE, "ports", lookout.check_ports)
        return min(wait, proof)

    @property
    def notes(self) -> dict[str, str]:
        """Return what is wrong, for health."""
        lookout = self.lookout.notes if self.lookout is not None else {}
        return {**lookout, **(self.guard.notes if self.guard is not None else {})}

    @property
    def vanished(self) -> str:
        """Return the missing hooks, if this host is to report them."""
        return self.guard.vanished if self.guard is not None else ""

    @property
    def repair(self) -> str:
        """Return the arguments of `install` for that file."""
        return self.guard.repair if self.guard is not None else ""

    def _attend(self, lookout: Observer, board: Board, sid: str) -> float:
        lookout.attend(board.sessions, (sid,))
        self._unattended.discard(sid)
        return NEVER

    def _do(self, part: str, work: Callable[[], None]) -> None:
        """Run `work` now; if it fails, rescan all of that part after a pause."""
        try:
            work()
        except Exception as e:
            self._attempt.failed(OBSERVE, part, e)
            self._undone[part] = None

    def _finish(self, part: str) -> float:
        self._parts[part]()
        del self._undone[part]
        return NEVER

    def _rearm(self) -> None:
        if self.watch is not None:
            self.watch.add(self._spool.new, arrivals=True)
            self.watch.add(self._spool.slot, arrivals=True)
            self.watch.rearm()

    def _rescan(self) -> None:
        if self.watch is None:
            return
        if self.lookout is not None:
            self.lookout.rescan()
            return
        self.lookout = Observer(
            self.watch,
            self._find,
            time.time,
            environ=self._environ,
            generation=self._generation,
            pull_requests=self._config.get("pull_requests") is True,
        )
        self._hand_on(self.lookout)

    def _hand_on(self, lookout: Observer) -> None:
        reported, self._reported = self._reported, []
        for each in reported:
            lookout.take_reports(*each)

    def _guard(self) -> None:
        if self.watch is None:
            return
        if self.guard is not None:
            self.guard.check()
            return
        home, reports = self._spool.home, "server" in self._config
        self.guard = Guard(home, self._environ, self.watch, self._wake, reports)
