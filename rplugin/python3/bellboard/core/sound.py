"""Whether a record that could be decoded is one that some fold can have left.

A damaged byte may still decode: to a status that no rule knows, or a time that never comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from msgspec.structs import fields

from .bounds import LATEST
from .ledger import Ledger
from .session import ABSENT, STATUSES, Session

TURNS: Final = frozenset((*STATUSES, ABSENT))
HIGHEST: Final = 1 << 31  # no process has such a number

_times = attrgetter(*(f.name for f in fields(Session) if f.type is float))


def check_session(s: Session, key: str) -> None:
    """Raise ValueError, with the reason, if no rule can do anything with it."""
    if s.session_id != key:
        raise ValueError("it is the record of another session")
    if s.turn not in TURNS:
        raise ValueError(f"no session is {s.turn[:40]!r}")
    times = [*_times(s), *s.recent.values(), *s.viewers.values()]
    if s.blocks or s.tools or s.agents or s.shells or s.finished:
        for begun in (s.blocks.values(), s.tools.values(), s.agents.values(), s.shells):
            times += [x.since for x in begun]
        times += [x.t for x in s.finished]
    for pid, process in s.processes.items():
        times.append(process.at)
        if process.pid != pid or not 0 < pid < HIGHEST:
            raise ValueError("a process of it has no number")
    _check_times(times)


def check_ledger(ledger: Ledger) -> None:
    """The same for what is known beyond the sessions."""
    _check_times((ledger.clock, *(view.since for view in ledger.views.values())))


def _check_times(times: Iterable[float]) -> None:
    if not sum(map(abs, times)) <= LATEST * 10:  # nor of what is no number
        raise ValueError("a time in it is none")
