"""What a host perceives beside the spool: watches, the lookout, the guard of the hooks.

Each of them is guarded, and each session in them: what fails is named, and tried again after a
while; the others go on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ..agents.claude_code.installer.guard import Guard
from ..agents.claude_code.witnesses import transcript
from ..core.board import Board
from ..core.finding import Finding
from ..storage.spool import Spool
from ..system import watch as watching
from ..system.reach import Reach
from ..system.watch import Watch
from ..witnesses import repository
from ..witnesses.lookout import Lookout
from .attempts import Attempts

LONGEST_LOOK: Final = 0.02  # at sessions, while the event loop stands still
RARELY: Final = 30.0
#: Whose work may be done in a process of its own.
MODULES: Final = (repository.__name__, transcript.__name__, watching.__name__)
LOOK: Final = "look"  # the job, as health names it


class Senses:
    """Nothing is perceived before `open`, which needs the event loop that runs."""

    def __init__(
        self,
        spool: Spool,
        config: Mapping[str, Any],
        environ: Mapping[str, str],
        reach: Reach,
        attempt: Attempts,
        find: Callable[[Finding], None],
        wake: Callable[[], None],
    ) -> None:
        self.watch: Watch | None = None
        self.lookout: Lookout | None = None
        self.guard: Guard | None = None
        self._spool, self._config, self._environ = spool, config, environ
        self._reach = reach
        self._attempt, self._find, self._wake = attempt, find, wake
        self._generation = ""
        self._unattended: set[str] = set()  # sessions that changed, and the lookout does not know
        self._undone: dict[str, None] = {}  # parts of the rescan
        self._parts: dict[str, Callable[[], None]] = {
            "watches": self._rearm,
            "sessions": self._rescan,
            "hooks": self._guard,
        }

    def open(self, watch: Watch) -> None:
        """Begin to perceive."""
        self.watch = watch
        self._reach.heed(lambda: self.notes)
        self.expect()
        self.rescan()

    def close(self) -> None:
        """End it."""
        for sense in (self.lookout, self.guard, self.watch):
            if sense is not None:
                with contextlib.suppress(Exception):
                    sense.close()

    def renew(self, generation: str) -> None:
        """After a time without hosts: what was told before is told again."""
        self._generation = generation
        if self.lookout is not None:
            self._do("sessions", partial(self.lookout.renew, generation))

    def changed(self, paths: set[str]) -> None:
        """A watch named these paths."""
        if self.lookout is not None:
            self._do("sessions", partial(self.lookout.changed, paths))
        if self.guard is not None:
            self._do("hooks", partial(self.guard.changed, paths))

    def hand_in(self, sid: str, pid: int, rows: Sequence[str]) -> None:
        """The editor has read the terminal of a session."""
        if self.lookout is not None:
            self._do("sessions", partial(self.lookout.screens.hand_in, sid, pid, rows))

    def expect(self) -> None:
        """All of it is to be looked at anew."""
        self._undone = dict.fromkeys(self._parts)

    def rescan(self) -> float:
        """Look at what no system reports; in how many seconds at what failed."""
        wait = RARELY
        for part in list(self._undone):
            wait = min(wait, self._attempt(LOOK, part, partial(self._finish, part)))
        return wait

    def note_changed(self, sids: Iterable[str]) -> None:
        """These sessions may need something else now."""
        self._unattended.update(sids)

    def attend(self, board: Board) -> float:
        """See to what changed sessions need, a little at a time; in how many seconds to come again.

        A host that starts among hundreds of them would else say nothing for seconds.
        """
        lookout = self.lookout
        if lookout is None:
            return RARELY
        until, wait = time.monotonic() + LONGEST_LOOK, RARELY
        for sid in list(self._unattended):
            if time.monotonic() > until:
                return 0.0
            again = self._attempt(
                LOOK, f"session {sid}", partial(self._attend, lookout, board, sid)
            )
            wait = min(wait, again)
        proof = self._attempt(LOOK, "tools", lambda: lookout.prove(board.options))
        self._attempt.once(LOOK, "ports", lookout.look_at_ports)
        return min(wait, proof)

    @property
    def notes(self) -> dict[str, str]:
        """For health: what is not as it should be."""
        lookout = self.lookout.notes if self.lookout is not None else {}
        return {**lookout, **(self.guard.notes if self.guard is not None else {})}

    @property
    def vanished(self) -> str:
        """The hooks that are gone, if this host is to tell."""
        return self.guard.vanished if self.guard is not None else ""

    def _attend(self, lookout: Lookout, board: Board, sid: str) -> float:
        lookout.attend(board.sessions, (sid,))
        self._unattended.discard(sid)
        return RARELY

    def _do(self, part: str, work: Callable[[], None]) -> None:
        """Do it at once; if it fails, look at all of that part after a while."""
        try:
            work()
        except Exception as e:
            self._attempt.failed(LOOK, part, e)
            self._undone[part] = None

    def _finish(self, part: str) -> float:
        self._parts[part]()
        del self._undone[part]
        return RARELY

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
        self.lookout = Lookout(
            self.watch,
            self._reach,
            self._find,
            time.time,
            environ=self._environ,
            generation=self._generation,
            pull_requests=self._config.get("pull_requests") is True,
        )

    def _guard(self) -> None:
        if self.watch is None:
            return
        if self.guard is not None:
            self.guard.look()
            return
        home, tells = self._spool.home, "server" in self._config
        self.guard = Guard(home, self._environ, self.watch, self._reach, self._wake, tells)
