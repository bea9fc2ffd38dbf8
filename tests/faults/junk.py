"""Random unexpected values."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

MEGABYTE = 1 << 20
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**30, -(10**30), 10**400),
    *(0.5, -0.0, 1e308, 5e-324, math.nan, math.inf, -math.inf),
)
TEXTS = (
    *("", " ", "\0", "a\0b", "²", "٣", "½", "-1", "1e9", "0x10", "null", "true", "NaN"),
    *("\ud800", "a\udfffb", "\u202e\u2066", "\x1b]0;x\x07", "\x9b31m", "\r\n", "\ufeff", "é" * 300),
    *("%{v:lua.os.exit()}", "#(touch /tmp/x)", "$(id)", "`id`", "'; drop table sessions; --"),
    *(
        "/",
        "//",
        "..",
        "../" * 60,
        "~",
        "-rf",
        "/dev/zero",
        "/dev/random",
        "/dev/tty",
        "/proc/self",
    ),
    *("/proc/self/root" * 20, "/" + "x" * 255, "/" + "x" * 269, "/x" * 3000, "/a\0b", "/root/.ssh"),
    *(
        "localhost:1",
        "127.0.0.1:9",
        "/tmp/x/sock,1,0",
        "/tmp/nvim.sock",
        "%0",
        "%²",
        "%99999999999",
    ),
    *("x" * 201, "x" * 5000, "\U0001f600" * 100, "a" * 100_000),
)


def text(random: Random) -> str:
    """Return a text, sometimes of a megabyte."""
    if random.random() < 0.01:
        return random.choice(["x", "\\", '"', "\0", "\ud800"]) * MEGABYTE
    if random.random() < 0.2:
        return "".join(chr(random.randrange(0x110000)) for _ in range(random.randrange(1, 30)))
    return random.choice(TEXTS)


def value(random: Random, deep: int = 2) -> Any:
    """Return any JSON value, and some that JSON does not have."""
    kind = random.randrange(8 if deep else 5)
    if kind < 2:
        return text(random)
    if kind < 4:
        return random.choice(NUMBERS)
    if kind == 4:
        return random.choice([None, True, False])
    if kind == 5:
        return [value(random, deep - 1) for _ in range(random.randrange(4))]
    if kind == 6:
        return {text(random)[:300]: value(random, deep - 1) for _ in range(random.randrange(4))}
    nested: Any = 0
    for _ in range(random.choice([10, 400, 900])):
        nested = [nested] if random.random() < 0.5 else {"x": nested}
    return nested


def changed(random: Random, given: Any) -> Any:
    """Replace, add or remove one to three values, at any depth."""
    made = json.loads(json.dumps(given))
    for _ in range(random.randrange(1, 4)):
        made = _once(random, made)
    return made


def _once(random: Random, given: Any) -> Any:
    if isinstance(given, dict) and given and random.random() < 0.9:
        key = random.choice(list(given))
        how = random.random()
        if how < 0.1:
            del given[key]
        elif how < 0.2:
            given[text(random)[:300]] = value(random)
        else:
            given[key] = _once(random, given[key])
        return given
    if isinstance(given, list) and given and random.random() < 0.8:
        where = random.randrange(len(given))
        given[where] = _once(random, given[where])
        return given
    return value(random)


def encoded(random: Random, given: Any) -> bytes:
    """Return JSON, sometimes truncated, doubled, not UTF-8, or far too deep."""
    raw = json.dumps(given, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    how = random.randrange(24)
    if how == 0:
        return raw[: random.randrange(len(raw) + 1)]
    if how == 1:
        return raw + raw
    if how == 2:
        where = random.randrange(len(raw) + 1)
        return raw[:where] + random.randbytes(4) + raw[where:]
    if how == 3:
        return b"\xef\xbb\xbf" + raw
    if how == 4:
        return raw[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    if how == 5:
        return random.choice(
            [b"", b"\0" * 100, b"[" * 60_000, b"{" * 60_000, random.randbytes(300)]
        )
    return raw


def brief(given: object, longest: int = 160) -> str:
    """Return a value in short, for the name of a case."""
    said = given.decode("latin-1") if isinstance(given, bytes) else f"{given!r}"
    said = ascii(said)[1:-1]
    return said if len(said) <= longest else f"{said[:longest]}… ({len(said)} characters)"
