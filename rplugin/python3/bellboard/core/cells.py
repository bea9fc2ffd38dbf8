"""Text in terminal cells: how many it takes, and as much of it as fits.

This file does no I/O and imports nothing heavy, because `bar.py` needs it.
"""

from __future__ import annotations

from unicodedata import category, east_asian_width


def width(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, cells: int) -> str:
    """Cut a text to this many cells."""
    if width(text) <= cells:
        return text
    return head(text, cells - 1).rstrip() + "…" if cells > 0 else ""


def head(text: str, cells: int) -> str:
    """Return as much of a text as fits into this many cells."""
    for n, c in enumerate(text):
        cells -= _cells(c)
        if cells < 0:
            return text[:n]
    return text


def _cells(c: str) -> int:
    if c.isascii():
        return 1
    if category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(c) in "WF" else 1
