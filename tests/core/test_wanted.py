"""Recordings of the real Claude Code, and what must be shown in them, second by second.

`traces/wanted/NAME.jsonl` is a recording, `NAME.want` says from when to when which statuses of a
session are right: teams, paused sessions, calls that run on in the background, dialogs of the user,
processes that are killed, and a time without hosts.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from bellboard.core.board import Board
from bellboard.core.published import snapshot
from rig.host.playback import TRACES, Line, play, read_lines

RECORDED = sorted((TRACES / "wanted").glob("*.jsonl"))
MOMENT = 0.02  # seconds between a file and its statement
ONCE = "team_a_mate|team_two|team_a_prompt|team_written_to_again-|session_paused_switched"


def shown(
    changes: list[Line], sid: str, start: float, end: float
) -> list[tuple[float, str | None]]:
    """Return what is shown of a session in that time: for how long, and which status."""
    mine = [(c["t"], c["to"]) for c in changes if c["session_id"] == sid]
    now = next((to for t, to in reversed(mine) if t <= start), None)
    steps = [(start, now), *((t, to) for t, to in mine if start < t < end), (end, None)]
    return [(u - t, to) for (t, to), (u, _) in pairwise(steps)]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_is_shown_is_right_all_the_time(path: Path) -> None:
    changes, _ = play(read_lines(path))
    wrong = []
    for line in path.with_suffix(".want").read_text().splitlines():
        if line.startswith("#"):
            continue
        start, end, sid, allowed = line.split()
        wrong += [
            (line, to, round(lasts, 2))
            for lasts, to in shown(changes, sid, float(start), float(end))
            if lasts > MOMENT and to not in allowed.split(",")
        ]
    assert [] == wrong


@pytest.mark.parametrize(
    "path", [p for p in RECORDED if any(x in p.stem for x in ONCE.split("|"))], ids=lambda p: p.stem
)
def test_a_turn_is_announced_once(path: Path) -> None:
    """The lead of a team is, after its last teammate; a teammate is hidden, and not counted."""
    changes, _ = play(read_lines(path))
    lead = changes[0]["session_id"]
    assert 1 == sum(c["to"] == "completed" for c in changes if c["session_id"] == lead)


def test_no_message_of_a_teammate_is_a_prompt() -> None:
    for path in RECORDED:
        board = Board()
        play((x for x in read_lines(path) if not ends(x)), board)
        for s in snapshot(board.sessions.values()):
            assert "teammate-message" not in s.get("last_prompt", "") + s.get("title", "")


def ends(x: Line) -> bool:
    """Return whether a line ends a session, so that nothing of it would be left to look at."""
    return x.get("hook", {}).get("hook_event_name") == "SessionEnd" or "process" in x


def test_the_teammate_of_a_lead_is_counted_and_hidden() -> None:
    """A teammate runs in a pane of its own: the lead names it from the start of its work."""
    lines = read_lines(TRACES / "wanted" / "team_a_mate_in_a_pane-2.1.332.jsonl")
    board = Board()
    play([x for x in lines if x["t"] < lines[0]["t"] + 8], board)
    lead, mate = sorted(snapshot(board.sessions.values()), key=lambda s: bool(s["hidden"]))
    assert ["researcher@session-74e730fd"] == [a["id"] for a in lead["agents"]]
    assert ("working", True) == (mate["status"], mate["hidden"])
