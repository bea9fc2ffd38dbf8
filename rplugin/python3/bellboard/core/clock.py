"""Handle a clock that was set back: times in the future count as now, in records and events.

Without this, every newer event would look older than the last one until the clock is back where it
was.  Times keep their order; only the ages of what happened on the wrong clock are lost.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from .events import Event
from .records import Folded, Records, noted

MEANT = (
    "snoozed_until",
    "facts",
    "row",
)  # times that may be in the future, and fields that are no times


def is_recent(t: float, now: float, seconds: float) -> bool:
    """Return whether `t` was less than `seconds` ago; not if the clock was set back since."""
    return t <= now < t + seconds


def set_back(records: Records, e: Event) -> list[Folded]:
    """Limit every time of the board to now."""
    for s in list(records.sessions.values()):
        # an event on the wrong clock must not count as a copy of a later one
        recent = {key: t for key, t in s.recent.items() if t <= e.t}
        records.keep(_until(replace(s, recent=recent), e.t))
    records.ledger = _until(records.ledger, e.t)
    return [Folded(e, "", noted("The clock was set back; times in the future count as now."))]


def _until(value: Any, now: float) -> Any:
    """Limit every time in a value to now; every float in a record is a time."""
    if isinstance(value, float):
        return min(value, now)
    if isinstance(value, Struct):
        fields = asdict(value).items()
        return type(value)(**{k: v if k in MEANT else _until(v, now) for k, v in fields})
    if isinstance(value, dict):
        return {k: _until(v, now) for k, v in value.items()}
    if type(value) is tuple:
        return tuple(_until(v, now) for v in value)
    return value
