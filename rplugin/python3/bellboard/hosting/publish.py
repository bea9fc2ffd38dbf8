"""Publish what changed to the reader of a host: one message, at most 30 times a second."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ..agents.dialects import dialect_of
from ..core.board import Board
from ..core.published import Published, by_urgency, publish
from ..core.session import Session, is_listed
from ..core.untrusted import encoded
from ..core.version import VERSION
from ..core.words import Ranking, worded
from ..storage.store import Change
from .addresses import Addresses
from .jobs import Attempts

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
    """Tracks what a reader knows."""

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
            if s.tty and dialect_of(s.agent).has_titles:
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
