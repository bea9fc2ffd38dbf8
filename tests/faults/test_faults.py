"""Every row of the table of faults, and a part of what `make fuzz` tries by chance.

To add a fault, add a row: `faults/table.py`. Faults that once fell by chance are kept by their
numbers.
"""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from faults import hunt as hunting
from faults import target as targets
from faults.fault import Do, Fault, Kind
from faults.hunt import KINDS, Fall, Hunt, least, smallest
from faults.meet import meet
from faults.target import Fallen, Target

pytestmark = [
    pytest.mark.files,
    pytest.mark.skipif(sys.platform != "linux", reason="a host at rest is read from /proc"),
]

SEED = 10
BESIDE = 4.0  # times as long as on an idle machine
#: How many faults to try of kinds that are slow.
FEW = {"payload": 100, "agents": 60, "header": 100, "evidence": 100}
ROWS = [
    (kind, kind.rows[first : first + kind.batch])
    for kind in KINDS.values()
    for first in range(0, len(kind.rows), kind.batch)
]


class Lent:
    """A host that serves one fault after the other, until one falls."""

    def __init__(self) -> None:
        self.target: Target | None = None

    def living(self) -> Target:
        """Return the host."""
        if self.target is None:
            self.target = Target()
            self.target.up()
        return self.target

    def close(self) -> None:
        """End it."""
        if self.target is not None:
            self.target.close()
            self.target = None


@pytest.fixture(scope="module")
def lent() -> Iterator[Lent]:
    host = Lent()
    yield host
    host.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "rows"), ROWS, ids=[f"{kind.name}: {rows[0].name}" for kind, rows in ROWS]
)
def test_a_host_meets_every_fault(
    lent: Lent, kind: Kind, rows: Sequence[Fault], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `faults/meet.py` checks, with what the row promises; those of a batch at once.

    Other tests run at the same time, so a row that falls once is tried again on a fresh host;
    `make fuzz` is strict.
    """
    monkeypatch.setattr(targets, "LEAST", BESIDE)
    if why := kind.lacks():
        pytest.skip(why)
    if kind.alone:
        lent.close()
    for tries in range(2):
        try:
            meet(lent.living(), kind, rows)
        except Exception as fallen:
            lent.close()
            if not isinstance(fallen, (Fallen, subprocess.CalledProcessError)):  # a busy mount
                raise
            if tries:
                pytest.fail(str(fallen), pytrace=False)
        else:
            break
    if kind.alone:
        lent.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [kind.name for kind in KINDS.values() if not kind.rows])
def test_a_host_survives_what_comes_by_chance(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same faults each time, several in one host; one that falls once is tried again."""
    monkeypatch.setattr(targets, "LEAST", BESIDE)
    kind = KINDS[name]
    if why := kind.lacks():
        pytest.skip(why)
    said: list[str] = []
    for _ in range(2):
        said.clear()
        hunt = Hunt([name], SEED, said.append)
        try:
            hunt.batch(kind, range(FEW.get(name, kind.batch)))
        except subprocess.CalledProcessError as error:
            said.append(str(error))
        finally:
            hunt.close()
        if not said:
            return
    pytest.fail("\n".join(said), pytrace=False)


def test_a_failure_is_reduced_to_the_fewest_faults() -> None:
    """Two of many that fail only together; one alone; all that are needed."""
    for guilty in ({3, 77}, {40}, set(range(7))):
        assert tuple(sorted(guilty)) == least(tuple(range(100)), guilty.issubset)


def _dies(target: Target) -> None:
    target.process.kill()


def test_a_failure_is_reported_with_the_command_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The report has kind, reason, fault, seed and number; or that it failed only once."""
    kind = Kind("made", make=lambda random: Fault(f"kill {random.random() < 2}", _dies))
    monkeypatch.setitem(hunting.KINDS, "made", kind)
    said = str(smallest(kind, 7, (4,), "why"))
    assert said.startswith("made: the host ended: without a word")
    assert "4: kill True" in said
    assert said.endswith("again: make fuzz ONLY=made SEED=7 CASES=4")
    assert "only after what came before" in str(Fall("made", 7, (4,), "why", again=False))


@pytest.mark.parametrize("name", KINDS)
def test_a_fault_is_the_same_each_time(name: str) -> None:
    """Seed and number determine it, so a report that names them can be repeated."""
    kind = KINDS[name]
    names = [[kind.fault(3, n).name for n in range(30)] for _ in range(2)]
    assert names[0] == names[1]
    assert len(set(names[0])) > 1


def in_log(change: str) -> Do:
    """Change the log of events."""

    def do(target: Target) -> None:
        with contextlib.closing(sqlite3.connect(target.board / "board.db")) as db, db:
            db.execute(change)

    return do


TWICE = (
    "INSERT INTO events"
    " SELECT NULL, session_id, file, rule, taken, why, before, after, event FROM events"
)


class TestTheChecks:
    """A check counts only once it was seen failing."""

    @pytest.fixture
    def target(self) -> Iterator[Target]:
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
        Path(target.host.errors).write_text("Traceback (most recent call last):\nValueError: x\n")
        with pytest.raises(Fallen, match="a traceback on stderr: ValueError: x"):
            target.check()

    def test_unbounded_growth_is_noticed(self, target: Target) -> None:
        for n in range(3000):
            (target.board / "spool" / "tmp" / str(n)).touch()
        with pytest.raises(Fallen, match=r"30\d\d files"):
            target.check(shrinks=0.0)

    @pytest.mark.parametrize(
        ("fault", "why"),
        [
            (Fault("x", lambda _: None, says="nobody says it"), "health does not say"),
            (Fault("x", lambda _: None, doctor="nobody says it"), "doctor does not say"),
            (Fault("x", lambda _: None, lists="nobody says it"), "list` does not show"),
            (Fault("x", lambda _: None, refuses="nobody says it"), "it does not refuse"),
            (Fault("x", in_log("UPDATE events SET file = 'x'")), "in no log"),
            (Fault("x", in_log(TWICE)), "folded twice"),
        ],
    )
    def test_a_row_that_promises_too_much_is_noticed(
        self, target: Target, fault: Fault, why: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(targets, "HEAL", 0.5)
        with pytest.raises(Fallen, match=why):
            meet(target, Kind("x", (fault,)), [fault])

    def test_each_of_a_batch_must_be_named(
        self, target: Target, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Unless its faults may stand in each other's way."""
        monkeypatch.setattr(targets, "HEAL", 0.5)
        rows = [Fault("x", lambda _: None), Fault("y", lambda _: None, says="nobody says it")]
        meet(target, Kind("x", rows, mixed=True), rows)
        with pytest.raises(Fallen, match="health does not say"):
            meet(target, Kind("x", rows), rows)
