"""Encode a message as JSON, replacing what JSON cannot carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.json import encode

from ..core.detail import whole

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


def encoded(message: Mapping[str, Any]) -> str:
    """Return a message as JSON."""
    try:
        return encode(message).decode()
    except UNSENDABLE:
        return encode(sendable(message)).decode()
