"""A live view of the sessions: full screen on a terminal, line by line elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import time
from types import TracebackType
from typing import Any

from rich.live import Live as Screen
from rich.text import Text

from ..core import words
from ..core.ledger import Transition
from ..core.published import Published
from ..core.session import URGENCY
from ..core.words import cut, plain
from .terminal import COLOURS, ENDLESS, changes, console, table, write


class Live:
    """A full-screen view of the sessions, redrawn only when its text changes."""

    def __init__(self) -> None:
        self._sessions: dict[str, Published] = {}
        self._notes: list[str] = []
        self._drawn: object = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._out = console()
        self._screen = Screen(
            console=self._out,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Live:
        self._screen.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer:
            self._timer.cancel()
        self.close()

    def close(self) -> None:
        """Restore the screen."""
        with contextlib.suppress(OSError):  # the terminal is gone
            self._screen.stop()

    def push(self, message: dict[str, Any]) -> None:
        """Take a message of the host; called in its event loop."""
        if message["full"]:
            self._sessions = {}
            self._loop = asyncio.get_running_loop()
        for p in message["sessions"]:
            self._sessions[p["session_id"]] = p
        for sid in message["removed"]:
            self._sessions.pop(sid, None)
        if "health" in message:  # absent while it is unchanged
            self._notes = [f"{k}: {v}" for k, v in message["health"].get("notes", {}).items()]
        self.draw()

    def resized(self) -> None:
        """Redraw for a new terminal size; may be called from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.draw)

    def draw(self) -> None:
        """Draw the current state, and again when an age changes."""
        now, size = time.time(), shutil.get_terminal_size()
        fixed = os.environ.get("COLUMNS")
        self._out.width = self._out.width if fixed else size.columns
        lines = self._lines(now, self._out.width)
        rest = len(lines) - size.lines
        if rest > 0:
            lines[size.lines - 1 :] = [Text(f" … {words.amount(rest + 1, 'line')} more", "dim")]
        drawn = (size, [line.markup for line in lines])
        if drawn != self._drawn:
            self._drawn = drawn
            text = Text("\n", no_wrap=True, overflow="crop").join(lines)
            self._screen.update(text, refresh=True)
        if self._timer:
            self._timer.cancel()
        moments = [words.age_changes(p["since"], now) for p in self._sessions.values()]
        if moments:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.05, min(moments) - now), self.draw)

    def _lines(self, now: float, columns: int) -> list[Text]:
        notes = [Text(cut(f" {plain(note)}", columns), "yellow") for note in self._notes]
        if not self._sessions:
            return [*(Text(line) for line in words.FIRST_RUN.splitlines()), *notes]
        ordered = sorted(
            (p for p in self._sessions.values() if not p["hidden"]),
            key=lambda p: (URGENCY[p["status"]], p["since"], p["session_id"]),
        )
        where = {words.repository(p) for p in ordered}
        left = (
            f" {words.amount(len(where), 'repository')} · {words.amount(len(ordered), 'session')}"
        )
        head = Text().append(f"{left}   ", "dim")
        for sign, status, count in words.tally(ordered):
            head.append(f"{sign}{count} ", COLOURS[status])
        return [head, Text(), *table(ordered, now, columns), *notes]


class Stream:
    """The live view if the output is not a terminal: one line for each status change."""

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
