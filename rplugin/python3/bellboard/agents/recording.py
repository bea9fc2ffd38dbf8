"""Turn the event log into a trace that can be replayed, and shared without private text.

* Deadlines are left out: they fall due again when the trace is replayed.
* An event about several sessions (a view, a restart) is one line.

This file does no I/O and knows no clock.
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
    """Yield the lines of a trace; its replay makes the same changes as this log."""
    names = Names() if private else None
    clock, last = 0.0, None
    for row in log:
        e = row.event
        clock = e.clock if e.kind == "clock" else max(clock, e.clock)
        seen = (row.file, replace(e, alive=True))
        if e.kind not in BY_TIME and seen != last:
            last = seen
            yield line_of(names.event(e) if names else e)
    if clock:
        yield {"t": clock, "tick": {}}


def span(
    log: Iterable[Logged], sessions: set[str], options: Mapping[str, Any] | None = None
) -> list[Logged]:
    """Return the part of a log about these sessions, each from its last start.

    The options in force at that time come first: the last ones set before it, or the given ones.
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
