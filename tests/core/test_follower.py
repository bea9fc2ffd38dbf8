"""A feed becomes evidence: times of our clock, and a row for each status."""

from __future__ import annotations

from typing import Any

import pytest

from bellboard.core.feed import FeedChange, Hello, Moved
from bellboard.hosting.far_evidence import Follower
from rig.machines.fleets import a_row


@pytest.mark.parametrize("jump", [-7200, 7200])
def test_a_clock_that_jumps_during_a_connection_is_measured_again(jump: int) -> None:
    """Either clock may jump, forward or back; a message that is only late changes nothing."""
    lines: list[Any] = []
    ahead = 3600.0
    follower = Follower("dev", lines.append, lambda: 1e9)
    follower.take(Hello(now=1e9 + ahead))

    def since(late: float) -> float:
        t = 1e9 + ahead - late
        row = a_row(f"s{len(lines)}", "blocked", since=t, updated=t)
        follower.take(FeedChange(t, "d.1", (row,), (), ()))
        return float(lines[-1]["far"]["row"]["since"])

    assert since(late=0) == 1e9
    assert since(late=20) == 1e9 - 20
    ahead += jump
    assert since(late=0) == 1e9


def test_what_a_session_does_now_is_not_said_of_what_it_did_before() -> None:
    """A line with many transitions also gives each a row, so these are kept small."""
    lines: list[Any] = []
    follower = Follower("dev", lines.append, lambda: 1e9)
    subagents = [{"id": str(n), "description": "x" * 200} for n in range(100)]
    row = a_row("s", "blocked", tool="Bash", detail="make", agents=subagents, wakeups=1)
    moved = tuple(
        Moved(n, 1e9, "s", None, "blocked" if n == 50 else "working") for n in range(1, 51)
    )
    follower.take(FeedChange(1e9, "d.50", (row,), (), moved))
    *earlier, now = (line["far"]["row"] for line in lines)
    assert [x["status"] for x in earlier] == ["working"] * 49
    assert not any({"tool", "detail", "agents", "wakeups"} & x.keys() for x in earlier)
    assert (now["detail"], len(now["agents"])) == ("make", 100)
