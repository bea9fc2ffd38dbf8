"""Play traces through the core: what would be published, and when."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bellboard.agents import traces
from bellboard.core.board import Board
from rig import DATA

TRACES = DATA / "traces"
Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    with path.open(encoding="utf-8") as f:
        return [json.loads(text) for text in f]


def encoded(lines: Iterable[Line]) -> list[bytes]:
    return [json.dumps(x).encode() for x in lines]


def play(lines: Iterable[Line], board: Board | None = None) -> tuple[list[Line], list[Line]]:
    """Return the published changes of status, and the sessions listed at the end."""
    board = board or Board()
    changes = [
        traces.transition_line(change)
        for folded in traces.replay(encoded(lines), board)
        for change in folded.changes
    ]
    return changes, traces.final_line(board)["sessions"]


def shown(agent: str, *told: Line) -> list[str | None]:
    """Return the statuses that are shown while these payloads of hooks arrive, a second apart."""
    origin = {"agent": agent, "pid": 11}
    lines: list[Line] = [
        {"t": 1.8e9 + n, "hook": payload, "origin": origin} for n, payload in enumerate(told)
    ]
    return [c["to"] for c in play([*lines, {"t": 1.8e9 + len(told), "tick": {}}])[0]]


def late(lines: Iterable[Line], kind: str, seconds: float) -> list[Line]:
    """Return the lines as a busy host would read them: those of one kind later by that much."""
    moved = [{**x, "t": x["t"] + seconds} if kind in x else x for x in lines]
    return sorted(moved, key=lambda x: x["t"])
