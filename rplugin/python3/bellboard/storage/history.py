"""What happened, as board.db keeps it: transitions, the log of events, notifications sent."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import msgspec

from ..core.events import Event
from ..core.records import Transition
from ..core.untrusted import LARGEST
from .rows import Cells, blob, moderate, number, text, text_or_none, time
from .upkeep import Upkeep

UNREAD: Final = 1000  # transitions: more than other hosts may have read before this one
#: What `_change` reads.
CHANGES: Final = "SELECT id, t, session_id, before, after, rule, why, live FROM transitions"


class Change(NamedTuple):
    """A row of the transitions table."""

    id: int
    transition: Transition
    live: bool  # a host was running when it happened, so it may be announced


class Logged(NamedTuple):
    """An event in the log, with its verdict."""

    id: int
    file: str  # the file that it came in; empty for a deadline
    event: Event
    session_id: str
    rule: str
    taken: bool
    why: str
    before: str | None
    after: str | None


class Sent(NamedTuple):
    """A notification that was sent."""

    t: float
    channel: str
    pid: int  # of the host that sent it
    session_id: str
    status: str | None
    why: str


@cache
def _events() -> msgspec.msgpack.Decoder[Event]:
    """Return the decoder of the log; only some commands read that."""
    return msgspec.msgpack.Decoder(Event)


class History(Upkeep):
    """Reads what happened."""

    transition = 0  # the newest one that was published
    _goes_on = False  # whether that is one after those of another database

    def changes(self) -> list[Change]:
        """Return the transitions since the last call, whichever host wrote them."""
        rows = self.all(f"{CHANGES} WHERE id > ? AND id < {LARGEST} ORDER BY id", self.transition)
        if rows:
            self.transition = rows[-1][0]
        return self.sound("transitions", rows, _change)

    def skip_changes(self, seen: int | None = None) -> None:
        """Skip all transitions up to now, or up to one that the reader has seen."""
        rows = self.all(f"SELECT max(id) FROM transitions WHERE id < {LARGEST}")
        newest = rows[0][0] or 0
        self.transition = newest if seen is None else min(newest, max(0, seen))

    def go_on_after(self, before: History) -> None:
        """Go on where another database ended, within the lock: hosts know transitions by number.

        What other hosts have written since is read as new: once, though hosts try an arrival again.
        """
        last = before.transition
        if not self._goes_on:
            self.transition, self._goes_on = last, True
        self.db.execute(
            "INSERT INTO sqlite_sequence SELECT 'transitions', 0"
            " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'transitions')"
        )
        self.db.execute(
            "UPDATE sqlite_sequence SET seq = ? WHERE name = 'transitions' AND seq < ?",
            (last + UNREAD, last),
        )

    def since(self, last: int, most: int) -> list[Change] | None:
        """Return the published transitions after that one; None if any is gone, or for too many."""
        rows = self.all(
            f"{CHANGES} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
            *(last, self.transition, most + 1),
        )
        oldest = self.all("SELECT min(id) FROM transitions")[0][0]
        if len(rows) > most or last > self.transition or (oldest or 0) > last + 1:
            return None
        return self.sound("transitions", rows, _change)

    def has_transition(self, id: int) -> bool:
        """Return whether there is a transition with that number."""
        return bool(self.all("SELECT 1 FROM transitions WHERE id = ?", id))

    def last_transition(self, session_id: str) -> tuple[int, str | None]:
        """Return the newest transition of a session, 0 if there is none, and where it led."""
        query = "SELECT id, after FROM transitions WHERE session_id = ? ORDER BY id DESC LIMIT 1"
        found = self.all(query, session_id)
        return (number(found[0][0]), text_or_none(found[0][1])) if found else (0, None)

    def standing(self, since: float) -> list[Change]:
        """Return the last transition of each session, if it is not older than that."""
        last = "SELECT max(id) FROM transitions WHERE t >= ? GROUP BY session_id"
        rows = self.all(f"{CHANGES} WHERE id IN ({last})", since)
        return self.sound("transitions", rows, _change)

    def history(self, since: float = 0.0, session_id: str = "") -> list[Transition]:
        """Return the transitions since then, of all sessions or of one, oldest first."""
        rows = self.all(
            f"{CHANGES} WHERE t >= ? AND (? = '' OR session_id = ?) ORDER BY id",
            *(since, session_id, session_id),
        )
        return [change.transition for change in self.sound("transitions", rows, _change)]

    def log(self, session_id: str = "") -> list[Logged]:
        """Return the log of events with their verdicts, oldest first."""
        return self._logged_where("true", session_id)

    def answers(self, since: float = 0.0, session_id: str = "") -> list[Logged]:
        """Return the answers that were given, and what followed them, oldest first."""
        given = self._logged_where("rule IN ('reply', 'outcome') AND taken", session_id)
        return [x for x in given if x.event.t >= since]

    def notices(self, most: int) -> list[Sent]:
        """Return the newest notifications of all hosts, oldest first."""
        rows = self.all(
            "SELECT transition_id, effect, claims.t, pid, session_id, after, why FROM claims"
            " JOIN transitions ON transitions.id = transition_id"
            " WHERE effect LIKE 'notice %' ORDER BY claims.t DESC LIMIT ?",
            most,
        )
        return self.sound("claims", rows[::-1], _sent, columns=2)

    def _logged_where(self, condition: str, session_id: str) -> list[Logged]:
        rows = self.all(
            f"SELECT id, file, {moderate('event')}, session_id, rule, taken, why, before, after"
            f" FROM events WHERE {condition} AND (? = '' OR session_id = ?) ORDER BY id",
            *(session_id, session_id),
        )
        return self.sound("events", rows, _logged)


def _change(r: Cells) -> Change:
    before, after, rule, why = text_or_none(r[3]), text_or_none(r[4]), text(r[5]), text(r[6])
    transition = Transition(time(r[1]), text(r[2]), before, after, rule, why)
    return Change(number(r[0]), transition, bool(r[7]))


def _logged(r: Cells) -> Logged:
    said = text(r[3]), text(r[4]), bool(r[5]), text(r[6]), text_or_none(r[7]), text_or_none(r[8])
    return Logged(r[0], text(r[1]), _events().decode(blob(r[2])), *said)


def _sent(r: Cells) -> Sent:
    channel = text(r[1]).removeprefix("notice ")
    return Sent(time(r[2]), channel, number(r[3]), text(r[4]), text_or_none(r[5]), text(r[6]))
