"""Turn a machine's feed into evidence, in an order that survives a crash at any line.

Each line of evidence carries its cursor; the last line of a message says that everything up to
there was reported.  Whoever follows next starts from that cursor, and the fold refuses what it
gets twice (`core/rules/people.py`).

This file runs nothing and reads nothing: links and the fleet give it decoded messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import msgspec

from ..core.events import AHEAD
from ..core.evidence import TraceLine
from ..core.feed import MOST, Beat, FeedChange, FeedState, Hello, Moved
from ..core.row import Row

APART: Final = 1.0  # seconds between two clocks that count as equal: a message takes as long
DRIFT: Final = 0.5  # seconds by which the measured difference must change to be used
LATE: Final = 30.0  # seconds that a message may be late: the link ends without one for 21
TICK: Final = 1e-6  # seconds between two lines, so that files keep their order
TIMES: Final = (
    *("since", "updated", "asked_at", "tool_since", "quiet_since", "snoozed_until", "submitted"),
)

#: What a row says only about now: not of the statuses before, each of which gets a row as well.
OF_NOW: Final = frozenset(
    (
        *("kind", "tool", "detail", "request", "asked_at", "tool_since"),
        "quiet_since",
        *("agents", "background", "tasks", "wakeups"),
    )
)

Write = Callable[[Mapping[str, Any]], object]
Said = Hello | FeedState | FeedChange | Beat


class Follower:
    """Follows one machine, through any number of connections; `write` adds a line of evidence."""

    def __init__(
        self, machine: str, write: Write, clock: Callable[[], float], cursor: str = ""
    ) -> None:
        self.machine = machine
        self.cursor = cursor  # everything up to here has been written
        self.is_up = False
        self.skew = 0.0  # how far their clock is ahead of ours
        self.hello = Hello()  # of the last connection
        self._write_line, self._clock = write, clock
        self._at = 0.0  # the time of the last line
        self._down = ""  # why it is down, as last written
        self._rows: dict[str, Row] = {}  # as last written
        self._unlisted: set[str] = set()  # sessions of a state whose rows have not come yet
        self._fresh = True  # nothing was measured on this connection yet

    def take(self, said: Said) -> None:
        """Write a message as evidence; raise OSError if that fails."""
        if isinstance(said, Hello):
            self.hello, self._fresh = said, True
            if said.now:
                self._measure(said.now)
            return
        self._measure(said.now)
        if isinstance(said, FeedState):
            self._state(said)
        elif isinstance(said, FeedChange):
            self._write(list(self._of_rows(said)), said.removed, said.cursor)

    @property
    def unlisted(self) -> Set[str]:
        """Return the sessions of a state whose rows have not come yet."""
        return self._unlisted

    def count(self, said: FeedChange) -> int:
        """Return how many sessions the machine has after a change."""
        most = len(self._rows) + len(self._unlisted) + len(said.sessions)
        if most <= MOST:  # true of nearly all: spare the rest
            return most
        came = {row.session_id for row in said.sessions}
        return len((self._rows.keys() | self._unlisted | came).difference(said.removed))

    def lose(self, why: str) -> None:
        """Write that the machine cannot be followed, and why."""
        if self.is_up or self._down != why:
            self._put("link", TraceLine(up=False, why=why))
        self.is_up, self._down = False, why

    def leave(self) -> None:
        """Write that the machine is no longer followed."""
        self._put("link", TraceLine(gone=True))
        self.is_up, self._rows = False, {}

    # ------------------------------------------------------------ messages

    def _state(self, said: FeedState) -> None:
        self._unlisted = set(said.all)
        self._rows = {sid: row for sid, row in self._rows.items() if sid in self._unlisted}
        for line in self._of_rows(said):
            self._put("far", line)
        self._put("far", TraceLine(all=list(said.all), cursor=said.cursor, done=True))
        self.cursor = said.cursor or self.cursor
        if not self.is_up:
            self._put("link", TraceLine(up=True))
            self.is_up, self._down = True, ""

    def _of_rows(self, said: FeedState | FeedChange) -> Iterator[TraceLine]:
        """Yield the lines for each row: its transitions, then its state."""
        moved: dict[str, list[Moved]] = {}
        for m in said.transitions:
            moved.setdefault(m.session_id, []).append(m)
        for row in said.sessions:
            yield from self._of_row(row, moved.get(row.session_id, ()), said.cursor)
            self._unlisted.discard(row.session_id)
            self._rows[row.session_id] = row

    def _of_row(self, row: Row, moved: Sequence[Moved], cursor: str) -> Iterator[TraceLine]:
        base = cursor.rpartition(".")[0]
        last = moved[-1] if moved and moved[-1].after == row.status else None
        earlier = moved[:-1] if last is not None else moved
        before = {k: x for k, x in self._shown(row).items() if k not in OF_NOW} if earlier else {}
        for m in earlier:
            if m.after is not None:
                past = {"status": m.after, "since": m.t, "updated": m.t}
                shown = {**before, **self._corrected(past)}
                at = f"{base}.{m.id}"
                yield TraceLine(row=shown, why=m.why, cursor=at, found=not m.live)
        if row == self._rows.get(row.session_id) and not moved:
            return
        is_news = last.live if last is not None else row.session_id not in self._unlisted
        why = last.why if last is not None else ""
        yield TraceLine(row=self._shown(row), why=why, cursor=cursor, found=not is_news)

    def _write(self, rows: list[TraceLine], removed: Sequence[str], cursor: str) -> None:
        for sid in removed:
            self._rows.pop(sid, None)
            self._unlisted.discard(sid)
        lines = rows + ([TraceLine(gone=list(removed), cursor=cursor)] if removed else [])
        for line in lines:
            line.done = line is lines[-1]
            self._put("far", line)
        self.cursor = cursor or self.cursor

    # ------------------------------------------------------------ times

    def _measure(self, now: float) -> None:
        """Compare the clocks.

        A delayed message makes the difference too small, never too large; if it is smaller by more
        than a delay, one of the clocks was set.
        """
        if not now:
            return
        apart = now - self._clock()
        was_set = not self.skew - LATE < apart < self.skew + DRIFT
        if self._fresh or was_set:
            self._fresh = False
            apart = apart if abs(apart) > APART else 0.0
            if abs(apart - self.skew) > DRIFT:
                self.skew = apart

    def _shown(self, row: Row) -> dict[str, Any]:
        shown: dict[str, Any] = self._corrected(msgspec.to_builtins(row))
        for key in ("agents", "background"):
            if key in shown:
                shown[key] = [self._corrected(member) for member in shown[key]]
        return shown

    def _corrected(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return a record with the times of our clock."""
        times = {k: v - self.skew for k, v in given.items() if k in TIMES and v > self.skew}
        return {**given, **times}

    # ------------------------------------------------------------ lines

    def _put(self, key: str, line: TraceLine) -> None:
        now = self._clock()
        self._at = max(now, self._at + TICK) if self._at < now + AHEAD else now
        line.machine = self.machine
        self._write_line(line.line(self._at, key))
