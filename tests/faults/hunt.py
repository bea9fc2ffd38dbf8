"""Search for failures, and reduce them to the fewest faults."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from faults import (
    agents,
    clis,
    damage,
    files,
    machines,
    messages,
    programs,
    reported,
    settings,
    strangers,
    surroundings,
    table,
    volumes,
    witnessed,
)
from faults.fault import Kind
from faults.meet import meet
from faults.target import HEAL, Fallen, Target

KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for module in (
        *(
            messages,
            agents,
            clis,
            files,
            witnessed,
            machines,
            programs,
            reported,
            damage,
            settings,
            strangers,
        ),
        surroundings,
        table,
        volumes,
    )
    for kind in module.KINDS
}
TOGETHER: Final = [
    row
    for kind in (*table.KINDS, *volumes.KINDS)
    if not kind.lacks() and not kind.alone
    for row in kind.rows
    if not row.alone
]
KINDS["together"] = Kind(
    "together", make=lambda random: random.choice(TOGETHER), batch=3, within=2 * HEAL, mixed=True
)
SOME: Final = 4
REDUCING: Final = 120.0  # seconds to reduce a failure


@dataclass(frozen=True)
class Fall:
    """A failure: the faults, their seed, and the reason."""

    kind: str
    seed: int
    numbers: tuple[int, ...]
    why: str
    again: bool  # it fails on a fresh host, too

    def __str__(self) -> str:
        faults = [KINDS[self.kind].fault(self.seed, n) for n in self.numbers]
        names = [f"    {n}: {fault.name}" for n, fault in zip(self.numbers, faults, strict=True)]
        some = [*names[:8], f"    … and {len(names) - 8} more"] if len(names) > 9 else names
        only = "" if self.again else "  (only after what came before it)\n"
        numbers = ",".join(map(str, self.numbers))
        command = f"make fuzz ONLY={self.kind} SEED={self.seed} CASES={numbers}"
        return "\n".join([f"{self.kind}: {self.why}", *some]) + f"\n{only}  again: {command}"


@dataclass
class Tally:
    """The results of a kind."""

    faults: int = 0
    batches: int = 0
    rested: float = 0.0
    slowest: float = 0.0
    falls: dict[str, Fall] = field(default_factory=dict)
    fell: int = 0


def falls(kind: Kind, seed: int, numbers: Sequence[int]) -> str:
    """Return why a fresh host fails with these faults, or ""."""
    with Target() as target:
        try:
            target.up()
            meet(target, kind, [kind.fault(seed, n) for n in numbers])
        except Fallen as fallen:
            return str(fallen)
    return ""


def smallest(kind: Kind, seed: int, numbers: Sequence[int], why: str) -> Fall:
    """Return the smallest set of faults that fails on a fresh host, as far as time allows."""
    until = time.monotonic() + REDUCING
    said = {tuple(numbers): falls(kind, seed, numbers)}
    if not said[tuple(numbers)]:
        return Fall(kind.name, seed, tuple(numbers), why, again=False)

    def fails(some: tuple[int, ...]) -> bool:
        said[some] = falls(kind, seed, some) if time.monotonic() < until else ""
        return bool(said[some])

    left = least(tuple(numbers), fails)
    return Fall(kind.name, seed, left, said[left], again=True)


def least(given: tuple[int, ...], fails: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """Return a subset that still fails, and of which none can be left out."""
    left, parts = given, 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        pieces = [left[start : start + size] for start in range(0, len(left), size)]
        rests = [tuple(n for n in left if n not in piece) for piece in pieces]
        tried = next((some for some in (*pieces, *rests) if some != left and fails(some)), None)
        if tried is not None:
            left, parts = tried, 2 if tried in pieces else max(parts - 1, 2)
        elif size == 1:
            break
        else:
            parts = min(len(left), parts * 2)
    return left


class Hunt:
    """Runs batches of each kind in turn until time is up; calls `tell` with each failure."""

    def __init__(self, names: Sequence[str], seed: int, tell: Callable[[str], None]) -> None:
        self.seed = seed
        self.tell = tell
        self.tallies: dict[str, Tally] = {}
        self.lacking: dict[str, str] = {}
        for name in names:
            if why := KINDS[name].lacks():
                self.lacking[name] = why
            else:
                self.tallies[name] = Tally()
        self._target: Target | None = None

    def until(self, deadline: float) -> None:
        """Run rounds; a kind that runs its faults one by one does some in each."""
        for turn in itertools.count():
            for name in self.tallies:
                size = KINDS[name].batch
                some = 1 if size > 1 else SOME
                for first in range(turn * some * size, (turn + 1) * some * size, size):
                    if time.monotonic() > deadline:
                        return
                    self.batch(KINDS[name], range(first, first + size))

    def batch(self, kind: Kind, numbers: Sequence[int]) -> None:
        """Run these faults against the current host; if it fails, find the smallest cause."""
        tally = self.tallies[kind.name]
        if kind.alone:
            self.close()
        target = self._living()
        target.slowest = 0.0
        try:
            meet(target, kind, [kind.fault(self.seed, n) for n in numbers])
        except Fallen as fallen:
            self.close()
            tally.fell += 1
            if (why := str(fallen)) not in tally.falls:
                tally.falls[why] = smallest(kind, self.seed, numbers, why)
                self.tell(f"FELL {tally.falls[why]}")
        tally.faults += len(numbers)
        tally.batches += 1
        tally.rested = max(tally.rested, target.rested)
        tally.slowest = max(tally.slowest, target.slowest)
        if kind.alone:
            self.close()

    def _living(self) -> Target:
        if self._target is None:
            self._target = Target()
            self._target.up()
        return self._target

    def close(self) -> None:
        """End the host."""
        if self._target is not None:
            target, self._target = self._target, None
            target.close()

    def report(self) -> str:
        """Return a line for each kind."""
        rows = [f"{'kind':12}{'faults':>7}{'fell':>6}{'slowest event':>15}{'CPU at rest':>13}"]
        rows += [
            f"{name:12}{t.faults:7}{t.fell:6}{t.slowest:13.2f} s{t.rested:12.1%}"
            for name, t in self.tallies.items()
        ]
        rows += [f"left out: {name}: {why}" for name, why in self.lacking.items()]
        faults = sum(t.faults for t in self.tallies.values())
        fell = sum(t.fell for t in self.tallies.values())
        rows.append(f"seed {self.seed}: {faults} faults, {fell or 'nothing'} fell")
        return "\n".join(rows)


def chance() -> int:
    """Return a random seed."""
    return random.SystemRandom().randrange(10**6)
