"""The word that a mistyped one may have meant. `lua/bellboard/nearest.lua` finds the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST: Final = 3  # words in a message
LEAST: Final = 2  # letters that say something
LONG: Final = 60  # letters: nobody types more by mistake


def meant(typed: str, words: Iterable[str], otherwise: str) -> str:
    """Return the question which of these words was meant, or what to say if none is like it."""
    wanted = typed.lower()
    by_rank: dict[int, list[str]] = {}
    for word in sorted(set(words)):
        by_rank.setdefault(_rank(wanted, word.lower()), []).append(word)
    best = min(by_rank, default=LONG)
    if best >= LONG:
        return otherwise
    *most, last = by_rank[best][:MOST]
    return f"did you mean {', '.join(most)}{' or ' if most else ''}{last}?"


def _rank(typed: str, word: str) -> int:
    """Return 0 for a word that begins so, else its number of mistakes; last comes what holds it."""
    if not LEAST <= len(typed) < LONG:
        return LONG
    if word.startswith(typed):
        return 0
    some = max(1, len(typed) // 3)
    wrong = _mistakes(typed, word[:LONG])
    return wrong if wrong <= some else some + 1 if typed in word else LONG


def _mistakes(a: str, b: str) -> int:
    """Count the letters to add, drop, replace or swap with the next one."""
    before, row = [0], list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, before, row = before, row, [i + 1]
        for j, y in enumerate(b):
            least = min(before[j + 1] + 1, row[j] + 1, before[j] + (x != y))
            if i and j and x == b[j - 1] and y == a[i - 1]:
                least = min(least, last[j - 1] + 1)
            row.append(least)
    return row[-1]
