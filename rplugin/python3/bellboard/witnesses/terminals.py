"""Terminals as witnesses: the titles of panes, and the screens of agents without hooks.

inotify says when a terminal was written to, so nothing happens at rest.  A terminal in Neovim is
read by that Neovim, which sends its content.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ..agents.agent import DEPTH, Seen
from ..agents.need import CHANGED, JOINED, WRITTEN, Need
from ..agents.registry import agent_of
from ..agents.titles import Titles
from ..core.evidence import Evidence
from ..core.rules.steps import is_blind
from ..core.session import Session, owns_pane, status_of
from ..system.reach import reach
from ..system.tmux import rows_of, titles_of

PATIENCE: Final = 5.0  # seconds for tmux, which takes milliseconds
SETTLE: Final = 0.15  # seconds after a change: a screen is drawn in parts
LONGEST_PAUSE: Final = 1.0  # seconds between two reads of a screen that changes without meaning
LESS_OFTEN: Final = 4.0  # the same if something else shows the status; spinners change the screen
WIDEST: Final = 1000  # characters of a row to read

# While a session is at work its title decides when a question is shown and when it is over. So the
# title is read within `SOON`, or within `LATER` if its meaning was the same last time: a spinner
# changes it all the time. At rest a hook reports a start of work, so titles are read once in
# `RARELY`, however much the user types.
SOON: Final = 0.15  # seconds after a change, while a session is at work
LATER: Final = 0.3
RARELY: Final = 1.0
AT_WORK: Final = frozenset({"working", "blocked", "unknown"})


async def observe_screen(need: Need) -> None:
    """Report the state on the screen of a session in a pane, when it has changed."""
    socket, pane, tty, pid, sid = need.want.of
    s, reported, pause = need.session, None, SETTLE
    longest = LONGEST_PAUSE if is_blind(s) else LESS_OFTEN
    is_old = _is_old(s, need.means.since)
    while True:
        need.listen(tty)  # first, so that later changes are read again
        rows = await reach(partial(rows_of, socket, pane, DEPTH), socket, PATIENCE)
        seen = agent_of(need.session.agent).on_screen(rows)
        if seen is None or seen == reported:
            pause = min(2 * pause, longest)
        else:
            found = reported is None and is_old
            reported, pause = seen, SETTLE
            need.report(seen.evidence(need.means.clock(), sid, int(pid), found))
        await need.news(WRITTEN)
        await asyncio.sleep(pause)


def _is_old(s: Session, since: float) -> bool:
    """Return whether the first screen of a session may be as old as its last news."""
    return s.started < since or not is_blind(s)


async def observe_titles(need: Need) -> None:
    """Report the states in titles of sessions; one command reads all panes of a server."""
    [socket] = need.want.of
    titles: dict[str, tuple[tuple[object, ...], Titles]] = {}  # session → its terminal
    pause = SOON
    while True:
        here = {sid: ((s.pid, s.tty, s.pane), s) for sid, s in need.sessions.items()}
        titles = {sid: known for sid, known in titles.items() if sid in here}
        for sid, (where, s) in here.items():
            if sid not in titles or titles[sid][0] != where:
                titles[sid] = where, Titles(agent_of(s.agent))
                need.listen(s.tty)
            elif s.tty in need.written:
                need.listen(s.tty)  # first, so that later changes are read again
        ttys = {s.tty for s in need.sessions.values()}
        need.written = {tty: at for tty, at in need.written.items() if tty in ttys}
        shown = await reach(partial(titles_of, socket), socket, PATIENCE)
        is_new = False
        for sid, (_, s) in here.items():
            title = shown.get(s.pane)
            seen = titles[sid][1].take(title) if title is not None else None
            if seen is not None:
                is_new = True
                need.report(seen.evidence(need.means.clock(), sid, s.pid, where="title"))
        pause = SOON if is_new else LATER
        while (wait := _next_read(need, titles, pause)) > 0:
            await need.news(JOINED, CHANGED, WRITTEN, within=wait if wait < math.inf else None)


def _next_read(
    need: Need, titles: dict[str, tuple[tuple[object, ...], Titles]], pause: float
) -> float:
    """Return the seconds until the titles are read again."""
    wait, now = math.inf, asyncio.get_running_loop().time()
    for sid, s in need.sessions.items():
        if sid not in titles or titles[sid][0] != (s.pid, s.tty, s.pane):
            return 0.0
        if (at := need.written.get(s.tty)) is not None:
            wait = min(wait, at + (pause if status_of(s) in AT_WORK else RARELY) - now)
    return wait


class Sent:
    """Reports news in the terminals of sessions, as their Neovims send it."""

    def __init__(
        self, report: Callable[[Evidence], None], clock: Callable[[], float], since: float
    ) -> None:
        self._report, self._clock, self._since = report, clock, since
        self._rows: dict[str, Seen] = {}  # by session
        self._titles: dict[str, Titles] = {}

    def rows(self, s: Session, pid: int, rows: Sequence[str]) -> None:
        """Take the contents of a terminal."""
        seen = agent_of(s.agent).on_screen([row[:WIDEST] for row in rows[-DEPTH:]])
        before = self._rows.get(s.session_id)
        if seen is not None and before != seen:
            self._rows[s.session_id] = seen
            found = before is None and _is_old(s, self._since)
            self._report(seen.evidence(self._clock(), s.session_id, pid, found))

    def title(self, s: Session, pid: int, text: str) -> None:
        """Take a title.  A Neovim in tmux sets the title of its pane, which is never read."""
        sid, dialect = s.session_id, agent_of(s.agent)
        if dialect.has_titles and not (s.tmux.startswith("/") and owns_pane(s) and s.tty and s.pid):
            seen = self._titles.setdefault(sid, Titles(dialect)).take(text)
            if seen is not None:
                self._report(seen.evidence(self._clock(), sid, pid, where="title"))

    def forget_rows(self, sid: str) -> None:
        """Report the next contents, even if they were reported before."""
        self._rows.pop(sid, None)

    def forget(self, sid: str) -> None:
        """Drop a session that has ended."""
        self._rows.pop(sid, None)
        self._titles.pop(sid, None)
