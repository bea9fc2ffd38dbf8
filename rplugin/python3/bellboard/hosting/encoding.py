"""Encode the messages of a host to its reader as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.lenient import encoded
from ..core.published import Published


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
