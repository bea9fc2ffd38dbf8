"""A reader of a feed: starts `bellboard feed`, keeps its lines, and asks."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Any

from bellboard.core import feed
from bellboard.core.row import Row
from rig import schema, warm
from rig.home import Home
from rig.waiting import PATIENCE, eventually


class Reader:
    """A feed, and what its reader knows."""

    def __init__(self, home: Home, *arguments: str, reads: bool = True) -> None:
        self.lines: list[feed.Line | None] = []
        self.rows: dict[str, Row] = {}
        self.cursor = ""
        self._asked = 0
        asked, self._ask = os.pipe()
        self._told, told = os.pipe()
        errors = home.root / f"feed{self._ask}.stderr"
        with os.fdopen(asked) as stdin, os.fdopen(told, "wb") as stdout, errors.open("w") as stderr:
            self.process = warm.Program(
                ["-m", "bellboard", "feed", *arguments],
                env=home.env,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )
        self.errors = errors
        if reads:
            self.read()

    def read(self) -> None:
        """Start reading."""
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, raw: bytes) -> None:
        os.write(self._ask, raw)

    def ask(self, do: str, **fields: Any) -> feed.Reply:
        """Ask, and wait for the reply."""
        self._asked += 1
        number = self._asked
        self.send(feed.asking(number, do, fields))
        return eventually(lambda: self.reply(number), f"a reply to {do}")

    def reply(self, number: int) -> feed.Reply | None:
        """Return the reply to a request."""
        return next((x for x in self.of(feed.Reply) if x.id == number), None)

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the lines of a kind."""
        return [line for line in self.lines if isinstance(line, kind)]

    @property
    def statuses(self) -> dict[str, str]:
        return {sid: row.status for sid, row in self.rows.items()}

    @property
    def moves(self) -> list[tuple[str, str | None]]:
        """Return the transitions that were sent: session, status."""
        told = [m for line in self.lines for m in getattr(line, "transitions", ())]
        return [(m.session_id, m.after) for m in told]

    def shows(self, **statuses: str) -> Reader:
        """Wait until it knows exactly these sessions."""
        eventually(lambda: self.of(feed.FeedState) and self.statuses == statuses, f"{statuses}")
        return self

    def hang_up(self) -> None:
        """Stop reading and asking, as a reader that is gone."""
        for descriptor in (self._ask, self._told):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._ask = self._told = -1

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(PATIENCE)

    def _read(self) -> None:
        with os.fdopen(os.dup(self._told), "rb") as stream:
            for raw in stream:
                if raw.startswith(b"{"):
                    schema.check_line("feed", raw)
                self._take(feed.read(raw))

    def _take(self, line: feed.Line | None) -> None:
        if isinstance(line, feed.FeedState):
            self.rows = {sid: row for sid, row in self.rows.items() if sid in line.all}
        if isinstance(line, feed.FeedState | feed.FeedChange):
            gone = line.removed if isinstance(line, feed.FeedChange) else ()
            known = {**self.rows, **{row.session_id: row for row in line.sessions}}
            self.rows = {sid: row for sid, row in known.items() if sid not in gone}
            self.cursor = line.cursor
        self.lines.append(line)
