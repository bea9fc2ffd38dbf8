"""What has not been sent to the reader of a feed yet, as lines of the feed.

A slow reader gets only the latest state of each session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ..core import feed
from ..core.feed import MOST, Cursor, Moved, moved_of
from ..core.published import Published
from ..core.row import Row, row
from ..storage.feed_position import Position

FROM_START: Final = Cursor("", 0)


class Unsent:
    """Collects what a host publishes, until the reader takes it."""

    def __init__(self, since: Cursor | None) -> None:
        self.at: Cursor | None = since  # what the reader has
        self.wants_state = False
        self.is_due = False  # whether more than the time of the last evidence has changed
        self._last = 0  # the newest transition that was published
        self._rows: dict[str, Row] = {}
        self._beyond: set[str] = set()  # sessions that are left out, as there are too many
        self._changed: dict[str, None] = {}
        self._moved: list[Moved] = []

    @property
    def is_empty(self) -> bool:
        return not (self._changed or self._moved or self.wants_state or self.is_due)

    def take(self, message: Mapping[str, Any]) -> None:
        """Take a message of a host."""
        if message["full"]:
            self._rows.clear()
            self._beyond.clear()
            self._restart()
        for sid in message["removed"]:
            if self._rows.pop(sid, None) is not None:
                self._changed[sid] = None
            elif sid not in self._beyond:
                continue
            self._beyond.discard(sid)
            self.is_due = True
        for p in message["sessions"]:  # after those that make room
            self._take_session(p)
        for line in message["transitions"]:
            self._last = max(self._last, line["id"])
            moved = moved_of(line)
            if moved is not None and not self.wants_state:
                self._moved.append(moved)
                self.is_due = True
        if len(self._moved) > MOST:
            self._restart()

    def state(self, now: float, position: Position) -> Iterator[bytes]:
        """Return the lines of a state."""
        self._clear()
        self.wants_state, self.at, self._last = False, position.at, position.at.last
        beyond, rows = len(self._beyond), [*self._rows.values()]
        return feed.state(now, rows, position.moved, position.at, position.whole, beyond)

    def changes(self, now: float) -> Iterator[bytes]:
        """Return the lines of what changed."""
        before = self.at or FROM_START
        self.at = before._replace(last=max(before.last, self._last))
        rows = [self._rows[sid] for sid in self._changed if sid in self._rows]
        removed = [sid for sid in self._changed if sid not in self._rows]
        moved = [m for m in self._moved if m.id > before.last]
        self._clear()
        return feed.changes(now, rows, removed, moved, before, self.at, len(self._beyond))

    def _take_session(self, p: Published) -> None:
        made = row(p)
        if made is None:
            return
        sid = made.session_id
        known = self._rows.get(sid)
        if known is None and len(self._rows) >= MOST:
            self.is_due = self.is_due or sid not in self._beyond
            self._beyond.add(sid)
            return
        self._beyond.discard(sid)
        if made == known:
            return
        self._rows[sid], self._changed[sid] = made, None
        if known is None or replace(made, updated=known.updated) != known:
            self.is_due = True

    def _restart(self) -> None:
        self._clear()
        self.wants_state = True

    def _clear(self) -> None:
        self._changed, self._moved, self.is_due = {}, [], False
