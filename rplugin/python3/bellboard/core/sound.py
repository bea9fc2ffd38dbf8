"""Whether a record that could be decoded is one that some fold can have left.

A damaged byte may still decode: to a status that no rule knows, or a time that never comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from msgspec.structs import fields

from .bounds import LATEST
from .ledger import Ledger
from .session import ABSENT, STATUSES, Run, Session

TURNS: Final = frozenset((*STATUSES, ABSENT))
HIGHEST: Final = 1 << 31  # no process has such a number

_times = {
    kind: attrgetter(*(f.name for f in fields(kind) if f.type is float)) for kind in (Run, Session)
}


def check_session(s: Session, key: str) -> None:
    """Raise ValueError, with the reason, if no rule can do anything with it."""
    if s.session_id != key:
        raise ValueError("it is the record of another session")
    times = [*s.viewers.values(), *s.left.values(), *_of_run(s)]
    for pid, run in s.aside.items():
        _check_number(pid, run.pid)
        times += _of_run(run)
    for pid, process in s.processes.items():
        _check_number(pid, process.pid)
        times.append(process.at)
    _check_times(times)


def _of_run(run: Run) -> list[float]:
    """Its times; ValueError if it does what no rule knows."""
    if run.turn not in TURNS:
        raise ValueError(f"no session is {run.turn[:40]!r}")
    times = [*_times[type(run)](run), *run.recent.values()]
    if run.blocks or run.tools or run.agents or run.shells or run.finished:
        for begun in (run.blocks.values(), run.tools.values(), run.agents.values(), run.shells):
            times += [x.since for x in begun]
        times += [x.t for x in run.finished]
    return times


def _check_number(pid: int, its: int) -> None:
    if pid != its or not 0 <= pid < HIGHEST:
        raise ValueError("a process of it has no number")


def check_ledger(ledger: Ledger) -> None:
    """The same for what is known beyond the sessions."""
    _check_times((ledger.clock, *(view.since for view in ledger.views.values())))


def _check_times(times: Sequence[float]) -> None:
    if not sum(map(abs, times)) <= LATEST * len(times):  # which no sum with a NaN is
        raise ValueError("a time in it is none")
