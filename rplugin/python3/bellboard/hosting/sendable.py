"""A value as JSON can carry it, whatever it came from; only for what could not be sent as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.json import encode

from ..core.detail import whole

DEEPEST: Final = 32  # levels that are kept

#: What encoding raises: half a character, an object of an unknown type, a value inside itself.
UNSENDABLE: Final = (UnicodeEncodeError, TypeError, OverflowError, RecursionError)


def sendable(value: object, depth: int = 0) -> Any:
    """The same, as far as JSON knows it."""
    if isinstance(value, str):
        return whole(value)
    if value is None or isinstance(value, int | float):
        return value
    if depth < DEEPEST and isinstance(value, Mapping):
        return {whole(str(k)): sendable(v, depth + 1) for k, v in value.items()}
    if depth < DEEPEST and isinstance(value, list | tuple):
        return [sendable(v, depth + 1) for v in value]
    return None


def encoded(message: Mapping[str, Any]) -> str:
    """A message as JSON."""
    try:
        return encode(message).decode()
    except UNSENDABLE:
        return encode(sendable(message)).decode()
