"""Find what was wrong in a walk: in what was shown, and in a replay of its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from live.account import SLACK, Account, Line, Stretch, most_urgent, runs
from live.walks.walker import Walked
from rig.host.playback import late, play

LONGEST: Final = 0.5  # seconds that a wrong status may last
GONE: Final = 2.0  # seconds that a session may stay listed after its last process
LATE: Final = (("registry", 0.3), ("transcript", 0.3), ("transcript", 1.5))
EVIDENCE: Final = frozenset({"hook", "process", "registry", "transcript"})


@dataclass(frozen=True)
class Disagreement:
    """A wrong status was shown for too long."""

    t: float
    seconds: float
    shown: str
    said: str
    rule: str  # the rule that set it
    live: bool  # it was shown; otherwise it is only in the replay

    @property
    def what(self) -> str:
        """Return what identifies the fault in other walks."""
        return f"{self.shown}, not {self.said}: {self.rule}"

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s {'' if self.live else '(replayed) '}{self.what}"


@dataclass(frozen=True)
class Verdict:
    """The judgement of a walk."""

    compared: float
    wrong_seconds: float
    wrongs: tuple[Disagreement, ...]
    late: tuple[
        Disagreement, ...
    ]  # wrong live but right in the replay: because of the machine or the host
    sessions: int

    @property
    def right(self) -> float:
        """Return the share of the time with the right status."""
        return 1 - self.wrong_seconds / self.compared if self.compared else 1.0


def judged(seen: Walked) -> Verdict:
    """Return everything wrong, longest first."""
    if not seen.trace:
        return Verdict(0.0, 0.0, (), (), 0)
    stood = [
        piece
        for x in most_urgent(Account(seen.trace).stretches)
        for piece in without(x.compared, seen.excused)
    ]
    evidence = [x for x in seen.trace if EVIDENCE & x.keys()]
    evidence.append({"t": seen.trace[-1]["t"], "tick": {}})
    replayed, _ = play(evidence)
    live = faults(stood, seen.changes, live=True) + stayed(seen)
    core = faults(stood, replayed, live=False)
    both = [w for w in live if sum(overlap(w, c) for c in core) > w.seconds / 2]
    lagging = [w for w in live if w not in both]
    only = [w for w in core if sum(overlap(w, x) for x in both) <= w.seconds / 2]
    found = sorted((w for w in [*both, *only] if w.seconds > LONGEST), key=lambda w: -w.seconds)
    found += if_read_late(stood, evidence) if not found else []
    lagging = sorted((w for w in lagging if w.seconds > LONGEST), key=lambda w: -w.seconds)
    return Verdict(
        sum(x.end - x.start for x in stood),
        sum(w.seconds for w in live),
        tuple(found),
        tuple(lagging),
        len({x.session_id for x in stood}),
    )


def if_read_late(stood: Sequence[Stretch], evidence: Sequence[Line]) -> list[Disagreement]:
    """Return what would be wrong if a busy host read one source late."""
    found = []
    for kind, seconds in LATE:
        changes, _ = play(late(evidence, kind, seconds))
        found += [
            replace(w, rule=f"{w.rule}, {kind} {seconds} s late")
            for w in faults(stood, changes, live=False)
            if w.seconds > LONGEST + seconds
        ]
    return found


def faults(stood: Iterable[Stretch], changes: Sequence[Line], *, live: bool) -> list[Disagreement]:
    """Return every wrong status, of any length."""
    return [
        Disagreement(
            t=run[0].start,
            seconds=run[-1].end - run[0].start,
            shown=str(run[0].shown),
            said="|".join(sorted(x.allowed)),
            rule=run[0].rule,
            live=live,
        )
        for x in stood
        for run in runs(x, changes)
    ]


def stayed(seen: Walked) -> list[Disagreement]:
    """Return sessions that stayed listed too long after their last process."""
    processes: dict[str, set[int]] = {}
    for x in seen.trace:
        if "hook" in x:
            processes.setdefault(x["hook"]["session_id"], set()).add(x["origin"]["pid"])
    found = []
    end = seen.trace[-1]["t"]
    for sid, pids in processes.items():
        if not pids <= seen.ended.keys():
            continue
        gone = max(seen.ended[pid] for pid in pids)
        mine = [c for c in seen.changes if c["session_id"] == sid]
        if not mine:
            continue
        until = mine[-1]["t"] if mine[-1]["to"] is None else end
        for a, b in without_times(gone, until, seen.excused):
            if b - a > GONE:
                status = str(mine[-1]["from"] if mine[-1]["to"] is None else mine[-1]["to"])
                found.append(Disagreement(a, b - a, status, "gone", "stays", live=True))
    return found


def without(x: Stretch, excused: Sequence[tuple[float, float]]) -> list[Stretch]:
    """Return a stretch without excused times and the moments around them."""
    pieces = without_times(x.start, x.end, excused)
    return [replace(x, start=a, end=b) for a, b in pieces]


def without_times(
    start: float, end: float, excused: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return a time without excused times."""
    pieces = [(start, end)]
    for since, until in excused:
        pieces = [
            piece
            for a, b in pieces
            for piece in ((a, min(b, since - SLACK)), (max(a, until), b))
            if piece[1] > piece[0]
        ]
    return pieces


def overlap(one: Disagreement, other: Disagreement) -> float:
    """Return how long both are wrong in the same way."""
    begins = max(one.t, other.t)
    ends = min(one.t + one.seconds, other.t + other.seconds)
    return max(0.0, ends - begins) if one.shown == other.shown else 0.0
