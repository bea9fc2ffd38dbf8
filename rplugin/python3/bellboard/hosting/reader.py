"""Send the reader of a host what changed, what happened, and what needs attention."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from ..core.board import Board
from ..core.deadlines import NEVER
from ..core.published import Published
from ..core.session import Session, status_of
from ..storage.store import Change
from .callbacks import PAUSE, Effects
from .connection import Connection
from .jobs import Attempts
from .notify import Bell
from .publish import Publisher

PUBLISH: Final = 1 / 30  # seconds between two pushes under load
NOTICES: Final = 200  # past notifications to send when the reader asks for them
MOST_LATE: Final = 10  # notifications to keep for a reader that hangs: more would be a flood
MOST: Final = 1000  # changes to remember while they cannot be sent

Push = Callable[[dict[str, Any]], None]


class Reader:
    """Calls `push` soon after a change, at most 30 times a second, and again after a failure."""

    def __init__(
        self,
        push: Push,
        publisher: Publisher,
        connection: Connection,
        bell: Bell,
        effects: Effects,
        attempt: Attempts,
        health: Callable[[], dict[str, Any]],
    ) -> None:
        self._push, self._connection, self._health = push, connection, health
        self._bell, self._effects, self._attempt = bell, effects, attempt
        self._publisher = publisher
        self._known: dict[str, Any] = {}  # the health in the last message
        self._changes: list[Change] = []  # committed, not sent yet
        self._unheard: list[Change] = []  # not yet passed to the bell and the callbacks
        self._wants_notices = False
        self._once: dict[str, Any] = {}  # to send once; notifications are claimed by then
        self._last_push = -PUBLISH

    @property
    def sessions(self) -> Collection[Published]:
        """Return the sessions that the reader knows, in no order."""
        return self._publisher.sessions

    def ask_full(self) -> None:
        """Send everything next time."""
        self._publisher.ask_full()

    def ask_notices(self) -> None:
        """Send the notification history next time."""
        self._wants_notices = True

    def read(self) -> float:
        """Read what other hosts committed, even while one of them holds the lock."""
        with self._connection.use() as shared:
            if shared is not None and shared.others.is_to_read():
                changes = shared.store.changes()  # first, so that the board is at least as new
                self._changes = [*self._changes, *changes][-MOST:]
                self._unheard += changes
                self._connection.changed |= shared.catch_up()
        return NEVER

    def publish(self) -> float:
        """Send what changed, unless it is too early; return the seconds until the next call."""
        early = self._last_push + PUBLISH - time.monotonic()
        if early > 0:
            return early
        shared, connection = self._connection.shared, self._connection
        changed, changes = connection.changed, self._changes
        board = shared.board if shared is not None else None
        if board is not None:
            for sid in changed:
                self._attempt.once("notices", sid, partial(self._bell.see, board, sid))
        self._attempt.once("health", "", self._examine)
        self._publisher.stale = connection.is_outdated
        extra, now = self._bell.shown(), time.time()
        message = self._publisher.push(board, changed, changes, self._known, now, extra)
        if message is not None:
            self._last_push = time.monotonic()
            self._place(message)
        try:
            self._send(message)
            connection.changed, self._changes = set(), []
        finally:  # notifications do not wait for a reader that hangs
            self._hear(board)
        return NEVER

    def _place(self, message: dict[str, Any]) -> None:
        """Say in a snapshot which transitions the reader has then: another host may go on there."""
        shared = self._connection.shared
        if message["full"] and shared is not None:
            message["at"] = shared.store.transition

    def _hear(self, board: Board | None) -> None:
        changes, self._unheard = self._unheard, []
        self._bell.hear(changes)
        for change in changes:
            sid = change.transition.session_id
            session = board.sessions.get(sid) if board is not None else None
            self._attempt.once("callbacks", sid, partial(self._effects.ask, change, session))

    def notify(self) -> float:
        """Send notifications; return the seconds until the next call."""
        wait = PAUSE if self._connection.is_open else NEVER
        with self._connection.use() as shared:
            if shared is not None:
                wait = self._bell.act(shared.store, shared.board)
        late = self._late()
        if notices := [*late, *self._bell.said()]:
            self._once["notices"] = notices
        with self._connection.use() as shared:
            if shared is not None and self._wants_notices:
                self._once["rung"] = [r._asdict() for r in shared.store.notices(NOTICES)]
                self._wants_notices = False
        shown = self._bell.shown()
        self._send(self._publisher.push(None, (), (), None, time.time(), shown, self._once))
        self._once = {}
        return wait

    def _late(self) -> list[dict[str, Any]]:
        """Take what could not be sent, unless its session has moved on."""
        late: list[dict[str, Any]] = self._once.pop("notices", [])
        shared = self._connection.shared
        if late and shared is not None:
            sessions = shared.board.sessions
            late = [x for x in late if _is_still(sessions.get(x["session_id"]), x["status"])]
        return late[-MOST_LATE:]

    def _examine(self) -> None:
        self._known = self._health()

    def _send(self, message: dict[str, Any] | None) -> None:
        if message is None:
            return
        try:
            self._push(message)
        except Exception:
            self._publisher.ask_full()
            raise


def _is_still(s: Session | None, status: str) -> bool:
    return s is not None and status_of(s) == status
