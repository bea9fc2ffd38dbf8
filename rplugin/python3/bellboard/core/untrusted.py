"""Input from outside: decoded as far as it is sound, within bounds."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder, encode
from msgspec.structs import asdict, replace

from .events import Event
from .text import LONGEST_PATH, ODD, whole


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
S = TypeVar("S", bound=Struct)
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


def decoder_of(kind: type[Made]) -> Callable[[bytes], Made | None]:
    """Return a decoder that accepts exactly this form, and else returns None."""
    decode = Decoder(kind, float_hook=finite).decode

    def decoded(payload: bytes) -> Made | None:
        try:
            return decode(payload)
        except ODD:
            return None

    return decoded


def leniently(kind: type[S], given: object) -> S:
    """Make a Struct of the values that have the right type; others are as if they were missing.

    What is needed and missing is empty.
    """
    types, empty = _form_of(kind)
    found = {**empty}
    for name, value in object_of(given).items():
        if name in types and (fitting := _fitting(value, types[name])) is not None:
            found[name] = fitting
    return kind(**found)


@lru_cache
def _form_of(kind: type[Struct]) -> tuple[Facts, Facts]:
    """Return the types of the fields, and an empty value of those that are needed."""
    fields = msgspec.structs.fields(kind)
    needed = (f for f in fields if f.required and not issubclass(f.type, Struct))
    return {f.name: f.type for f in fields}, {f.name: f.type() for f in needed}


def _fitting(value: object, kind: Any) -> Any:
    """Return a value as that type; None if it is of another one."""
    if isinstance(value, str):
        value = whole(value)
    if type(value) is kind or value is None:
        return value
    if kind is Raw:
        return Raw(json.dumps(value, separators=(",", ":")).encode())  # also lone surrogates
    if isinstance(kind, type) and issubclass(kind, Struct):
        return leniently(kind, value)
    return converted(value, kind)


def encoded(value: object) -> bytes:
    """Encode a value as JSON; parts that JSON cannot carry are left out."""
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


# ---------------------------------------------------------------- sizes


LONGEST_TEXT: Final = 512  # characters of a name, an id, a line
PATHS: Final = frozenset({"cwd", "transcript", "env"})
LATEST: Final = 1e11  # seconds: three thousand years
MOST: Final = 100  # values in one collection
MANY: Final = {"ids": 4000}  # values in collections with these names
DEEPEST_COLLECTION: Final = 4  # levels of collections


def bounded(e: Event) -> Event:
    """Return an event with every value limited so that it can be stored."""
    return _fields(e, LONGEST_TEXT, DEEPEST_COLLECTION)


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
