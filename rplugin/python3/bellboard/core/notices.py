"""When to notify: the delay of each channel by status, mode and label, and the user's settings."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from msgspec import Struct

from .deadlines import NEVER
from .events import AHEAD
from .machine import read_table
from .records import Transition
from .session import Session, is_hidden, is_listed, status_of

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
    min_interval: float = 10.0  # seconds between two notices of a session on one channel
    max_per_minute: int = 6  # notices of a channel
    min_turn: float = 10.0  # seconds; the end of a shorter turn is not announced: you are present
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
        for k in ("min_interval", "max_per_minute", "min_turn")
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


# Decide which notifications are due: for which session, on which channel, after which delay.
#
# Transitions and views go in, due notices come out. While a session stays in a status that
# needs attention, each channel may notify once, after its own delay; together the delays form a
# ladder. Everything is checked again when it falls due, so a question answered meanwhile
# notifies nobody.
#
# * Looking at a session is as good as a notification: nothing is sent while it is in view, and the
#   ladder starts again when it no longer is.  It also starts again after a snooze, and never while
#   the session is parked.
# * What was due before a host was running, or before the mode changed, is skipped.
# * The float is a list of what is so now: of these rules only looking, snoozing and parking hold
#   for it.
# * Any other channel announces a session at most once per `min_interval`, and notifies at most
#   `max_per_minute` times of sessions here, and as often of those of other machines: however many
#   these have, no session here waits for them.  What these limits hold back is sent later, if it
#   still applies.
# * While somebody follows this machine, the channels that also reach a person away from the editor
#   are left to that reader, except for sessions of machines that this one follows itself.
# * In quiet hours and in the mode `quiet` only the float appears: only somebody present sees it.
#
# This file does no I/O and knows no clock; `now` and the offset of the local time are
# arguments.


MINUTE: Final = 60.0


class Notice(NamedTuple):
    """A notification that is due on a channel."""

    id: int  # the transition
    session_id: str
    channel: str
    status: str
    is_far: bool = False  # of another machine


class Standing(Struct):
    """A session in a status that needs attention."""

    status: str
    since: float
    begins: float  # when the ladder starts: at `since`, or when somebody last looked
    id: int = 0  # the transition to this status; 0 if it is not to be announced
    label: str = ""
    machine: str = ""  # the machine that decides about it, if it is another one
    short: bool = False
    viewer: str = ""  # a Neovim or tmux client that shows it to somebody
    parked: bool = False
    snoozed_until: float = 0.0
    done: set[str] = set()  # the channels that have notified, or are skipped


class Notices:
    """Tracks the statuses that need attention, and what is due for them; the same in every host."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.zone = 0.0  # offset of the local time, in seconds
        self.is_followed = False  # whether another machine notifies of the sessions of this one
        self._standing: dict[str, Standing] = {}
        self._last: dict[tuple[str, str], float] = {}  # session, channel → when it last notified
        #: By channel, and whether they were of other machines: when the last ones were sent.
        self._sent: dict[tuple[str, bool], deque[float]] = {
            (c, is_far): deque() for c in CHANNELS for is_far in (False, True)
        }
        # Cached delays, by what they depend on.
        self._delays: dict[tuple[str, str, bool, str], float] = {}

    def see(self, sessions: Mapping[str, Session], changed: Iterable[str], now: float) -> None:
        """Update the sessions that may have changed."""
        for sid in changed:
            s = sessions.get(sid)
            if s is None or not _calls(s):
                self._standing.pop(sid, None)
                continue
            status, old = status_of(s), self._standing.get(sid)
            if old is not None and old.status == status and s.since <= now < old.since:
                old.since = s.since  # the clock was set back
            if old is None or (old.status, old.since) != (status, s.since):
                old = Standing(status, s.since, s.since, done=set())
                self._standing[sid] = old
            viewer = next(iter(s.viewers), "")
            if viewer or old.viewer:
                old.begins = now
            old.viewer, old.parked, old.snoozed_until = viewer, s.parked, s.snoozed_until
            old.label, old.machine = s.label, s.machine
            old.short = (
                status in ("completed", "background")
                and 0.0 < s.since - s.began < self.policy.min_turn
            )

    def hear(self, changes: Iterable[tuple[int, Transition, bool]]) -> None:
        """Take committed transitions; announce only those seen while a host ran."""
        for number, t, live in changes:
            standing = self._standing.get(t.session_id)
            if standing is None or not live or t.after != standing.status:
                continue
            if t.t >= standing.since - AHEAD:  # otherwise it is an earlier transition
                standing.id = number

    def set_mode(self, mode: str, now: float) -> None:
        """Change the mode."""
        if mode in MODES and mode != self.policy.mode:
            self.policy, self._delays = self.policy._replace(mode=mode), {}
            self.pass_over(now)

    def pass_over(self, now: float, but: Collection[str] = ()) -> None:
        """Skip everything that is due by now, except for these sessions."""
        for sid, standing in self._standing.items():
            if sid in but:
                continue
            standing.done |= {
                c for c in CHANNELS if c != "float" and self._ready(sid, standing, c) <= now
            }

    def set_back(self, now: float) -> None:
        """Note that the clock was set back: nothing waits for a time that is to come again."""
        for standing in self._standing.values():
            standing.begins = min(standing.begins, now)
        self._last = {key: min(t, now) for key, t in self._last.items()}
        for about, times in self._sent.items():
            self._sent[about] = deque(min(t, now) for t in times)

    # ------------------------------------------------------------ what is due

    def list_for_float(self, now: float) -> tuple[list[str], dict[str, str]]:
        """Return the sessions that the float lists, longest waiting first, and why not others.

        Each that is blocked is in one of both.
        """
        listed, left_out = [], {}
        for sid, s in self._standing.items():
            if s.status != "blocked" and self._delay(s, "float") == NEVER:
                continue
            if why := self._silence(sid, s, now):
                left_out[sid] = why
            else:
                listed.append((s.since, sid))
        return [sid for _, sid in sorted(listed)], left_out

    def _silence(self, sid: str, s: Standing, now: float) -> str:
        """Return why the float does not list a session; empty: it does."""
        delay = self._delay(s, "float")
        if delay == NEVER:
            own = self.policy.labels.get(s.label, {}).get(s.status, {})
            what = f"labels.{s.label}.{s.status}" if "float" in own else s.status
            return f"`notices.{what}.float` is false"
        if s.viewer:
            return f"somebody looks at it: {s.viewer}"
        if s.parked:
            return "parked"
        if s.snoozed_until > now:
            return f"snoozed until {self._time_of_day(s.snoozed_until)}"
        ready = self._ready(sid, s, "float")
        if ready <= now:
            return ""
        return f"held back by `notices.{s.status}.float` until {self._time_of_day(ready)}"

    def _time_of_day(self, t: float) -> str:
        seconds = int((t + self.zone) % DAY)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    def next(self, now: float, able: Collection[str]) -> Notice | None:
        """Return the first notice that is due on an available channel."""
        for sid, s in self._standing.items():
            for channel in able:
                if channel != "float" and self._moment(sid, s, channel, now) <= now:
                    return Notice(s.id, sid, channel, s.status, bool(s.machine))
        return None

    def sent(self, notice: Notice, now: float) -> None:
        """Note that a notice was sent, here or by another host."""
        sid, channel = notice.session_id, notice.channel
        standing = self._standing.get(sid)
        if standing is not None and standing.id == notice.id:
            standing.done.add(channel)
        self._spoke(sid, channel, now)
        times = self._sent[channel, notice.is_far]
        times.append(now)
        while len(times) > max(1, self.policy.max_per_minute):
            times.popleft()

    def wake(self, now: float, able: Collection[str]) -> float:
        """Return when something may next be due, or the float may change."""
        moments, others = [NEVER], set(able) - {"float"}
        for sid, s in self._standing.items():
            moments += [self._moment(sid, s, c, now) for c in others]
            if "float" in able and not (s.viewer or s.parked):
                t = self._ready(sid, s, "float")
                moments.append(t if t > now else NEVER)
        return min(moments)

    def _spoke(self, sid: str, channel: str, now: float) -> None:
        self._last.pop((sid, channel), None)
        self._last[sid, channel] = now
        for key, t in [*islice(self._last.items(), 2)]:  # the oldest; one comes, two may go
            if now - t >= self.policy.min_interval:
                del self._last[key]

    def _delay(self, s: Standing, channel: str) -> float:
        about = s.status, s.label, s.short, channel
        if about not in self._delays:
            self._delays[about] = self.policy.delay(*about)
        return self._delays[about]

    def _ready(self, sid: str, s: Standing, channel: str) -> float:
        """Return when a status has lasted long enough."""
        delay = self._delay(s, channel)
        if delay == NEVER:  # true of most sessions, while many wait
            return NEVER
        last = self._last.get((sid, channel), -NEVER)  # never for the float
        again = last + self.policy.min_interval
        return max(s.begins + delay, s.snoozed_until, again)

    def _moment(self, sid: str, s: Standing, channel: str, now: float) -> float:
        """Return when a channel is to notify, as things are now."""
        if not s.id or s.viewer or s.parked or channel in s.done or not self.policy.max_per_minute:
            return NEVER
        if self.is_followed and channel in AWAY and not s.machine:
            return NEVER
        t = self._ready(sid, s, channel)
        times = self._sent[channel, bool(s.machine)]
        if len(times) >= self.policy.max_per_minute:
            t = max(t, times[-self.policy.max_per_minute] + MINUTE)
        return t if t == NEVER else self.policy.after_quiet(max(t, now), self.zone)


def _calls(s: Session) -> bool:
    """Return whether a session on the board needs attention; channels announce no others."""
    status = status_of(s)
    called = s.unseen if status == "background" else status in LADDERS
    return called and is_listed(s) and not is_hidden(s)
