"""What is shown, compared with what the CLI said of itself while a trace was recorded."""

from __future__ import annotations

from typing import Final

import pytest

from playback import TRACES, Line, late, play, read_lines
from truth.account import STANDS, Account, Stretch, most_urgent, wrong_times

pytestmark = pytest.mark.pure

RECORDINGS: Final = {path.stem: path for path in sorted((TRACES / "recordings").glob("*.jsonl"))}
HOOKS: Final = frozenset({"hook", "process", "pane", "view", "goto", "tick", "raw"})
EVIDENCE: Final = {
    "all evidence": HOOKS | {"registry", "transcript"},
    "hooks and transcripts": HOOKS | {"transcript"},
    "hooks alone": HOOKS,
}
FLOOR: Final = {"all evidence": 0.999, "hooks and transcripts": 0.92, "hooks alone": 0.79}
LONGEST_WRONG: Final = 0.5


def truth(lines: list[Line]) -> list[Stretch]:
    """The stretches to compare, of sessions in several processes the most urgent one."""
    stood = most_urgent(Account(lines).stretches)
    return [x.compared for x in stood if x.end - x.start > STANDS]


def compared(kind: str, name: str) -> tuple[float, list[float]]:
    """Seconds compared in one recording, and its wrong stretches."""
    lines = read_lines(RECORDINGS[name])
    stretches = truth(lines)
    changes, _ = play(x for x in lines if EVIDENCE[kind] & x.keys())
    total = sum(x.end - x.start for x in stretches)
    return total, [w for x in stretches for w in wrong_times(x, changes)]


@pytest.mark.parametrize("kind", EVIDENCE)
def test_agrees_with_the_clis_own_account(kind: str) -> None:
    scores = {name: compared(kind, name) for name in RECORDINGS}
    total = sum(seconds for seconds, _ in scores.values())
    wrong = sum(sum(times) for _, times in scores.values())
    assert total > 390, "the recordings hold six minutes and a half of the CLI's own account"
    assert 1 - wrong / total >= FLOOR[kind], {n: w for n, (_, w) in scores.items() if w}


@pytest.mark.parametrize("name", RECORDINGS)
def test_with_all_evidence_nothing_wrong_lasts(name: str) -> None:
    _, wrong = compared("all evidence", name)
    assert [w for w in wrong if w > LONGEST_WRONG] == []


@pytest.mark.parametrize("kind", ["registry", "transcript"])
@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.5])
def test_what_is_read_late_is_wrong_for_no_longer(kind: str, seconds: float) -> None:
    """A host may be busy, and reads its sources in any order."""
    longer = {}
    for name, path in RECORDINGS.items():
        lines = read_lines(path)
        changes, _ = play(
            x for x in late(lines, kind, seconds) if EVIDENCE["all evidence"] & x.keys()
        )
        wrong = [w for x in truth(lines) for w in wrong_times(x, changes)]
        if max(wrong, default=0.0) > LONGEST_WRONG + seconds:
            longer[name] = wrong
    assert longer == {}
