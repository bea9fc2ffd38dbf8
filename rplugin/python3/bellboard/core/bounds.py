"""Limit the size of what is stored: truncate text, and replace numbers that no database takes by 0.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from .detail import LONGEST_PATH, whole
from .events import Event
from .lenient import LARGEST

LONGEST_TEXT: Final = 512  # characters of a name, an id, a line
PATHS: Final = frozenset({"cwd", "transcript", "env"})
LATEST: Final = 1e11  # seconds: three thousand years
MOST: Final = 100  # values in one collection
MANY: Final = {"ids": 4000}  # values in collections with these names
DEEPEST: Final = 4  # levels of collections

S = TypeVar("S", bound=Struct)


def bounded(e: Event) -> Event:
    """Return an event with every value limited so that it can be stored."""
    return _fields(e, LONGEST_TEXT, DEEPEST)


def trimmed(given: S) -> S:
    """Return a record with only the newest entries of its collections, to make it smaller."""
    return replace(given, **{name: _newest(value) for name, value in asdict(given).items()})


def _newest(value: Any) -> Any:
    if isinstance(value, Struct):
        return trimmed(value)
    if isinstance(value, dict):
        return {key: _newest(x) for key, x in list(value.items())[-MOST:]}
    return tuple(map(_newest, value[-MOST:])) if isinstance(value, tuple) else value


def _fields(given: S, longest: int, levels: int) -> S:
    changed = {}
    for name, value in asdict(given).items():
        if value:
            longest_here = LONGEST_PATH if name in PATHS else longest
            kept = _value(value, longest_here, levels, MANY.get(name, MOST))
            if kept is not value:
                changed[name] = kept
    return replace(given, **changed) if changed else given


def _value(value: Any, longest: int, levels: int, most: int = MOST) -> Any:
    """Return a limited value; the same object if nothing had to change."""
    if isinstance(value, str):
        return whole(value if len(value) <= longest else value[: longest - 1] + "…")
    if isinstance(value, float):
        return value if math.isfinite(value) and abs(value) <= LATEST else 0.0
    if isinstance(value, int):
        return value if abs(value) < LARGEST else 0
    if isinstance(value, Struct):
        return _fields(value, longest, levels)
    if not isinstance(value, dict | list | tuple):
        return value
    if not levels:
        return type(value)()
    if isinstance(value, dict):
        items = list(value.items())[:most]
        return {_value(k, LONGEST_TEXT, 0): _value(x, longest, levels - 1) for k, x in items}
    return type(value)(_value(x, longest, levels - 1) for x in value[:most])
