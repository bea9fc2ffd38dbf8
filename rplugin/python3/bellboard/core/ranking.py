"""The order of the repositories on the board: the busiest first.

Activity fades with time, but at the same rate for all.  So the order changes only when a session
does, and need not be computed or published in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log2
from typing import Final

from .published import Published

WEIGHT: Final = {"working": 100.0, "idle": 1.0}  # others have WAITING_WEIGHT
WAITING_WEIGHT: Final = 50.0
QUESTION_BONUS: Final = 30.0
HALF_LIFE: Final = 1800.0  # seconds in which activity loses half of its weight
LEAST: Final = 1e-300  # activity after weeks of silence; its logarithm is finite


def group_of(p: Published) -> str:
    """Return the group of a session on the board: its repository, or its project."""
    return str(p.get("repository") or p.get("project") or "")


def activity(members: Iterable[Published], now: float) -> float:
    """Return how busy a group is: what its sessions do, weighted by how recent it is."""
    return float(
        sum(
            (
                WEIGHT.get(p["status"], WAITING_WEIGHT)
                + (QUESTION_BONUS if p["status"] == "blocked" else 0.0)
            )
            * 0.5 ** (max(0.0, now - p["updated"]) / HALF_LIFE)
            for p in members
        )
    )


class Ranking:
    """Keeps the groups in order as sessions change."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self._members: dict[str, dict[str, Published]] = {}
        self._group: dict[str, str] = {}
        self._rank: dict[str, tuple[float, str]] = {}

    def change(self, sessions: Mapping[str, Published | None], now: float) -> bool:
        """Update sessions (None: gone); return whether the order changed."""
        touched = set()
        for sid, p in sessions.items():
            touched.add(self._leave(sid))
            if p is not None and not p["hidden"]:
                group = self._group[sid] = group_of(p)
                self._members.setdefault(group, {})[sid] = p
                touched.add(group)
        for group in [group for group in touched if group is not None]:
            if members := self._members.get(group):
                heat = log2(max(activity(members.values(), now), LEAST)) + now / HALF_LIFE
                self._rank[group] = (-round(heat, 6), group)
            else:
                self._members.pop(group, None)
                self._rank.pop(group, None)
        before, self.order = self.order, sorted(self._rank, key=self._rank.__getitem__)
        return before != self.order

    def _leave(self, sid: str) -> str | None:
        group = self._group.pop(sid, None)
        if group is not None:
            del self._members[group][sid]
        return group
