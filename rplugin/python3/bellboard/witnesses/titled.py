"""Read the titles of terminals whose CLI says there what it does, whenever the terminal changes.

A title is read after its terminal was written to, and never otherwise: nothing happens at rest.
While a session is at work its title decides when a question shows and when it is answered, so it is
read within `SOON`; a spinner costs one read of a few milliseconds each time.  At rest a hook tells
what begins, so a title is read once in `RARELY`, however much somebody types.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from ..agents.dialects import dialect_of
from ..agents.titles import Titles
from ..core.finding import Finding
from ..core.session import Session, owns_pane, status_of
from ..system.doer import Doer
from ..system.tmux import title_of
from ..system.written import Written

SOON: Final = 0.15  # seconds after a change, while a session is at work
RARELY: Final = 1.0
AT_WORK: Final = frozenset({"working", "blocked", "unknown"})


@dataclass(slots=True)
class _Terminal:
    pid: int
    tty: str
    socket: str
    pane: str
    titles: Titles
    is_at_work: bool = True
    timer: asyncio.TimerHandle | None = None


class Titled:
    """Calls `report` with what a title means, when that has changed."""

    def __init__(
        self, reach: Doer, report: Callable[[Finding], None], clock: Callable[[], float]
    ) -> None:
        self._reach, self._report, self._clock = reach, report, clock
        self._loop = asyncio.get_running_loop()
        self._written: Written | None = None  # most users never need it
        self._terminals: dict[str, _Terminal] = {}  # by session

    def attend(self, s: Session) -> None:
        """Read the titles of a session in a tmux pane of its own, if its CLI has such titles."""
        sid, dialect = s.session_id, dialect_of(s.agent)
        in_tmux = s.tmux.startswith("/") and owns_pane(s)
        if not (dialect.has_titles and in_tmux and s.tty and s.pid):
            self.leave(sid)
            return
        known, where = self._terminals.get(sid), (s.pid, s.tty, s.tmux, s.pane)
        if known is None or where != (known.pid, known.tty, known.socket, known.pane):
            self.leave(sid)
            known = self._terminals[sid] = _Terminal(*where, Titles(dialect))
            self._read(sid)
        was_at_work, known.is_at_work = known.is_at_work, status_of(s) in AT_WORK
        if known.is_at_work and not was_at_work and known.timer is not None:
            known.timer.cancel()
            self._read(sid)

    def leave(self, sid: str) -> None:
        """Stop reading the titles of a session that has ended."""
        terminal = self._terminals.pop(sid, None)
        if terminal is not None and terminal.timer is not None:
            terminal.timer.cancel()

    def renew(self) -> None:
        """Report everything again, after a time without hosts."""
        for terminal in self._terminals.values():
            terminal.titles.forget()
        for sid in self._terminals:
            self._read(sid)

    def close(self) -> None:
        """Stop reading titles."""
        for sid in list(self._terminals):
            self.leave(sid)
        if self._written is not None:
            self._written.close()

    def _read(self, sid: str) -> None:
        terminal = self._terminals.get(sid)
        if terminal is None:
            return
        terminal.timer = None
        self._written = self._written or Written(self._changed)
        self._written.add(terminal.tty)  # first, so that later changes are read again
        work, then = partial(title_of, terminal.socket, terminal.pane), partial(self._took, sid)
        self._reach.do(terminal.socket, work, then, key=f"title {terminal.pane}")

    def _took(self, sid: str, title: str) -> None:
        terminal = self._terminals.get(sid)
        seen = terminal.titles.take(title) if terminal is not None else None
        if seen is not None and terminal is not None:
            self._report(seen.finding(self._clock(), sid, terminal.pid, where="title"))

    def _changed(self, tty: str) -> None:
        for sid, terminal in self._terminals.items():
            if terminal.tty == tty and terminal.timer is None:
                pause = SOON if terminal.is_at_work else RARELY
                terminal.timer = self._loop.call_later(pause, self._read, sid)
