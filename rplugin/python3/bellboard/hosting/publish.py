"""Publish changes to the reader of a host: one message, at most 30 times a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ..agents.registry import agent_of
from ..core.board import Board
from ..core.deadlines import NEVER
from ..core.published import Published, by_urgency, publish
from ..core.session import Session, is_listed, status_of
from ..core.untrusted import encoded
from ..core.version import VERSION
from ..core.words import Ranking, worded
from ..storage.store import Change
from .addresses import Addresses
from .callbacks import PAUSE, Effects
from .connection import Connection
from .jobs import Attempts
from .notify import Notifier

# Encode the messages of a host to its reader as JSON.


class Encoder:
    """Encodes the messages to a reader; of a session that it has, only what changed."""

    def __init__(self) -> None:
        self._had: dict[str, Published] = {}

    def encoded(self, message: Mapping[str, Any]) -> str:
        """Return a message as JSON: its `sessions` are new to the reader, the others `changes`."""
        if message["full"]:
            self._had = {}
        for sid in message["removed"]:
            self._had.pop(sid, None)
        sessions, changes = [], []
        for p in message["sessions"]:
            had = self._had.get(p["session_id"])
            self._had[p["session_id"]] = p
            if had is None:
                sessions.append(p)
            else:
                changes.append(change(had, p))
        return encoded({**message, "sessions": sessions, "changes": changes}).decode()


def change(had: Published, now: Published) -> dict[str, Any]:
    """Return the keys and words of a session that changed, and the keys that are `gone`."""
    changed = {k: v for k, v in now.items() if had.get(k) != v}
    words = {k: v for k, v in now["words"].items() if had["words"].get(k) != v}
    gone = [k for k in had if k not in now]
    return {**changed, "session_id": now["session_id"], "words": words, "gone": gone}


# Build the messages for a reader: numbered changes, or a full snapshot on request.


FORMAT: Final = 2
NOTHING: Final[Mapping[str, Any]] = {}


class Publisher:
    """Tracks which sessions a reader has, and in which version."""

    def __init__(self, addresses: Addresses, attempt: Attempts) -> None:
        self._addresses = addresses  # so that only admitted ones are published
        self._attempt = attempt
        self._failing: set[str] = set()  # sessions that cannot be published
        self.stale = False  # whether the board belongs to a newer program
        self._known: dict[str, Published] = {}
        self._health: dict[str, Any] = {}
        self._ranking = Ranking()
        self._unranked: dict[str, Published | None] = {}
        self._extra: dict[str, Any] = {}
        self._seq = 0
        self._full = True  # the first push, and whenever the reader has missed one

    @property
    def sessions(self) -> Collection[Published]:
        """Return the sessions that the reader knows, in no order."""
        return self._known.values()

    @property
    def count(self) -> int:
        """Return the number of messages."""
        return self._seq

    def ask_full(self) -> None:
        """Make the next push a full snapshot."""
        self._full = True

    def push(
        self,
        board: Board | None,
        changed: Iterable[str],
        changes: Sequence[Change],
        health: dict[str, Any] | None,
        now: float,
        extra: Mapping[str, Any] = NOTHING,
        once: Mapping[str, Any] = NOTHING,
    ) -> dict[str, Any] | None:
        """Return the message that brings the reader up to date, or None if it is.

        `extra` is sent whenever it changes, `once` only with this message.  Without a board (the
        database cannot be read), the reader keeps what it has.  Without health, this is only
        about notifications: the rest follows with the next message.
        """
        full = self._full and board is not None
        sessions: list[Published] = []
        removed: list[str] = []
        if board is not None and full:
            self._full = False
            sessions = self._snapshot(board)
            self._known = {p["session_id"]: p for p in sessions}
            self._ranking, self._unranked = Ranking(), {}
        elif board is not None:
            sessions, removed = self._delta(board, changed)
        news: dict[str, Any] = {}
        for p in sessions:
            self._unranked[p["session_id"]] = p
        for sid in removed:
            self._unranked[sid] = None
        if health is not None:
            if full or health != self._health:
                news["health"] = self._health = health
            if self._rank(now) or full:
                news["groups"] = self._ranking.order
        news |= {k: v for k, v in extra.items() if full or self._extra.get(k) != v}
        news |= once
        if not (full or news or sessions or removed or changes):
            return None
        self._extra |= extra
        self._seq += 1
        return {
            "v": FORMAT,
            "version": VERSION,
            "seq": self._seq,
            "full": full,
            "stale": self.stale,
            "now": now,
            "sessions": sessions,
            "removed": removed,
            "transitions": [c.line for c in changes],
            **news,
        }

    def _snapshot(self, board: Board) -> list[Published]:
        """Return all listed sessions, most urgent first."""
        made = (self._made(sid, s, None) for sid, s in board.sessions.items() if is_listed(s))
        return sorted((p for p in made if p is not None), key=by_urgency)

    def _delta(self, board: Board, changed: Iterable[str]) -> tuple[list[Published], list[str]]:
        sessions, removed = [], []
        for sid in {*changed, *self._failing} if self._failing else changed:
            s = board.sessions.get(sid)
            if s is None or not is_listed(s):
                self._succeeded(sid)
                self._addresses.leave(sid)
                if self._known.pop(sid, None) is not None:
                    removed.append(sid)
                continue
            had = self._known.get(sid)
            now = self._made(sid, s, had)
            if now is not None and now != had:
                self._known[sid] = now
                sessions.append(now)
        return sessions, removed

    def _made(self, sid: str, s: Session, had: Published | None) -> Published | None:
        """Publish a session; return None if that fails, which affects no other."""
        try:
            published = worded(self._addresses.shown(publish(s)), had)
            if s.tty and agent_of(s.agent).has_titles:
                published["title_tells"] = True
        except Exception as e:
            self._failing.add(sid)
            self._attempt.failed("publish", f"session {sid}", e)
            return None
        self._succeeded(sid)
        return published

    def _succeeded(self, sid: str) -> None:
        if sid in self._failing:
            self._failing.discard(sid)
            self._attempt.forget("publish", f"session {sid}")

    def _rank(self, now: float) -> bool:
        """Return whether the order of the repositories changed."""
        unranked, self._unranked = self._unranked, {}
        try:
            return bool(unranked) and self._ranking.change(unranked, now)
        except Exception as e:
            self._attempt.failed("publish", "the order of the repositories", e)
            return False


# Send the reader of a host what changed, what happened, and what needs attention.


PUBLISH: Final = 1 / 30  # seconds between two pushes under load
NOTICES: Final = 200  # past notifications to send when the reader asks for them
MOST_LATE: Final = 10  # notifications to keep for a reader that hangs: more would be a flood
MOST: Final = 1000  # changes to remember while they cannot be sent

Push = Callable[[dict[str, Any]], None]


class Pusher:
    """Calls `push` soon after a change, at most 30 times a second, and again after a failure."""

    def __init__(
        self,
        push: Push,
        publisher: Publisher,
        connection: Connection,
        notifier: Notifier,
        effects: Effects,
        attempt: Attempts,
        health: Callable[[], dict[str, Any]],
    ) -> None:
        self._push, self._connection, self._health = push, connection, health
        self._notifier, self._effects, self._attempt = notifier, effects, attempt
        self._publisher = publisher
        self._known: dict[str, Any] = {}  # the health in the last message
        self._changes: list[Change] = []  # committed, not sent yet
        self._unheard: list[Change] = []  # not yet passed to the notifier and the callbacks
        self._wants_notices = False
        self._once: dict[str, Any] = {}  # to send once; notifications are claimed by then
        self._last_push = -PUBLISH

    @property
    def sessions(self) -> Collection[Published]:
        """Return the sessions that the reader knows, in no order."""
        return self._publisher.sessions

    @property
    def count(self) -> int:
        """Return the number of messages to the reader."""
        return self._publisher.count

    def ask_full(self) -> None:
        """Send everything next time."""
        self._publisher.ask_full()

    def ask_notices(self) -> None:
        """Send the notification history next time."""
        self._wants_notices = True

    def read(self) -> float:
        """Read the commits of other hosts, even while one of them holds the lock."""
        with self._connection.use() as shared:
            if shared is not None and shared.others.is_to_read():
                changes = shared.store.changes()  # first, so that the board is at least as new
                self._changes = [*self._changes, *changes][-MOST:]
                self._unheard += changes
                self._connection.changed |= shared.catch_up()
        return NEVER

    def publish(self) -> float:
        """Send the changes, unless it is too early; return the seconds until the next call."""
        early = self._last_push + PUBLISH - time.monotonic()
        if early > 0:
            return early
        shared, connection = self._connection.shared, self._connection
        changed, changes = connection.changed, self._changes
        board = shared.board if shared is not None else None
        if board is not None:
            for sid in changed:
                self._attempt.once("notices", sid, partial(self._notifier.see, board, sid))
        self._attempt.once("health", "", self._examine)
        self._publisher.stale = connection.is_outdated
        extra, now = self._notifier.shown(), time.time()
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
        self._notifier.hear(changes)
        for change in changes:
            sid = change.transition.session_id
            session = board.sessions.get(sid) if board is not None else None
            self._attempt.once("callbacks", sid, partial(self._effects.ask, change, session))

    def notify(self) -> float:
        """Send notifications; return the seconds until the next call."""
        wait = PAUSE if self._connection.is_open else NEVER
        with self._connection.use() as shared:
            if shared is not None:
                wait = self._notifier.act(shared.store, shared.board)
        late = self._late()
        if notices := [*late, *self._notifier.said()]:
            self._once["notices"] = notices
        with self._connection.use() as shared:
            if shared is not None and self._wants_notices:
                self._once["notice_log"] = [r._asdict() for r in shared.store.notices(NOTICES)]
                self._wants_notices = False
        shown = self._notifier.shown()
        self._send(self._publisher.push(None, (), (), None, time.time(), shown, self._once))
        self._once = {}
        return wait

    def _late(self) -> list[dict[str, Any]]:
        """Take the sessions that could not be sent, unless they have changed since."""
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
