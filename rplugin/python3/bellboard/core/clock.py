"""The clock was set back: what is stamped in the future counts as now, in records as in events.

Without this a session that had its prompt before would wait for a Stop that is not older, and
every deadline with it, until the clock is again where it was.  Times keep their order; the age of
what happened on the wrong clock is lost, of the rest it is right.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from .events import Event
from .ledger import Folded, noted
from .records import Records

MEANT = ("snoozed_until", "facts")  # by a person, in the future; and what is no time


def set_back(records: Records, e: Event) -> list[Folded]:
    """Let nothing be known from after now."""
    for s in list(records.sessions.values()):
        records.keep(_until(s, e.t))
    records.ledger = _until(records.ledger, e.t)
    return [Folded(e, "", noted("The clock was set back; what was in the future counts as now."))]


def _until(value: Any, now: float) -> Any:
    """The same with every time in it at most now; every float in a record is a time."""
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
