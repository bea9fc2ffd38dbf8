"""Encode messages as JSON, replacing what JSON cannot carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.json import encode

from ..core.detail import whole
from ..core.published import Published

DEEPEST: Final = 32  # levels to keep

#: What encoding raises: a lone surrogate, an unknown type, a value that contains itself.
UNSENDABLE: Final = (UnicodeEncodeError, TypeError, OverflowError, RecursionError)


def sendable(value: object, depth: int = 0) -> Any:
    """Return a value reduced to what JSON can carry."""
    if isinstance(value, str):
        return whole(value)
    if value is None or isinstance(value, int | float):
        return value
    if depth < DEEPEST and isinstance(value, Mapping):
        return {whole(str(k)): sendable(v, depth + 1) for k, v in value.items()}
    if depth < DEEPEST and isinstance(value, list | tuple):
        return [sendable(v, depth + 1) for v in value]
    return None


class Wire:
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
        return _json({**message, "sessions": sessions, "changes": changes})


def change(had: Published, now: Published) -> dict[str, Any]:
    """Return the keys and words of a session that changed, and the keys that are `gone`."""
    changed = {k: v for k, v in now.items() if had.get(k) != v}
    words = {k: v for k, v in now["words"].items() if had["words"].get(k) != v}
    gone = [k for k in had if k not in now]
    return {**changed, "session_id": now["session_id"], "words": words, "gone": gone}


def _json(message: Mapping[str, Any]) -> str:
    try:
        return encode(message).decode()
    except UNSENDABLE:
        return encode(sendable(message)).decode()
