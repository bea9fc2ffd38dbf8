"""JSON that is not as expected: cut off, doubled, odd; what can be read of it is read."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from typing import Any, Final

from msgspec import Raw
from msgspec.json import decode

from .detail import ODD, whole

DEEPEST: Final = 8  # levels of a value that is kept
LARGEST: Final = 1 << 53  # a number that every reader can hold
LONGEST_NUMBER: Final = 15  # digits: every such number is smaller
_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)


def decimal(text: str) -> int | None:
    """The number that a few ASCII digits write; None for anything else, such as `²` or `-1`."""
    return int(text) if len(text) <= LONGEST_NUMBER and _DIGITS.fullmatch(text) else None


def members(raw: bytes, truncated: bool) -> dict[str, Any]:
    """The members of a JSON object; of a cut-off one, those with which it begins."""
    text = raw.decode("utf-8", "replace")
    top = _leading(text) if truncated else json.loads(text, parse_constant=_no_number)
    if not isinstance(top, dict):
        raise ValueError("not a JSON object")
    if not truncated and text.count('"session_id"') > 1:
        json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    return top


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs) and "session_id" in made:
        raise ValueError("a key is given twice")
    return made


_KEY: Final = re.compile(r'[\s,{]*"([A-Za-z_]{1,60})"\s*:\s*')


def _leading(text: str) -> dict[str, Any]:
    """The whole members with which a cut-off object begins."""
    found: dict[str, Any] = {}
    read = json.JSONDecoder().raw_decode
    at = 0
    with suppress(ValueError):  # the member that is cut off
        while (key := _KEY.match(text, at)) is not None:
            found[key.group(1)], at = read(text, key.end())
    if not found:
        raise ValueError("cut off before its first member")
    return found


def value_of(raw: Raw | bytes) -> Any:
    """A JSON value, also one with half a character in it; None if it is none."""
    try:
        return decode(raw)
    except ODD:
        with suppress(*ODD):
            return plain(json.loads(bytes(raw)))
    return None


def plain(value: Any, levels: int = DEEPEST) -> Any:
    """A JSON value without what cannot be stored: half characters, endless numbers, the deep."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if levels and isinstance(value, list):
        return [plain(x, levels - 1) for x in value]
    if levels and isinstance(value, dict):
        return {whole(str(k)): plain(x, levels - 1) for k, x in value.items()}
    return None
