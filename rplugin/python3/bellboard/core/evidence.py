"""What a witness reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .session import Session


class Evidence(NamedTuple):
    """A trace line, and a key that is the same for every host that finds it.

    A line with a key that was folded lately is not folded again: the key of a value that may come
    back says what it replaces, as `learned` does.
    """

    line: Mapping[str, object]
    key: str


def learned(now: float, s: Session, facts: Mapping[str, object], of: str = "") -> Evidence:
    """Report facts about a session; `of`: the directory that they are about."""
    given = {"session_id": s.session_id, **facts}
    line = {"t": now, "facts": given} | ({"cwd": of} if of else {})
    return Evidence(line, f"facts {given} {of} after {s.learned}")
