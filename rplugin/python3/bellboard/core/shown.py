"""The digest of what a dialog shows of a request, to find the request again on a screen.

It covers the whole text, because the line kept of it may be truncated or redacted.  Texts that
differ only in blanks and line breaks, as a terminal wraps them, have the same digest.  What binds
an answer is another digest, of all that is asked: see request.py.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import Raw, Struct

from .detail import ODD

UNKNOWN: Final = "?"  # for input that cannot be read; never equals a digest
_BLANKS: Final = re.compile(r"[ \t\n]+")


class _Input(Struct):
    """The parts of a tool's input that a dialog shows."""

    command: str | None = None
    description: str | None = None
    file_path: str | None = None
    notebook_path: str | None = None
    url: str | None = None


_decode = msgspec.json.Decoder(_Input).decode


def squeezed(text: str) -> str:
    """Remove the blanks that a terminal may add or drop when it wraps a text."""
    return _BLANKS.sub("", text)


def shown_digest(text: str) -> str:
    """Return a hash that is equal for equal texts, however they are wrapped."""
    import hashlib  # loads OpenSSL, and few commands need it

    return hashlib.sha256(squeezed(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def shown_digest_of(raw: Raw) -> str:
    """Return the digest of what a tool would do: a command with its description, a file, a URL."""
    try:
        given = _decode(raw)
    except ODD:
        return UNKNOWN
    if given.command is not None:
        return shown_digest(given.command + (given.description or ""))
    named = (given.file_path, given.notebook_path, given.url)
    return next((shown_digest(text) for text in named if text is not None), UNKNOWN)
