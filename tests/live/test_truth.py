"""Recorded traces: what is shown, compared with what the CLI said about itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import pytest

from live.account import STANDS, Account, Stretch, most_urgent, wrong_times
from rig import ROOT
from rig.host.playback import TRACES, Line, late, play, read_lines

pytestmark = pytest.mark.core

RECORDINGS: Final = sorted(path.stem for path in (TRACES / "recordings").glob("*.jsonl"))
HOOKS: Final = frozenset({"hook", "process", "pane", "view", "goto", "tick", "raw"})
EVIDENCE: Final = {
    "all evidence": HOOKS | {"registry", "transcript"},
    "hooks and transcripts": HOOKS | {"transcript"},
    "hooks alone": HOOKS,
}
FLOOR: Final = {"all evidence": 0.999, "hooks and transcripts": 0.92, "hooks alone": 0.79}
LONGEST_WRONG: Final = 0.5
README: Final = " ".join((ROOT / "README.md").read_text().split())
CLAIM: Final = (
    r"in (\d+) recordings .* (\d+) % of the time with hooks, and (\d+) % with session files"
)


def claimed() -> dict[str, tuple[int, int]]:
    """Return how many recordings and how many percent of the time the README speaks of."""
    found = re.search(CLAIM, README)
    assert found, "the README no longer says how often the status is right"
    count, hooks, everything = map(int, found.groups())
    return {"hooks alone": (count, hooks), "all evidence": (count, everything)}


@cache
def lines_of(name: str) -> list[Line]:
    return read_lines(TRACES / "recordings" / f"{name}.jsonl")


@cache
def truth(name: str) -> list[Stretch]:
    """Return the stretches to compare; for several processes, those of the most urgent one."""
    stood = most_urgent(Account(lines_of(name)).stretches)
    return [x.compared for x in stood if x.end - x.start > STANDS]


def wrong(name: str, lines: Iterable[Line], kind: str = "all evidence") -> list[float]:
    """Return how long each wrong stretch lasts with this evidence."""
    changes, _ = play(x for x in lines if EVIDENCE[kind] & x.keys())
    return [w for x in truth(name) for w in wrong_times(x, changes)]


def longer(wrongs: dict[str, list[float]], most: float) -> dict[str, list[float]]:
    """Return the recordings with a wrong stretch longer than that."""
    return {name: found for name, found in wrongs.items() if max(found, default=0.0) > most}


@pytest.mark.parametrize("kind", EVIDENCE)
def test_the_board_agrees_with_the_clis_own_account(kind: str) -> None:
    wrongs = {name: wrong(name, lines_of(name), kind) for name in RECORDINGS}
    total = sum(x.end - x.start for name in RECORDINGS for x in truth(name))
    assert total > 390, "the recordings hold six minutes and a half of the CLI's own account"
    right = 1 - sum(map(sum, wrongs.values())) / total
    assert right >= FLOOR[kind], longer(wrongs, 0.0)
    said = claimed().get(kind)
    assert said in (None, (len(RECORDINGS), round(100 * right)))


def test_with_all_evidence_nothing_wrong_lasts() -> None:
    wrongs = {name: wrong(name, lines_of(name)) for name in RECORDINGS}
    assert longer(wrongs, LONGEST_WRONG) == {}


@pytest.mark.parametrize("kind", ["registry", "transcript"])
@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.5])
def test_late_evidence_is_wrong_no_longer_than_its_delay(kind: str, seconds: float) -> None:
    """A busy host reads its sources in any order."""
    wrongs = {name: wrong(name, late(lines_of(name), kind, seconds)) for name in RECORDINGS}
    assert longer(wrongs, LONGEST_WRONG + seconds) == {}
