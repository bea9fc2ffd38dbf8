"""Cases from many tools, with this project's rulings: each has a trace and what it must show.

`traces/cases.jsonl` came with the specification; `traces/more.jsonl` was found while building, and
`traces/owners.jsonl` by random walks on real CLIs: what belongs to which process, agent and tool.
`traces/late.jsonl` was found by scenes in which our hooks run late, as on a busy machine.
`traces/clis.jsonl` are recordings of CLIs other than Claude Code, shortened, and
`traces/documented.jsonl` payloads as the documentation of other CLIs has them.
`traces/reports.jsonl` are programs that report their status themselves (OSC 7501).
`traces/ranks.jsonl` are the rules of `core/sources.py`: which source is believed, and how long the
machine may lead it.
"""

from __future__ import annotations

import json
import os

import pytest

from rig import warm
from rig.host.playback import TRACES, Line, encoded, play, read_lines

SOURCES = ("cases", "more", "owners", "late", "clis", "documented", "reports", "ranks")
CASES = [case for name in SOURCES for case in read_lines(TRACES / f"{name}.jsonl")]
BY_ID = {case["id"]: case for case in CASES}


def verify(case: Line, changes: list[Line], final: list[Line]) -> None:
    """Check everything that a case demands; a `check` is about its first session.

    What is only noted changes no status: `bellboard explain` names the rule that did.
    """
    assert [] == [c for c in changes if c["rule"] == "noted" and c["from"]]
    listed = {s["session_id"]: s for s in final}
    shown = {sid: listed[sid]["status"] if sid in listed else "absent" for sid in case["want"]}
    assert shown == case["want"]
    first = next(iter(case["want"]))
    mine = [c for c in changes if c["session_id"] == first]
    for check in case["check"]:
        ((kind, wanted),) = check.items()
        if kind == "never":
            assert wanted not in [c["to"] for c in changes]
        elif kind == "transitions":
            assert [[c["from"] or "absent", c["to"] or "absent"] for c in mine] == wanted
        elif kind == "since":
            assert listed[first]["since"] == pytest.approx(wanted, abs=0.01)
        elif kind == "hidden":
            assert listed[wanted]["hidden"]
        elif kind == "detail":  # this and the next in the project's own cases only
            assert listed[first]["detail"] == wanted
        elif kind == "quiet_since":
            assert listed[first]["quiet_since"] == wanted
        elif kind == "markers":
            assert listed[first]["markers"] == wanted
        else:
            pytest.fail(f"no such check: {kind}")


def test_no_case_hides_another_of_the_same_id() -> None:
    assert len(BY_ID) == len(CASES)


@pytest.mark.parametrize("id", BY_ID)
def test_case(id: str) -> None:
    case = BY_ID[id]
    verify(case, *play(case["trace"]))


@pytest.mark.files
@pytest.mark.parametrize("id", ["P26", "X06", "N24"])
def test_bellboard_replay_runs_the_same_code(id: str) -> None:
    case = BY_ID[id]
    trace = b"\n".join(encoded(case["trace"])).decode()
    told = warm.run(["-m", "bellboard", "replay", "--json"], env=os.environ, input=trace)
    *changes, last = (json.loads(x) for x in told.stdout.splitlines())
    played, at_end = play(case["trace"])
    assert changes == [{"v": 1, **change} for change in played]
    assert last["sessions"] == at_end
    verify(case, changes, last["sessions"])
