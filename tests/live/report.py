"""The results of scenes: kept in a file, printed, and held against limits."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

Line = dict[str, Any]  # of a trace

AGREES: Final = 0.999  # share of the time, with all evidence
SLOWEST: Final = 0.5  # seconds until a change is shown
LEFT: Final = 2.0  # seconds that a session is listed after its end


@dataclass(frozen=True)
class Row:
    """The result of a scene."""

    scene: str
    failure: str = ""  # it could not be played, or did not end as expected
    otherwise: str = ""  # how it ended instead, with incomplete evidence
    compared: float = 0.0  # seconds
    wrong: tuple[float, ...] = ()  # stretches
    instead: tuple[str, ...] = ()  # what was shown in them
    delays: tuple[float, ...] = ()  # of each change
    unsteady: float = 0.0  # seconds that were wrong again after being right
    left: float = 0.0  # seconds that a session was listed after its end
    listed: int = 0  # how often `claude agents --json` was compared
    disagreements: tuple[str, ...] = ()  # between it and the session files

    @property
    def agrees(self) -> float:
        """Return the share of the time with the right status."""
        return 1 - sum(self.wrong) / self.compared if self.compared else 1.0

    @property
    def slowest(self) -> float:
        """Return how long the slowest change took."""
        return max(self.delays, default=0.0)

    def __str__(self) -> str:
        wrong = f"  wrong for {', '.join(f'{w:.2f}' for w in self.wrong)}" if self.wrong else ""
        wrong = f"  {'; '.join(self.instead)}" if self.instead else wrong
        ended = f"  ended as {self.otherwise}" if self.otherwise else ""
        failed = f"\n  {self.failure}" if self.failure else ""
        failed += "".join(f"\n  {each}" for each in self.disagreements)
        return (
            f"{self.scene:32} {self.agrees:7.2%} of {self.compared:5.1f} s  "
            f"slowest of {len(self.delays):2} {self.slowest:.2f} s  gone {self.left:.2f} s"
            f"{wrong}{ended}{failed}"
        )

    @property
    def cell(self) -> str:
        """Return it in a few characters."""
        return f"{100 * self.agrees:.4g} % · {self.slowest:.2f} s"


class Kept:
    """The rows so far, by the way in which they were played; the last one of a scene counts.

    In a file of JSON lines, if one is named: a long run can be stopped and continued.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.ways: dict[str, dict[str, Row]] = {}
        for text in path.read_text().splitlines() if path and path.exists() else ():
            line = json.loads(text)
            way = line.pop("way")
            row = Row(**{k: tuple(v) if isinstance(v, list) else v for k, v in line.items()})
            self.ways.setdefault(way, {})[row.scene] = row

    def add(self, way: str, row: Row) -> None:
        """Add a row."""
        self.ways.setdefault(way, {})[row.scene] = row
        if self._path:
            with self._path.open("a") as f:
                f.write(json.dumps({"way": way, **asdict(row)}) + "\n")

    def of(self, way: str) -> dict[str, Row]:
        """Return the rows of a way, by scene."""
        return self.ways.get(way, {})

    def has(self, way: str, scene: str) -> bool:
        """Return whether a scene was played without a failure."""
        row = self.of(way).get(scene)
        return row is not None and not row.failure


def figures(name: str, seconds: Sequence[float]) -> str:
    """Return the median of some times, their range, and how many they are."""
    span = f"{min(seconds):.3f} to {max(seconds):.3f} s"
    return f"{name}: p50 {statistics.median(seconds):.3f} s, {span}, of {len(seconds)}"


def missed(rows: Collection[Row], agrees: float = AGREES) -> list[str]:
    """Return the limits that were missed; `agrees`: the share of the time that must be right."""
    bad = [f"{row.scene}: {row.failure.splitlines()[0]}" for row in rows if row.failure]
    bad += [
        f"{row.scene}: a change took {row.slowest:.2f} s" for row in rows if row.slowest > SLOWEST
    ]
    bad += [f"{row.scene}: left for {row.left:.1f} s" for row in rows if row.left > LEFT]
    if (share := Total(rows).agrees) < agrees:
        bad.append(f"agrees {share:.2%} of the time, not {100 * agrees:.4g}%")
    return bad


class Total:
    """The totals of all rows."""

    def __init__(self, rows: Collection[Row]) -> None:
        self.scenes = len(rows)
        self.compared = sum(row.compared for row in rows)
        wrong = sum(sum(row.wrong) for row in rows)
        self.agrees = 1 - wrong / self.compared if self.compared else 1.0
        self.changes = sum(len(row.delays) for row in rows)
        self.slowest = max((row.slowest for row in rows), default=0.0)
        self.left = max((row.left for row in rows), default=0.0)
        self.listed = sum(row.listed for row in rows)
        self.disagreements = sum(len(row.disagreements) for row in rows)

    def __str__(self) -> str:
        third = (
            f"; `claude agents --json` said the same {self.listed - self.disagreements} of "
            f"{self.listed} times"
            if self.listed
            else ""
        )
        return (
            f"{self.scenes} scenes, {self.agrees:.2%} of {self.compared:.0f} s, "
            f"{self.changes} changes, the slowest after {self.slowest:.2f} s, "
            f"gone after {self.left:.2f} s{third}"
        )
