"""The outcome as it was: a compressed text file for each kind, and how another differs from it."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Final

KEPT: Final = Path(__file__).parent / "outcome"
DAY: Final = "day"  # the kind that holds the digest of the trace itself
MOST: Final = 8  # differences to show of each kind
AROUND: Final = 40  # characters to show before and after what differs
LONGEST: Final = 200

Outcome = dict[str, list[str]]


def read() -> Outcome:
    files = sorted(KEPT.glob("*.txt.gz"))
    return {
        path.name.partition(".")[0]: gzip.decompress(path.read_bytes()).decode().splitlines()
        for path in files
    }


def write(outcome: Outcome) -> int:
    """Keep this outcome instead; return its size in bytes."""
    KEPT.mkdir(exist_ok=True)
    for path in KEPT.glob("*.txt.gz"):
        path.unlink()
    for kind, lines in outcome.items():
        data = "".join(f"{line}\n" for line in lines).encode()
        (KEPT / f"{kind}.txt.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    return sum(path.stat().st_size for path in KEPT.glob("*.txt.gz"))


def differences(before: Outcome, after: Outcome) -> list[str]:
    """Return what differs, for a person: the kind, the time, the session, before → after."""
    found: list[str] = []
    for kind in [*after, *(kind for kind in before if kind not in after)]:
        old, new = before.get(kind, []), after.get(kind, [])
        if old != new:
            told = [*_differing(old, new)]
            found.append(f"{kind}: {len(told)} of {len(old)} lines differ")
            found += [f"    {line}" for line in told[:MOST]]
            found += [f"    … and {len(told) - MOST} more"] if len(told) > MOST else []
    return found


def _differing(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield lines that are not in both; those of the same time and session are pairs."""
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    if not gone and not come:
        at = next(n for n, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
        yield f"only the order, from line {at + 1} on: {old[at][:LONGEST]} → {new[at][:LONGEST]}"
    pairs: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    for side, lines, left in ((0, old, gone), (1, new, come)):
        for line in lines:
            if left[line] > 0:
                left[line] -= 1
                pairs.setdefault(_about(line), ([], []))[side].append(line)
    for _, (was, now) in sorted(pairs.items()):
        for a, b in zip_longest(was, now):
            yield (
                f"- {a[:LONGEST]}"
                if b is None
                else f"+ {b[:LONGEST]}"
                if a is None
                else _change(a, b)
            )


def _about(line: str) -> tuple[str, ...]:
    """Return how a line begins: with the time and the session."""
    return tuple(line.split(None, 2)[:2])


def _change(a: str, b: str) -> str:
    """Return the part of a line that differs, with the time and session of the line."""
    start = next(n for n, (x, y) in enumerate(zip_longest(a, b)) if x != y)
    while start and a[start - 1].isalnum():  # whole words
        start -= 1
    most = min(len(a), len(b)) - start
    same = (n for n in range(most) if a[-1 - n] != b[-1 - n])
    end = next(same, most)
    while end and a[-end].isalnum():
        end -= 1
    head = " ".join(_about(a))
    begin = max(start - AROUND, 0)
    lead = a[begin:start] if begin == 0 else f"{head} …{a[begin:start]}"
    tail = a[len(a) - end :][:AROUND]
    was, now = a[start : len(a) - end][:LONGEST], b[start : len(b) - end][:LONGEST]
    return f"{lead}⟦{was} → {now}⟧{tail}"
