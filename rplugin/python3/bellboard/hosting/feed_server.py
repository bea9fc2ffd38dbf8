"""Serve a feed: our rows to whoever follows this machine, and its requests carried out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..core import feed
from ..core.feed import (
    BEAT,
    LONGEST,
    MOST,
    SILENT_AFTER,
    Ask,
    Beat,
    Cursor,
    Hello,
    Moved,
    asked,
    moved_of,
)
from ..core.published import Published
from ..core.request import refusal
from ..core.row import Row, row
from ..storage.feed_position import Position, position
from ..system.failures import described
from ..system.programs import Inlet, Outlet
from .asked import RequestReader
from .callbacks import PAUSE
from .feed_requests import FeedRequests
from .notify import FOLLOWERS, note

if TYPE_CHECKING:
    from .host import Host


# What has not been sent to the reader of a feed yet, as lines of the feed.
#
# A slow reader gets only the latest state of each session.


FROM_START: Final = Cursor("", 0)


class Unsent:
    """Collects the messages of a host, until the reader takes them."""

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
        """Return the lines of the changes."""
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


# Serve the reader of a feed: send changes, carry out requests, and note that it follows.
#
# While a reader is slow, nothing piles up: changes are merged (`Unsent`), and no more
# requests are read than are being carried out.


MOST_CARRIED_OUT: Final = 16  # requests being carried out
READER_GONE: Final = 60.0  # seconds without a line after which a reader that has sent some is gone
WELL: Final = 3.0  # seconds between two checks whether the board can be used
LAST: Final = 0.2  # seconds to write what is left

NO_REQUEST: Final = "not a request: a JSON object with “id” and “do” is needed"


class Feeding:
    """Serves one reader through two descriptors; `quiet`: it does not take over notifications."""

    def __init__(
        self, since: Cursor | None, quiet: bool, ask: int, tell: int, most: int = MOST_CARRIED_OUT
    ) -> None:
        self.why = ""  # why it ended, if that is a problem
        self._most = most  # requests at a time
        self._quiet, self._ask, self._tell = quiet, ask, tell
        self._alone = False  # the reader last said that nobody is there
        self._unsent = Unsent(since)
        self._replies: list[bytes] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._heard = 0.0  # when the reader sent its last line
        self._follows = self._wanted = False  # whether that is noted, and should be
        self._host: Host | None = None

    def begin(self, host: Host, hello: Hello) -> None:
        """Greet the reader; called in the event loop of the host."""
        self._host, self._loop = host, asyncio.get_running_loop()
        requests = RequestReader(host.spool, host.session, host.answers)
        self._requests = FeedRequests(host.connection, requests, host.report)
        self._outlet = Outlet(self._tell, self._drained)
        self._inlet = Inlet(self._ask, LONGEST, self._most, self._came)
        self._timer = self._loop.call_later(BEAT, self._beat)
        self._loop.call_later(WELL, self._check, "")
        self._outlet.write(feed.encoded(hello))

    def push(self, message: Mapping[str, Any]) -> None:
        """Take a message of the host."""
        if message["stale"]:
            self._end("its board belongs to a newer bellboard: update the one that runs here")
            return
        self._unsent.take(message)
        if self._unsent.wants_state:  # the database may be in use at this moment
            self._loop.call_soon(self._flush)
        else:
            self._flush()

    def finish(self) -> None:
        """Wait until the reader has taken all lines."""
        if self._host is not None:
            self._outlet.finish(LAST)

    def _check(self, before: str) -> None:
        """End if the board could not be used `before` either: the reader shows outdated rows."""
        assert self._host is not None
        of = self._host.connection
        why = "" if of.is_well else of.notes.get("database") or of.notes.get("home", "")
        if why and before:
            self._end(f"its board cannot be used: {why}")
        self._loop.call_later(WELL, self._check, why)

    # ------------------------------------------------------------ sending

    def _flush(self) -> None:
        """Write the next piece, once the reader has taken the last one."""
        if self._host is None or not self._outlet.is_free:
            return
        now, replies = time.time(), self._replies
        self._replies = []
        for _ in replies:
            self._inlet.done()
        piece = b"".join(replies)
        if self._unsent.wants_state:
            piece += b"".join(self._state(now))
        elif self._unsent.is_due:
            piece += b"".join(self._unsent.changes(now))
        if piece:
            self._write(piece)

    def _state(self, now: float) -> list[bytes]:
        host = self._host
        assert host is not None
        since = self._unsent.at
        found = None
        with host.connection.use() as shared:
            if shared is not None:
                found = position(shared.store, since, host.pid, now)
        if found is None:  # another host is writing
            self._loop.call_later(PAUSE, self._flush)
            return []
        return list(self._unsent.state(now, found))

    def _write(self, piece: bytes) -> None:
        self._outlet.write(piece)
        self._timer.cancel()
        self._timer = self._loop.call_later(BEAT, self._beat)

    def _beat(self) -> None:
        """Write a beat, or changes too small for a line of their own until now."""
        self._timer = self._loop.call_later(BEAT, self._beat)
        if self._outlet.is_free:
            now, at = time.time(), self._unsent.at
            if self._unsent.is_empty:
                self._write(feed.encoded(Beat(now, str(at or ""))))
            else:
                self._unsent.is_due = True
                self._flush()

    def _drained(self) -> None:
        error = self._outlet.error
        if isinstance(error, ConnectionError) and self._host is not None:  # the reader is gone
            self._host.stop()
        elif error is not None:
            self._end(f"cannot write to standard output: {error.strerror}")
        self._flush()

    def _end(self, why: str) -> None:
        self.why = self.why or why
        if self._host is not None:
            self._host.stop()

    # ------------------------------------------------------------ what is asked

    def _came(self, raw: bytes) -> None:
        """Take a line of the reader."""
        ask = asked(raw)
        if ask is not None and "alone" in ask.fields:
            self._alone = ask.fields["alone"] is True
        self._listen()
        task = self._loop.create_task(self._reply(ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, ask: Ask | None) -> None:
        if ask is None:
            number, reply = 0, refusal(NO_REQUEST)
        else:
            number = ask.id
            try:
                reply = await self._requests.do(ask)
            except Exception as e:  # it concerns this request only
                reply = refusal(described(e))
        self._replies.append(feed.replied(number, reply))
        self._flush()

    # ------------------------------------------------------------ whether it is there

    def _listen(self) -> None:
        """Note that the reader is there."""
        was_silent, self._heard = not self._heard, time.monotonic()
        if was_silent:
            self._loop.call_later(SILENT_AFTER, self._look)
        self._follow(True)

    def _look(self) -> None:
        """Check whether the reader has been silent for too long."""
        silent = time.monotonic() - self._heard
        if silent >= READER_GONE:
            self._end(f"its reader has sent nothing for {READER_GONE:.0f} s")
            return
        self._follow(silent < SILENT_AFTER)
        self._loop.call_later(
            (SILENT_AFTER if silent < SILENT_AFTER else READER_GONE) - silent, self._look
        )

    def _follow(self, wanted: bool) -> None:
        """Note that somebody follows, or no longer does."""
        self._wanted = wanted and not self._quiet and not self._alone
        self._note_it()

    def _note_it(self) -> None:
        host, wanted, now = self._host, self._wanted, time.time()
        if host is None or self._follows == wanted:
            return
        with host.connection.use() as shared:
            if shared is not None:
                note(shared.store, FOLLOWERS, host.pid, "feed", wanted, now)
                self._follows = wanted
        if self._follows != wanted:  # another host is writing
            self._loop.call_later(PAUSE, self._note_it)
            return
        with contextlib.suppress(ValueError):
            host.report({"tick": {}})  # makes the other hosts check again
