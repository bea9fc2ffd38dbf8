"""Keep the results of scenes in a file, so that a long run can be stopped and continued."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from live.account import Line, Stretch, delay, unsteady, wrong_times

GONE = 5.0  # seconds; longer than the limit, so that a miss is measured


@dataclass(frozen=True)
class Row:
    """The result of a scene."""

    scene: str
    failure: str = ""  # it could not be played, or did not end as expected
    otherwise: str = ""  # how it ended instead, with incomplete evidence
    compared: float = 0.0  # seconds
    wrong: tuple[float, ...] = ()  # stretches
    delays: tuple[float, ...] = ()  # of each change
    unsteady: float = 0.0  # seconds that were wrong again after being right
    left: float = 0.0  # seconds that a session was listed after its end
    listed: int = 0  # how often `claude agents --json` was compared
    disagreements: tuple[str, ...] = ()  # between it and the session files

    @property
    def agrees(self) -> float:
        """Return the share of the time with the right status."""
        return 1 - sum(self.wrong) / self.compared if self.compared else 1.0


def judged(
    scene: str, stood: Sequence[Stretch], changes: list[Line], ended: dict[int, float]
) -> Row:
    """Return the figures of a played scene; `stood`: what its CLIs said about themselves."""
    compared = [x.compared for x in stood if x.compared.end > x.compared.start]
    gone = max(ended.values(), default=changes[-1]["t"] if changes else 0.0)
    last = {c["session_id"]: c for c in changes}.values()
    return Row(
        scene,
        compared=sum(x.end - x.start for x in compared),
        wrong=tuple(w for x in compared for w in wrong_times(x, changes)),
        delays=tuple(delay(x, changes) for x in stood if x.compared.end > x.compared.start),
        unsteady=sum(unsteady(x, changes) for x in compared),
        left=max([0.0, *(c["t"] - gone if c["to"] is None else GONE for c in last)]),
    )


class Kept:
    """The rows so far, in a file of JSON lines; the last one of a scene counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ways: dict[str, dict[str, Row]] = {}
        for text in path.read_text().splitlines() if path.exists() else ():
            line = json.loads(text)
            way = line.pop("way")
            row = Row(**{k: tuple(v) if isinstance(v, list) else v for k, v in line.items()})
            self.ways.setdefault(way, {})[row.scene] = row

    def add(self, way: str, row: Row) -> None:
        """Add a row."""
        self.ways.setdefault(way, {})[row.scene] = row
        with self._path.open("a") as f:
            f.write(json.dumps({"way": way, **asdict(row)}) + "\n")

    def has(self, way: str, scene: str) -> bool:
        """Return whether a scene was played without a failure."""
        row = self.ways.get(way, {}).get(scene)
        return row is not None and not row.failure
