"""Comments in JSON: where they are, and the text without them, with every position unchanged.

This file does no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

_PIECE: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"?|(?P<comment>//[^\n]*?(?=\r?(?:\n|\Z))|/\*.*?\*/)|/\*.*', re.S
)
_INK: Final = re.compile(r"[^\r\n]")
_LINE_END: Final = re.compile(r"[ \t]*(?=[\r\n]|\Z)")


class Source(NamedTuple):
    """A text, and the same with blanks instead of its comments."""

    raw: str
    plain: str
    spans: tuple[tuple[int, int], ...] = ()  # of the comments

    @property
    def comments(self) -> list[str]:
        """Return the comments, in order."""
        return [self.raw[start:end] for start, end in self.spans]

    def outside(self, start: int, end: int, inner: Collection[tuple[int, int]]) -> list[str]:
        """Return the comments that begin between two positions, and in none of the inner spans."""
        return [
            self.raw[at:to]
            for at, to in self.between(start, end)
            if not any(first <= at < last for first, last in inner)
        ]

    def between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the comments that begin between two positions."""
        return [span for span in self.spans if start <= span[0] < end]

    def after_remark(self, at: int) -> int:
        """Return the end of the comment that closes the line at a position, or the position."""
        for start, end in self.spans:
            if start >= at:
                is_next = not self.plain[at:start].strip(" \t") and "\n" not in self.raw[start:end]
                return end if is_next and _LINE_END.match(self.plain, end) else at
        return at


def source_of(text: str, allowed: bool) -> Source:
    """Return a text with its comments set apart, if they are allowed in it."""
    if not allowed:
        return Source(text, text)
    spans = tuple(found.span() for found in _PIECE.finditer(text) if found["comment"])
    return Source(text, _PIECE.sub(_blanked, text), spans)


def _blanked(piece: re.Match[str]) -> str:
    return _INK.sub(" ", piece[0]) if piece["comment"] else piece[0]
