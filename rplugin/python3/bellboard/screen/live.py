"""A live view of the sessions: full screen on a terminal, line by line elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..core import words
from ..core.published import Published, by_urgency
from ..core.records import Transition
from ..core.text import cut, width
from ..core.words import plain
from ..system.failures import Declined
from ..system.reach import reach
from ..system.threads import call_in
from ..system.tmux import names_of
from .full import FullScreen
from .history import changes
from .line import COLORS
from .reports import may_ask
from .styled import StyledText
from .terminal import ENDLESS, console, outages, table, write

if TYPE_CHECKING:
    from ..hosting.host import Host

HINT: Final = "q quit"
MORE: Final = "j k scroll"
AGAIN: Final = 10.0  # seconds until the names of panes are asked for again
MOST_NOTES: Final = 2  # health notes: the sessions need the room
#: Key → lines to scroll; a fraction: pages.
STEPS: Final[dict[str, float]] = {
    **dict.fromkeys(("j", "down", "take"), 1),
    **dict.fromkeys(("k", "up"), -1),
    **dict.fromkeys((" ", "page down"), 0.9),
    **dict.fromkeys(("b", "page up"), -0.9),
    **dict.fromkeys(("G", "last"), 9e9),
    **dict.fromkeys(("g", "first"), -9e9),
}


class Live:
    """A full-screen view of the sessions, redrawn only when its text changes."""

    def __init__(self, first_run: str, icons: Mapping[str, str]) -> None:
        self._icons = icons
        self._sessions: dict[str, Published] = {}
        self._names: dict[str, str] = {}  # of panes, by session
        self._asked = 0.0  # when they were asked for
        self._notes: list[str] = []
        self._drawn: object = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._top = 0  # the first line that is shown
        self._page = 1
        self._first_run = [StyledText(line) for line in first_run.splitlines()]
        self._is_read = False  # whether the terminal reads reports
        self._reported = 0  # in which opening of the screen the board was reported
        self.screen = FullScreen(self._renew)

    def begin(self, host: Host) -> None:
        """Start reading keys; called in the event loop of the host, which shows and reports."""
        self._loop, self._host = asyncio.get_running_loop(), host
        if self.screen.keys >= 0:
            self._loop.add_reader(self.screen.keys, self._read)
            if may_ask(os.environ):
                self.screen.ask()

    def push(self, message: dict[str, Any]) -> None:
        """Take a message of the host; called in its event loop."""
        if message["full"]:
            self._sessions = {}
        for p in message["sessions"]:
            self._sessions[p["session_id"]] = p
        for sid in message["removed"]:
            self._sessions.pop(sid, None)
        if "health" in message:  # absent while it is unchanged
            self._notes = [f"{k}: {v}" for k, v in message["health"].get("notes", {}).items()]
        self._draw()
        if self._loop is not None and time.monotonic() > self._asked + AGAIN:
            self._asked = time.monotonic()
            self._naming = self._loop.create_task(self._learn_names())

    async def _learn_names(self) -> None:
        """Show what people call the panes of sessions."""
        with contextlib.suppress(Declined):
            self._names = await reach(partial(names_of, dict(self._sessions)))
            self._draw()

    def _renew(self) -> None:
        """Draw everything again; called in the main thread."""
        self._drawn = None
        if self._loop is not None:
            call_in(self._loop, self._draw)
            call_in(self._loop, self._report)

    def _report(self) -> None:
        """Report the board to the terminal that has just begun to read it, or was somebody's."""
        if self._is_read and self._reported != self.screen.opened:
            self._reported = self.screen.opened
            self._host.report_board(self.screen.report)

    def _read(self) -> None:
        try:
            data = os.read(self.screen.keys, 4096)
        except OSError:
            data = b""
        keys = self.screen.named(data)
        if not data or "q" in keys or "Q" in keys:  # no data: the terminal is gone
            self._host.stop()
            return
        if "reads" in keys:
            self._is_read = True
            self._report()
        for key in keys:
            step = STEPS.get(key, 0)
            lines = int(step * self._page) if isinstance(step, float) else step
            self._top = max(0, self._top + lines)
            self._draw()

    def _draw(self) -> None:
        """Draw the current state, and again when an age changes."""
        now = time.time()
        lines = self._picture(now, *self.screen.size())
        drawn = [line.drawn() for line in lines]
        if drawn != self._drawn:
            self._drawn = drawn
            self.screen.paint(lines)
        if self._timer:
            self._timer.cancel()
        moments = [
            words.age_changes(p[key], now)
            for p in self._sessions.values()
            for key in ("since", "quiet_since", "tool_since", "link_since")
            if p.get(key)
        ]
        if moments and self._loop is not None:
            wait = max(0.05, min(moments) - now)
            self._timer = self._loop.call_later(wait, self._draw)

    def _picture(self, now: float, columns: int, height: int) -> list[StyledText]:
        """Return the header, the sessions that fit, and the health notes."""
        ordered = sorted(
            (
                {**p, "pane_name": self._names.get(sid, "")}
                for sid, p in self._sessions.items()
                if not p["hidden"]
            ),
            key=by_urgency,
        )
        body = table(ordered, now, columns, self._icons)
        body += outages((p for p in self._sessions.values() if p.get("folded")), now, columns)
        if not self._sessions:
            body = self._first_run
        notes = [StyledText(cut(f" {plain(note)}", columns), "yellow") for note in self._notes]
        foot = notes[:MOST_NOTES] if height > 2 * MOST_NOTES + 2 else []
        gap = [StyledText()] if height > 6 else []
        room = self._page = max(1, height - 1 - len(gap) - len(foot))
        over = len(body) - room
        if over > 0:
            room = self._page = max(1, room - 1)
            over = len(body) - room
        self._top = max(0, min(self._top, over))
        shown = body[self._top : self._top + room]
        if over > 0:
            place = (
                f" {self._top + 1}-{self._top + len(shown)} of {words.amount(len(body), 'line')}"
            )
            shown.append(StyledText(cut(f"{place}  {MORE}", columns), "dim"))
        blank = [StyledText()] * (height - 1 - len(gap) - len(shown) - len(foot)) if foot else []
        return [self._header(ordered, columns), *gap, *shown, *blank, *foot][:height]

    def _header(self, ordered: list[Published], columns: int) -> StyledText:
        where = sorted({words.repository(p) for p in ordered})
        what = words.amount(len(ordered), "session")
        if len(where) == 1:
            what = f"{what} in {where[0]}"
        else:
            what = f"{words.amount(len(where), 'repository')} · {what}"
        head = StyledText(f" {what}   " if ordered else " ", "dim")
        for sign, status, count in words.tally(ordered, self._icons):
            head.append(f"{sign}{count} ", COLORS[status])
        if self.screen.keys >= 0 and (room := columns - width(head.plain) - 1) > len(HINT):
            head.append(f"{HINT:>{room}}", "dim")
        head.truncate(columns)
        return head


class Stream:
    """The live view without a terminal: one line for each status change."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def push(self, message: dict[str, Any]) -> None:
        self._names |= {p["session_id"]: words.project(p) for p in message["sessions"]}
        found = [
            Transition(c["t"], c["session_id"], c["from"], c["to"], c["rule"], c["why"])
            for c in message["transitions"]
        ]
        write(console(), (line for c in found for line in changes([c], self._names, ENDLESS)[1:]))
        sys.stdout.flush()
