"""The event log as a trace: what can be replayed, and sent to others, without private text.

* Events that time alone brings are no lines: they come by themselves when the trace is replayed.
* One event may be about many sessions (a view, a restart): it is one line.

Rules of this file: no I/O and no clock, as in `trace.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ..core.deadlines import BY_TIME
from ..core.events import Event, line_of
from ..storage.store import Logged
from .private import Names

Line = dict[str, Any]


def record(log: Iterable[Logged], private: bool = True) -> Iterator[Line]:
    """The lines of a trace that replays to the changes that this log tells of."""
    names = Names() if private else None
    clock, last = 0.0, None
    for row in log:
        e = row.event
        clock = e.clock if e.kind == "clock" else max(clock, e.clock)
        told = (row.file, replace(e, alive=True))
        if e.kind not in BY_TIME and told != last:
            last = told
            yield line_of(names.event(e) if names else e)
    if clock:
        yield {"t": clock, "tick": {}}


def span(
    log: Iterable[Logged], sessions: set[str], options: Mapping[str, Any] | None = None
) -> list[Logged]:
    """The part of a log that is about these sessions, from where each of them last began.

    The options then in force come first: those last set before it, else the ones that are given.
    """
    rows = list(log)
    begins: dict[str, int] = {}
    for n, row in enumerate(rows):
        begun = row.before is None and row.after is not None
        if row.session_id in sessions and (begun or row.session_id not in begins):
            begins[row.session_id] = n
    first = min(begins.values(), default=len(rows))
    found = [
        row
        for n, row in enumerate(rows)
        if n >= first and n >= begins.get(row.session_id, len(rows) if row.session_id else 0)
    ]
    config = [row for row in rows[:first] if row.event.kind == "config"][-1:]
    if found and options and not any(row.event.kind == "config" for row in rows):
        t = found[0].event.clock
        event = Event("config", "config", t, t, settings=dict(options))
        config = [Logged(0, "", event, "", "", True, "", None, None)]
    return config + found
