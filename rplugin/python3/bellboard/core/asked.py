"""What a permission asks, whole, as a digest: a line that is shown of it may be cut, keep a secret,
or leave out what cannot be seen.

Two texts are the same that differ only in blanks and ends of lines, as a terminal wraps them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec
from msgspec import Raw, Struct

from .detail import ODD

UNKNOWN: Final = "?"  # of what could not be read: it is like nothing
_BLANKS: Final = re.compile(r"[ \t\n]+")


class _Input(Struct):
    """What a dialog shows of a tool's input."""

    command: str | None = None
    description: str | None = None
    file_path: str | None = None
    notebook_path: str | None = None
    url: str | None = None


_decode = msgspec.json.Decoder(_Input).decode


def squeezed(text: str) -> str:
    """A text without what a terminal may add to it, or leave out, to wrap it."""
    return _BLANKS.sub("", text)


def digest(text: str) -> str:
    """Equal for texts that are the same, however they are wrapped."""
    return hashlib.sha256(squeezed(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def asked_of(raw: Raw) -> str:
    """The digest of what a tool would do: a command with its description, a file, a URL."""
    try:
        given = _decode(raw)
    except ODD:
        return UNKNOWN
    if given.command is not None:
        return digest(given.command + (given.description or ""))
    named = (given.file_path, given.notebook_path, given.url)
    return next((digest(text) for text in named if text is not None), UNKNOWN)
