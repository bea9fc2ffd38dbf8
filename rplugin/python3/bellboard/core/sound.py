"""Check that a decoded record can be the result of a fold.

Damaged bytes may still decode, to a status that no rule knows or to an impossible time.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from .bounds import LATEST
from .ledger import Ledger
from .session import ABSENT, STATUSES, Run, Session

TURNS: Final = frozenset((*STATUSES, ABSENT))
HIGHEST: Final = 1 << 31  # above any process id

#: The times of a record.  `msgspec.structs.fields` would take 2 ms of each command.
_times = {
    kind: attrgetter(
        *(
            name
            for base in kind.__mro__
            for name, said in getattr(base, "__annotations__", {}).items()
            if said == "float"
        )
    )
    for kind in (Run, Session)
}


def check_session(s: Session, key: str) -> None:
    """Raise ValueError, with the reason, if no fold can have left this record."""
    if s.session_id != key:
        raise ValueError("the record belongs to another session")
    times = [*s.viewers.values(), *s.left.values(), *_of_run(s)]
    for pid, run in s.aside.items():
        _check_number(pid, run.pid)
        times += _of_run(run)
    for pid, process in s.processes.items():
        _check_number(pid, process.pid)
        times.append(process.states.at)
    _check_times(times)


def _of_run(run: Run) -> list[float]:
    """Return all times of a run; raise ValueError if its status is unknown."""
    if run.turn not in TURNS:
        raise ValueError(f"unknown status {run.turn[:40]!r}")
    times = [*_times[type(run)](run), *run.recent.values(), run.stated.at]
    if run.blocks or run.tools or run.agents or run.shells or run.finished:
        for begun in (run.blocks.values(), run.tools.values(), run.agents.values(), run.shells):
            times += [x.since for x in begun]
        times += [x.t for x in run.finished]
    return times


def _check_number(pid: int, its: int) -> None:
    if pid != its or not 0 <= pid < HIGHEST:
        raise ValueError("invalid process id")


def check_ledger(ledger: Ledger) -> None:
    """Do the same for what is known beyond the sessions."""
    _check_times((ledger.clock, *(view.since for view in ledger.views.values())))
    _check_times([link.since for link in ledger.links.values()])


def _check_times(times: Sequence[float]) -> None:
    if not sum(map(abs, times)) <= LATEST * len(times):  # false for NaN, too
        raise ValueError("impossible time")
