"""A change of a file of hooks, planned and not yet written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .hooktext import Before

CONTEXT: Final = 3  # lines around a change in a diff


@dataclass(frozen=True)
class Change:
    """The old and the new content of a file."""

    path: Path
    old: bytes | None  # None: no such file
    new: bytes | None
    events: tuple[str, ...]  # whose hooks of ours the new content has
    before: Before
    is_altered: bool = False  # a file of our own that is to be removed has more than we wrote

    @property
    def is_none(self) -> bool:
        """Return whether there is nothing to do."""
        return self.old == self.new

    @property
    def needs_backup(self) -> bool:
        """Return whether the old content is worth keeping; otherwise all of it was ours."""
        return self.old is not None and (self.new is not None or self.is_altered)

    def diff(self) -> str:
        """Return the change in the format of `diff -u`."""
        return _diff(self.old or b"", self.new or b"", str(self.path))


def _diff(old: bytes, new: bytes, name: str) -> str:
    """Compare only the lines from the first difference to the last: a file may be large."""
    before, after = (_lines(raw) for raw in (old, new))
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    skipped, kept = max(0, head - CONTEXT), max(0, tail - CONTEXT)
    lines = difflib.unified_diff(
        before[skipped : len(before) - kept],
        after[skipped : len(after) - kept],
        name,
        name,
        n=CONTEXT,
    )
    return "".join(_moved(line, skipped) for line in lines)


def _lines(raw: bytes) -> list[str]:
    text = raw.decode("utf-8", "replace")
    return [line.rstrip("\r\n") + "\n" for line in text.splitlines(keepends=True)]


def _common(one: Iterable[str], other: Iterable[str]) -> int:
    count = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        count += 1
    return count


def _moved(line: str, by: int) -> str:
    if not line.startswith("@@") or not by:
        return line
    return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number.group()) + by), line)
