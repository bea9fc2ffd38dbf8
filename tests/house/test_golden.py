"""A golden day: whatever is restructured, the same hour is published in the same words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import golden
from golden import outcome, program
from golden.day import day
from golden.player import decoded
from rig import warm

HERE = Path(__file__).parent
ELSEWHERE = {"TZ": "Asia/Kathmandu", "HOME": "/nowhere", "COLUMNS": "33", "LC_ALL": "C"}


@pytest.mark.files
def test_the_golden_day_is_published_as_it_was() -> None:
    """For an intended difference: `python -m golden --write`, and a reason in differences.md."""
    told = outcome.differences(outcome.read(), golden.play())
    assert not told, "\n".join(told)


@pytest.mark.files
def test_the_golden_day_is_the_same_everywhere() -> None:
    """The order of hashes, the time zone, the language and the home do not matter."""
    done = subprocess.run(
        [sys.executable, "-m", "golden"],
        cwd=HERE,
        env={**os.environ, **ELSEWHERE, "PYTHONHASHSEED": "7", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.files
def test_bellboard_replay_prints_the_golden_day() -> None:
    """From the decoded events, as they are in the log, with the program that users run."""
    events = [program.line_of(event) for _, some in decoded(day()) for event in some]
    trace = "\n".join(map(json.dumps, events))
    told = warm.run(["-m", "bellboard", "replay", "--json"], env=os.environ, input=trace)
    *changes, _ = told.stdout.splitlines()
    kept = ["{" + line.partition("{")[2] for line in outcome.read()["transitions"]]
    assert [{"v": 1, **json.loads(line)} for line in kept] == [*map(json.loads, changes)]


@pytest.mark.core
def test_a_difference_names_time_session_and_what_changed() -> None:
    before = {"pushes": ['00:01.000 s1 {"text": "a"}', "00:02.000 s2 gone", "same"]}
    after = {"pushes": ['00:01.000 s1 {"text": "b"}', "same", "00:03.000 s3 new"]}
    assert outcome.differences(before, before) == []
    assert outcome.differences(before, after) == [
        "pushes: 3 of 3 lines differ",
        '    00:01.000 s1 {"text": "⟦a → b⟧"}',
        "    - 00:02.000 s2 gone",
        "    + 00:03.000 s3 new",
    ]
    assert (
        "only the order, from line 1 on"
        in outcome.differences({"x": ["a", "b"]}, {"x": ["b", "a"]})[1]
    )
