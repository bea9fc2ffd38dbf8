"""The order of the repositories on a board: the busiest first.

How busy one is fades with time, but for all of them alike: their order changes with their
sessions only, so it is worked out where those change, and nothing has to be told meanwhile.

Rules of this file: it does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log2
from typing import Final

from .published import Published

WEIGHT: Final = {"working": 100.0, "idle": 1.0}  # the rest wait for somebody
WAITING_WEIGHT: Final = 50.0
QUESTION_BONUS: Final = 30.0
HALF_LIFE: Final = 1800.0  # seconds in which activity loses half of its weight
LEAST: Final = 1e-300  # of one that was last heard of weeks ago; its logarithm is still a number


def group_of(p: Published) -> str:
    """Where a session stands on a board: its repository, else its project."""
    return str(p.get("repository") or p.get("project") or "")


def activity(members: Iterable[Published], now: float) -> float:
    """How busy a group is: what its sessions do, fading with the time since they last did."""
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
    """The groups in order, kept up with the sessions that change."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self._members: dict[str, dict[str, Published]] = {}
        self._group: dict[str, str] = {}
        self._rank: dict[str, tuple[float, str]] = {}

    def change(self, sessions: Mapping[str, Published | None], now: float) -> bool:
        """Take in what changed, None for what is gone; whether the order is another one now."""
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
