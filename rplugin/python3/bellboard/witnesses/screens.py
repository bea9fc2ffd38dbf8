"""Read the screens of sessions that have no better witness, whenever they change.

A tmux pane is read here.  A terminal in Neovim is read by that Neovim, which sends its contents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ..agents.dialect import DEPTH, Seen
from ..agents.dialects import dialect_of
from ..core.finding import Finding
from ..core.rules.steps import is_blind, needs_screen
from ..core.session import ABSENT, Session, owns_pane
from ..system.doer import Doer
from ..system.tmux import rows_of
from ..system.written import Written

SETTLE: Final = 0.15  # seconds after a change: a screen is drawn in parts
LONGEST_PAUSE: Final = 1.0  # seconds between two reads, if a screen changes but means the same
LESS_OFTEN: Final = 4.0  # of one whose status something else shows: its spinner changes it
WIDEST: Final = 1000  # characters of a row to read


@dataclass(slots=True)
class _Screen:
    agent: str
    pid: int
    tty: str
    socket: str
    pane: str
    is_old: bool  # whether it is older than this host, so that nobody may have read its screen
    longest: float  # seconds between two reads, if it changes but means the same
    reported: Seen | None = None
    pause: float = SETTLE
    timer: asyncio.TimerHandle | None = None


class Screens:
    """Calls `report` with what a screen means, when that has changed."""

    def __init__(
        self, reach: Doer, report: Callable[[Finding], None], clock: Callable[[], float]
    ) -> None:
        self._reach, self._report, self._clock = reach, report, clock
        self._loop = asyncio.get_running_loop()
        self._written: Written | None = None  # most users never need it
        self._screens: dict[str, _Screen] = {}  # by session
        self._handed_in: dict[str, Seen] = {}
        self._since = clock()  # no host may have watched before

    def attend(self, s: Session) -> None:
        """Read the pane of a session that has no better witness."""
        sid = s.session_id
        if not (needs_screen(s) and s.tty and s.turn != ABSENT):
            self.leave(sid)
            return
        if not (s.tmux.startswith("/") and s.pane and owns_pane(s)):  # its Neovim hands it in
            self._stop(sid)
            return
        known = self._screens.get(sid)
        where = (s.pid, s.tty, s.tmux, s.pane)
        if known is None or where != (known.pid, known.tty, known.socket, known.pane):
            self.leave(sid)
            # If something else shows its status, what is read first may be as old as its last news.
            is_old = s.started < self._since or not is_blind(s)
            longest = LONGEST_PAUSE if is_blind(s) else LESS_OFTEN
            self._screens[sid] = _Screen(s.agent, *where, is_old, longest)
            self._read(sid)

    def leave(self, sid: str) -> None:
        """Stop reading a session that has ended or has a better witness."""
        self._handed_in.pop(sid, None)
        self._stop(sid)

    def _stop(self, sid: str) -> None:
        screen = self._screens.pop(sid, None)
        if screen is not None and screen.timer is not None:
            screen.timer.cancel()

    def renew(self) -> None:
        """Report everything again, after a time without hosts."""
        self._handed_in.clear()
        self._since = self._clock()
        for sid, screen in self._screens.items():
            screen.reported, screen.is_old = None, True
            self._read(sid)

    def hand_in(self, s: Session, pid: int, rows: Sequence[str]) -> None:
        """Take the terminal contents of a session from its Neovim."""
        seen = dialect_of(s.agent).on_screen([row[:WIDEST] for row in rows[-DEPTH:]])
        before = self._handed_in.get(s.session_id)
        if seen is not None and before != seen:
            self._handed_in[s.session_id] = seen
            found = before is None and (s.started < self._since or not is_blind(s))
            self._report(seen.finding(self._clock(), s.session_id, pid, found))

    def close(self) -> None:
        """Stop reading screens."""
        for sid in list(self._screens):
            self.leave(sid)
        if self._written is not None:
            self._written.close()

    def _read(self, sid: str) -> None:
        screen = self._screens.get(sid)
        if screen is None:
            return
        screen.timer = None
        self._written = self._written or Written(self._changed)
        self._written.add(screen.tty)  # first, so that later changes are read again
        work = partial(rows_of, screen.socket, screen.pane, DEPTH)
        then = partial(self._took, sid)
        self._reach.do(screen.socket, work, then, key=f"screen {screen.pane} of {screen.socket}")

    def _took(self, sid: str, rows: list[str]) -> None:
        screen = self._screens.get(sid)
        if screen is None:
            return
        seen = dialect_of(screen.agent).on_screen(rows)
        if seen is None or seen == screen.reported:
            screen.pause = min(2 * screen.pause, screen.longest)
            return
        found = screen.reported is None and screen.is_old
        screen.reported, screen.pause = seen, SETTLE
        self._report(seen.finding(self._clock(), sid, screen.pid, found))

    def _changed(self, tty: str) -> None:
        for sid, screen in self._screens.items():
            if screen.tty == tty and screen.timer is None:
                screen.timer = self._loop.call_later(screen.pause, self._read, sid)
