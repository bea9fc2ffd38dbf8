"""Read JSON that is truncated, has duplicate keys or is otherwise odd, as far as possible.

Write values that JSON cannot carry in the same way.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder, encode

from .detail import ODD, whole


def finite(text: str) -> float:
    """Read a float for `msgspec`, whose own way takes a hundred times as long for 1e300."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


decode: Final = Decoder(float_hook=finite).decode

DEEPEST: Final = 8  # levels of a value to keep
LARGEST: Final = 1 << 53  # every JSON reader can represent smaller numbers
LONGEST_NUMBER: Final = 15  # digits; such numbers are smaller than that
Facts = dict[str, Any]
Made = TypeVar("Made")
#: The errors of reading a value of the wrong type.
WRONG_SHAPE: Final = (
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RecursionError,
)

#: What encoding raises: a lone surrogate, an unknown type, a value that contains itself.
UNENCODABLE: Final = (UnicodeEncodeError, TypeError, OverflowError, RecursionError)

_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)


def decimal(text: str) -> int | None:
    """Parse a few ASCII digits; return None for anything else, such as `²` or `-1`."""
    return int(text) if len(text) <= LONGEST_NUMBER and _DIGITS.fullmatch(text) else None


def members(raw: bytes, truncated: bool) -> dict[str, Any]:
    """Return the members of a JSON object; of a truncated one, its leading members."""
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
        raise ValueError("duplicate key")
    return made


_KEY: Final = re.compile(r'[\s,{]*"([A-Za-z_]{1,60})"\s*:\s*')


def _leading(text: str) -> dict[str, Any]:
    """Return the complete members at the start of a truncated object."""
    found: dict[str, Any] = {}
    read = json.JSONDecoder().raw_decode
    at = 0
    with suppress(ValueError):  # the truncated member
        while (key := _KEY.match(text, at)) is not None:
            found[key.group(1)], at = read(text, key.end())
    if not found:
        raise ValueError("cut off before its first member")
    return found


def value_of(raw: Raw | bytes) -> Any:
    """Decode a JSON value, even with lone surrogates in it; return None if it is invalid."""
    try:
        return decode(raw)
    except ODD:
        with suppress(*ODD):
            return storable(json.loads(bytes(raw)))
    return None


def converted(value: object, kind: type[Made]) -> Made | None:
    """Return a decoded value as that type; return None if it is of another one.

    `msgspec` cannot even say so of a text with a lone surrogate.
    """
    try:
        return msgspec.convert(value, kind)
    except ODD:
        return None


def encoded(value: object) -> bytes:
    """Encode a value as JSON, without what JSON cannot carry."""
    try:
        return encode(value)
    except UNENCODABLE:
        return encode(storable(value))


def storable(value: Any, levels: int = DEEPEST) -> Any:
    """Return a value without what cannot be stored: lone surrogates, infinity, deep levels."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if levels and isinstance(value, list | tuple):
        return [storable(x, levels - 1) for x in value]
    if levels and isinstance(value, Mapping):
        return {whole(str(k)): storable(x, levels - 1) for k, x in value.items()}
    return None


# ---------------------------------------------------------------- values


def object_of(value: object) -> Facts:
    """Return an object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a list, or an empty one for any other value."""
    return value if isinstance(value, list) else []


def text_of(given: Facts, key: str) -> str:
    value = given.get(key)
    return whole(value) if isinstance(value, str) else ""


def number_of(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON allows integers of any length
        return None
    return number if math.isfinite(number) else None


def time_of(stamp: object) -> float | None:
    if not isinstance(stamp, str):
        return None
    try:
        when = datetime.fromisoformat(stamp.replace("Z", "+00:00"))
    except ValueError:
        return None
    return when.timestamp() if when.tzinfo else None
