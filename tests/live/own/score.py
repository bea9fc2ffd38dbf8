"""How often each source of a status is right, in scenes with own reports of programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from live.account import (
    ANY,
    BLOCKED,
    Account,
    Line,
    Stretch,
    Wrong,
    delay,
    most_urgent,
    of_process,
    wrongs,
)
from live.own import ways

BY_SESSION: Final = ("hooks", "newer hooks", "everything")


@dataclass
class Score:
    """The figures of one way."""

    compared: float = 0.0  # seconds
    asked: float = 0.0  # seconds with a question
    delays: list[float] = field(default_factory=list)
    wrong: list[tuple[str, Wrong]] = field(default_factory=list)  # with its scene

    def add(self, scene: str, stood: Iterable[Stretch], changes: Sequence[Line]) -> None:
        """Add what was shown in a scene, beside what stood in its session files."""
        for whole in stood:
            x = whole.compared
            if x.end > x.start:
                self.compared += x.end - x.start
                self.asked += (x.end - x.start) * (x.allowed == BLOCKED)
                self.delays.append(delay(whole, changes))
                self.wrong += [(scene, wrong) for wrong in wrongs(x, changes)]

    @property
    def agrees(self) -> float:
        """Return the share of the time with the right status."""
        return 1 - sum(x.seconds for _, x in self.wrong) / self.compared if self.compared else 1.0

    @property
    def slowest(self) -> float:
        """Return how long the slowest change took."""
        return max(self.delays, default=0.0)

    @property
    def missed(self) -> float:
        """Return the seconds with a question that was not shown."""
        return sum(x.seconds for _, x in self.wrong if x.stretch.allowed == BLOCKED)

    @property
    def false(self) -> float:
        """Return the seconds in which a question was shown that was not open."""
        return sum(x.seconds for _, x in self.wrong if x.shown == "blocked")


def read(path: Path) -> list[Line]:
    """Return the lines of a kept trace."""
    with path.open() as lines:
        return [json.loads(line) for line in lines]


def speaks_since(trace: Sequence[Line]) -> dict[int, float]:
    """Return the time of the first report of each process."""
    since: dict[int, float] = {}
    for x in trace:
        if x.get("osc7501", {}).get("body", "").startswith("state="):
            since.setdefault(x["osc7501"]["pid"], x["t"])
    return since


def of_sessions(trace: Sequence[Line]) -> list[Stretch]:
    """Return the stretches of sessions from the first report of one of their processes on."""
    since, found = speaks_since(trace), Account(trace).stretches
    first: dict[str, float] = {}
    for x in found:
        if x.pid in since:
            first[x.session_id] = min(since[x.pid], first.get(x.session_id, x.end))
    return clipped((x, first.get(x.session_id)) for x in most_urgent(found))


def of_processes(trace: Sequence[Line]) -> list[Stretch]:
    """Return the stretches of processes, from the first report of each on."""
    return [
        x
        for pid, t in speaks_since(trace).items()
        for x in clipped((each, t) for each in most_urgent(of_process(trace, pid)))
    ]


def clipped(found: Iterable[tuple[Stretch, float | None]]) -> list[Stretch]:
    """Return what is known of each stretch from a time on; nothing without a time."""
    return [
        replace(x, start=max(x.start, t))
        for x, t in found
        if t is not None and x.end > t and x.allowed != ANY
    ]


def scored(files: Iterable[Path]) -> dict[str, Score]:
    """Return the score of each way."""
    scores = {name: Score() for name in ways.WAYS}
    for path in files:
        trace = read(path)
        for name, score in scores.items():
            changes = list(ways.WAYS[name](trace))
            of = of_sessions if name in BY_SESSION else of_processes
            score.add(path.stem, of(trace), changes)
    return scores
