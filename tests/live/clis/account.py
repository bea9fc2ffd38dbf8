"""The words of screens, compared with the shown status."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

Mark = tuple[float, str]

SLACK: Final = 0.35  # seconds around each change that are not compared
FORETOLD: Final = 0.3  # seconds after its hook in which a CLI draws what that says
ACTIVE: Final = frozenset({"working", "blocked"})


@dataclass(frozen=True)
class Row:
    """The result of a scene."""

    scene: str
    failure: str = ""  # it could not be played
    compared: float = 0.0  # seconds
    wrong: tuple[str, ...] = ()  # what was shown instead, and for how long
    off: float = 0.0  # seconds with a wrong status
    delays: tuple[float, ...] = ()  # of each change
    left: float = 0.0  # seconds that a session was listed after its end
    shown: tuple[str | None, ...] = ()  # the statuses, by their first time

    @property
    def agrees(self) -> float:
        """Return the share of the time with the right status."""
        return 1 - self.off / self.compared if self.compared else 1.0


def fits(said: str, shown: frozenset[str], is_fresh: bool) -> bool:
    """Return whether a screen that says this has those statuses on the board.

    None may be busier than the screen; a terminal without a prompt yet need not be listed.
    """
    if said == "idle" and not shown:
        return is_fresh
    if said not in ACTIVE and shown & ACTIVE:
        return False
    return said in shown and not (said == "working" and "blocked" in shown)


def judged(
    scene: str,
    terminals: Mapping[str, Sequence[Mark]],
    changes: Sequence[Mapping[str, Any]],
    places: Mapping[str, Collection[str]],
    slowness: float,
) -> Row:
    """Return the figures of a scene on a machine that is so many times slower than an idle one.

    `places`: the terminals of a session, if known.
    """
    compared = off = left = 0.0
    wrong: list[str] = []
    delays: list[float] = []
    for pane, marks in terminals.items():
        mine = [c for c in changes if pane in (places.get(c["session_id"]) or (pane,))]
        prompted = next((t for t, said in marks if said != "idle"), float("inf"))
        for (start, said), (end, then) in pairwise(marks):
            if said == "leaving" or end - start <= 2 * SLACK:
                continue
            is_fresh = start < prompted
            compared += end - start - 2 * SLACK
            for a, b, shown in _steps(mine, start + SLACK, end - SLACK):
                is_told = end - a < FORETOLD * slowness and fits(then, shown, False)
                if not (is_told or fits(said, shown, is_fresh)):
                    off += b - a
                    wrong.append(f"{said}: {'+'.join(sorted(shown)) or 'nothing'} {b - a:.2f} s")
            at = (a for a, _, shown in _steps(mine, start, end) if fits(said, shown, is_fresh))
            delays.append(next(at, end) - start)
        if marks and marks[-1][1] == "ended":
            end = marks[-1][0]
            left = max([left, *(gone - end for gone in _gone(mine, end))])
    shown = tuple(dict.fromkeys(c["to"] for c in changes))
    return Row(scene, "", compared, tuple(wrong), off, tuple(delays), left, shown)


def _gone(changes: Sequence[Mapping[str, Any]], end: float) -> Iterator[float]:
    """Yield when each session that was listed at the end of its terminal was no longer listed.

    One that is resumed in another terminal is listed again later.
    """
    for sid in {c["session_id"] for c in changes if c["t"] <= end}:
        its = [c for c in changes if c["session_id"] == sid]
        if [c["to"] for c in its if c["t"] <= end][-1] is not None:
            yield next((c["t"] for c in its if c["t"] > end and c["to"] is None), float("inf"))


def _steps(
    changes: Sequence[Mapping[str, Any]], start: float, end: float
) -> Iterator[tuple[float, float, frozenset[str]]]:
    """Yield what was shown from when to when."""
    cuts = sorted({start, end, *(c["t"] for c in changes if start < c["t"] < end)})
    for a, b in pairwise(cuts):
        now = {c["session_id"]: c["to"] for c in changes if c["t"] <= a}
        yield a, b, frozenset(status for status in now.values() if status)
