"""When to notify: the delay of each channel by status, mode and label, and the user's settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from .deadlines import NEVER
from .machine import read_table

#: What notifies of which status in which mode: nothing (.), the ladder, or only one channel of it.
#: A session's label adds to that, except where only the float may show.
MODES_TEXT: Final = """
mode   | blocked | error  | completed | background
-------|---------|--------|-----------|-----------
quiet  | float   | .      | .         | .
normal | ladder  | ladder | notify    | notify
all    | ladder  | ladder | ladder    | ladder
"""
#: Seconds until a channel notifies, if the status still lasts; a dot: never.
LADDERS_TEXT: Final = """
status     | float | notify | bell | desktop | sound | command
-----------|-------|--------|------|---------|-------|--------
blocked    | 0     | .      | .    | 30      | .     | 120
error      | .     | 0      | .    | 30      | .     | 120
completed  | .     | 0      | .    | 10      | .     | .
background | .     | 0      | .    | 10      | .     | .
"""
#: Differences for sessions with a label, by its name and the status.
LABELS_TEXT: Final = """
label status        | notify | desktop | sound
--------------------|--------|---------|------
ONEOFF completed    | 0      | 0       | 0
HEAVY completed     | 0      | 0       | 0
IMPORTANT completed | 0      | 0       | 0
IMPORTANT blocked   | 0      | 0       | 0
"""

DAY: Final = 86400.0

Delays = dict[str, float]  # channel → seconds, NEVER for never


def _delays(text: str) -> dict[str, Delays]:
    return {
        row: {channel: NEVER if cell == "." else float(cell) for channel, cell in cells.items()}
        for row, cells in read_table(text).items()
    }


MODES: Final = read_table(MODES_TEXT)
LADDERS: Final = _delays(LADDERS_TEXT)
LABELS: Final[dict[str, dict[str, Delays]]] = {}
for _row, _own in _delays(LABELS_TEXT).items():
    _label, _status = _row.split()
    LABELS.setdefault(_label, {})[_status] = _own
CHANNELS: Final = tuple(LADDERS["blocked"])
#: Channels that also reach a person away from the editor.
AWAY: Final = frozenset({"desktop", "sound", "command"})


class Policy(NamedTuple):
    """When to notify the user."""

    mode: str = "normal"
    ladders: dict[str, Delays] = LADDERS
    labels: dict[str, dict[str, Delays]] = LABELS
    gap: float = 10.0  # seconds between two notices of a session on one channel
    cap: int = 6  # notices of a channel in a minute
    least: float = 10.0  # seconds; the end of a shorter turn is not announced: you are present
    quiet: tuple[int, int] | None = None  # start and end in minutes of the day

    def delay(self, status: str, label: str, short: bool, channel: str) -> float:
        """Return how long a status must last before a channel notifies."""
        cell = MODES[self.mode].get(status, ".")
        if cell == "." or (cell == "float" and channel != "float"):
            return NEVER
        own = self.labels.get(label, {}).get(status, {})
        if channel in own:
            return own[channel]
        if short or cell not in ("ladder", channel):
            return NEVER
        return self.ladders.get(status, {}).get(channel, NEVER)

    def after_quiet(self, t: float, zone: float) -> float:
        """Return `t`, or the end of the quiet hours that contain it."""
        if self.quiet is None:
            return t
        start, end = (60.0 * m for m in self.quiet)
        of_day = (t + zone) % DAY
        length, into = (end - start) % DAY, (of_day - start) % DAY
        return t + (length - into) if into < length else t


def policy_of(settings: Mapping[str, Any]) -> Policy:
    """Return a policy from the user's settings; ignore values of the wrong type."""
    usual = Policy()
    ladders = {s: {**delays, **_wished(settings.get(s))} for s, delays in LADDERS.items()}
    labels = dict(LABELS)
    for name, wish in _items(settings.get("labels")):
        wished = {s: _wished(wish.get(s)) for s in LADDERS if isinstance(wish, Mapping)}
        known = labels.get(name, {})
        both = {s: {**known.get(s, {}), **wished.get(s, {})} for s in LADDERS}
        labels[name] = {s: delays for s, delays in both.items() if delays}
    numbers: dict[str, Any] = {
        k: type(getattr(usual, k))(v)
        for k in ("gap", "cap", "least")
        if _is_number(v := settings.get(k, -1)) and v >= 0
    }
    if settings.get("mode") in MODES:
        numbers["mode"] = settings["mode"]
    return Policy(
        ladders=ladders, labels=labels, quiet=_hours(settings.get("quiet_hours")), **numbers
    )


def _items(value: object) -> Iterable[tuple[str, Any]]:
    return ((str(k), v) for k, v in value.items()) if isinstance(value, Mapping) else ()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wished(wish: object) -> Delays:
    """Parse configured delays: seconds, false for never, true for at once."""
    found = {}
    for channel, value in _items(wish):
        if channel in CHANNELS and (isinstance(value, bool) or (_is_number(value) and value >= 0)):
            found[channel] = NEVER if value is False else 0.0 if value is True else float(value)
    return found


def _hours(value: object) -> tuple[int, int] | None:
    """Parse quiet hours such as "22:00-07:30" into minutes of the day."""
    match = re.fullmatch(r"(\d\d?):(\d\d)\s*-\s*(\d\d?):(\d\d)", str(value or ""))
    if match is None:
        return None
    h1, m1, h2, m2 = map(int, match.groups())
    start, end = 60 * h1 + m1, 60 * h2 + m2
    return (start % 1440, end % 1440) if max(m1, m2) < 60 and max(start, end) <= 1440 else None
