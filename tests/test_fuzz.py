"""A part of `make fuzz`: the same cases of every category each time.

Cases that once failed are kept by their numbers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import hunt as hunting
from fuzz import target
from fuzz.case import Case, Category
from fuzz.hunt import CATEGORIES, Fall, Hunt, least, smallest
from fuzz.target import Fallen, Target

pytestmark = [
    pytest.mark.files,
    pytest.mark.skipif(sys.platform != "linux", reason="a host at rest is read from /proc"),
]

SEED = 10
BESIDE = 4.0  # times as long as on an idle machine
#: How many cases to run of categories that are slow.
FEW = {"payload": 100, "agents": 60, "header": 100, "evidence": 100}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CATEGORIES)
def test_a_host_survives_every_case(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events arrive, no traceback, it rests, it answers, nothing grows.

    Other tests run at the same time, so a case that fails once is run again; `make fuzz` is strict.
    """
    monkeypatch.setattr(target, "LEAST", BESIDE)
    category = CATEGORIES[name]
    if why := category.lacks():
        pytest.skip(why)
    said: list[str] = []
    for _ in range(2):
        said.clear()
        hunt = Hunt([name], SEED, said.append)
        try:
            hunt.batch(category, range(FEW.get(name, category.batch)))
        except subprocess.CalledProcessError as error:  # a mount that is busy
            said.append(str(error))
        finally:
            hunt.close()
        if not said:
            return
    pytest.fail("\n".join(said), pytrace=False)


def test_a_failure_is_reduced_to_the_fewest_cases() -> None:
    """Two of many that fail only together; one alone; all that are needed."""
    for guilty in ({3, 77}, {40}, set(range(7))):
        assert tuple(sorted(guilty)) == least(tuple(range(100)), guilty.issubset)


def _dies(target: Target) -> None:
    target.process.kill()


def test_a_failure_is_reported_with_the_command_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The report has category, reason, case, seed and number; or that it failed only once."""
    category = Category("made", lambda random: Case(f"kill {random.random() < 2}", _dies))
    monkeypatch.setitem(hunting.CATEGORIES, "made", category)
    said = str(smallest(category, 7, (4,), "why"))
    assert said.startswith("made: the host ended: without a word")
    assert "4: kill True" in said
    assert said.endswith("again: make fuzz ONLY=made SEED=7 CASES=4")
    assert "only after what came before" in str(Fall("made", 7, (4,), "why", again=False))


@pytest.mark.parametrize("name", CATEGORIES)
def test_a_case_is_the_same_each_time(name: str) -> None:
    """Seed and number determine it, so a report that names them can be repeated."""
    category = CATEGORIES[name]
    names = [[category.case(3, n).name for n in range(30)] for _ in range(2)]
    assert names[0] == names[1]
    assert len(set(names[0])) > 1


class TestTheChecks:
    """A check counts only once it was seen failing."""

    @pytest.fixture
    def target(self) -> object:
        with Target() as target:
            target.up()
            yield target

    def test_a_dead_host_is_noticed(self, target: Target) -> None:
        target.process.kill()
        target.process.wait()
        with pytest.raises(Fallen, match="the host ended"):
            target.check(folds=False)

    def test_a_hanging_host_is_noticed(self, target: Target) -> None:
        target.process.send_signal(19)
        with pytest.raises(Fallen, match="not folded and pushed"):
            target.check(within=0.1)
        target.process.send_signal(18)

    def test_a_traceback_is_noticed(self, target: Target) -> None:
        Path(target.errors).write_text("Traceback (most recent call last):\nValueError: x\n")
        with pytest.raises(Fallen, match="a traceback on stderr: ValueError: x"):
            target.check()

    def test_unbounded_growth_is_noticed(self, target: Target) -> None:
        for n in range(3000):
            (target.board / "spool" / "tmp" / str(n)).touch()
        with pytest.raises(Fallen, match=r"30\d\d files"):
            target.check(shrinks=0.0)
