"""What terminals show: the titles of panes, and the screens of agents without hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ..agents.agent import DEPTH, Seen
from ..agents.registry import agent_of
from ..agents.titles import Titles
from ..core.finding import Finding
from ..core.rules.steps import is_blind, needs_screen
from ..core.session import ABSENT, Session, owns_pane, status_of
from ..system.reach import Doer
from ..system.tmux import rows_of, titles_of
from ..system.watch import Written

# Read terminal titles in which a CLI shows its state, whenever the terminal changes.
#
# In a terminal of Neovim, that Neovim notices each change and sends the title. In tmux, titles
# are read here after such a terminal was written to, and never otherwise: nothing happens at
# rest. One command reads those of all panes of a server. While a session is at work its title
# decides when a question shows and when it is answered, so it is read within `SOON`, or within
# `LATER` if it last meant the same: a spinner changes it all the time. At rest a hook reports
# what begins, so titles are read once in `RARELY`, however much the user types.


SOON: Final = 0.15  # seconds after a change, while a session is at work
LATER: Final = 0.3
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
    was_written: bool = True  # since its title was last read


class _Server:
    """A tmux server, and when its titles are read next."""

    def __init__(self, read: Callable[[], None]) -> None:
        self.pause = SOON
        self._read = read
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def plan(self, after: float) -> None:
        """Read them after this time, or sooner if that is planned."""
        if self._timer is not None:
            if self._timer.when() <= self._loop.time() + after:
                return
            self._timer.cancel()
        self._timer = self._loop.call_later(after, self._begin)

    def forget(self) -> None:
        """Read them no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        self._timer = None
        self._read()


class Titled:
    """Calls `report` with what a title means, when that has changed."""

    def __init__(
        self, reach: Doer, report: Callable[[Finding], None], clock: Callable[[], float]
    ) -> None:
        self._reach, self._report, self._clock = reach, report, clock
        self._written: Written | None = None  # most users never need it
        self._terminals: dict[str, _Terminal] = {}  # by session
        self._servers: dict[str, _Server] = {}  # by socket
        self._handed_in: dict[str, Titles] = {}  # by session, of terminals of a Neovim

    def attend(self, s: Session) -> None:
        """Read the titles of a session in a tmux pane of its own, if its CLI has such titles."""
        sid, dialect = s.session_id, agent_of(s.agent)
        in_tmux = s.tmux.startswith("/") and owns_pane(s)
        if not (dialect.has_titles and in_tmux and s.tty and s.pid):
            self._drop(sid)
            return
        known, where = self._terminals.get(sid), (s.pid, s.tty, s.tmux, s.pane)
        is_at_work = status_of(s) in AT_WORK
        if known is None or where != (known.pid, known.tty, known.socket, known.pane):
            self._drop(sid)
            self._terminals[sid] = _Terminal(*where, Titles(dialect), is_at_work)
            self._server_of(s.tmux).plan(0.0)
            return
        if is_at_work and not known.is_at_work and known.was_written:
            self._server_of(s.tmux).plan(0.0)
        known.is_at_work = is_at_work

    def leave(self, sid: str) -> None:
        """Stop reading the titles of a session that has ended."""
        self._handed_in.pop(sid, None)
        self._drop(sid)

    def hand_in(self, s: Session, pid: int, text: str) -> None:
        """Take the title of a terminal from its Neovim.

        A Neovim in tmux gives the pane a title of its own, so that one is never read.
        """
        sid, dialect = s.session_id, agent_of(s.agent)
        if dialect.has_titles and sid not in self._terminals:
            seen = self._handed_in.setdefault(sid, Titles(dialect)).take(text)
            if seen is not None:
                self._report(seen.finding(self._clock(), sid, pid, where="title"))

    def _drop(self, sid: str) -> None:
        """Stop reading the pane of a session."""
        terminal = self._terminals.pop(sid, None)
        if terminal is None or any(t.socket == terminal.socket for t in self._terminals.values()):
            return
        if (server := self._servers.pop(terminal.socket, None)) is not None:
            server.forget()

    def renew(self) -> None:
        """Report everything again, after a time without hosts."""
        self._handed_in.clear()
        for terminal in self._terminals.values():
            terminal.titles.forget()
        for server in self._servers.values():
            server.plan(0.0)

    def close(self) -> None:
        """Stop reading titles."""
        for sid in list(self._terminals):
            self.leave(sid)
        if self._written is not None:
            self._written.close()

    def _server_of(self, socket: str) -> _Server:
        if socket not in self._servers:
            self._servers[socket] = _Server(partial(self._read, socket))
        return self._servers[socket]

    def _read(self, socket: str) -> None:
        self._written = self._written or Written(self._changed)
        for terminal in self._terminals.values():
            if terminal.socket == socket and terminal.was_written:
                terminal.was_written = False
                self._written.add(terminal.tty)  # first, so that later changes are read again
        work, then = partial(titles_of, socket), partial(self._took, socket)
        self._reach.do(socket, work, then, key=f"titles {socket}")

    def _took(self, socket: str, titles: Mapping[str, str]) -> None:
        is_new = False
        for sid, terminal in self._terminals.items():
            title = titles.get(terminal.pane) if terminal.socket == socket else None
            seen = terminal.titles.take(title) if title is not None else None
            if seen is not None:
                is_new = True
                self._report(seen.finding(self._clock(), sid, terminal.pid, where="title"))
        if socket in self._servers:
            self._servers[socket].pause = SOON if is_new else LATER

    def _changed(self, tty: str) -> None:
        for terminal in self._terminals.values():
            if terminal.tty == tty:
                terminal.was_written = True
                server = self._server_of(terminal.socket)
                server.plan(server.pause if terminal.is_at_work else RARELY)


# Read the screens of sessions that have no better witness, whenever they change.
#
# A tmux pane is read here. A terminal in Neovim is read by that Neovim, which sends its
# contents.


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
        seen = agent_of(s.agent).on_screen([row[:WIDEST] for row in rows[-DEPTH:]])
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
        seen = agent_of(screen.agent).on_screen(rows)
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
