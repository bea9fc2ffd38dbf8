"""board.db, shared by all hosts: one writer at a time, any number of readers, and any may die.

The contract of the hosts (`hosting/turn.py` keeps it, this file supports it):

1. A host takes the write lock (`lock`: BEGIN IMMEDIATE) and only then lists and reads the spool.
   So no host has folded what it finds there, unless its name is in `applied`.
2. Names in `applied` are skipped: their host has not unlinked them yet, or died before it could.
3. Events are folded one by one.  One that raises goes to `spool/bad` with its traceback, and the
   board is unchanged.
4. Sessions, transitions, events and names are written in one transaction (WAL, synchronous=NORMAL:
   the death of a process loses or duplicates nothing; a crash of the machine may lose the last
   moments).
5. Only then are the files unlinked.  A name leaves `applied` in a later transaction, once its file
   is gone: soon, by the host that unlinked it, or later, by whichever host sweeps (`sweep`).
6. Every host publishes from its own cursors (`revision`, `transition`), no matter who committed.

Sessions carry the revision of the transaction that wrote them.  Under the lock, a host updates its
memory with the rows newer than its own revision; a row without a record is a deleted session.  So
the result of a fold, and its clock, depend only on what was committed, not on the host.

Effects that happen once per machine are claimed first (`claim`), so they run at most once.

Versions: `user_version` is the schema.  A newer program migrates under the lock; an older one stops
writing to a newer database (`Newer`).  A damaged database (`Damaged`) is renamed with a date, once
nobody else has it open; the spool loses nothing.  A damaged row moves to a table of its own
(`rows.py`).  Events committed to a file that was removed or replaced (`Replaced`) are not unlinked,
and are folded again.  If the WAL file is lost, a host stops writing: others may have a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import astuple

from ..core.board import Board
from ..core.events import Event
from ..core.records import HIGHEST, LEDGER, Folded, Transition
from ..core.session import is_far, is_listed
from ..core.untrusted import LARGEST
from .database import SCHEMA, Busy, Damaged, Draining, Newer, Replaced
from .pruning import KEEP, Upkeep
from .rows import UNSOUND, Cells, blob, moderate, number, text, text_or_none, time

# What happened, as board.db keeps it: transitions, the log of events, notifications sent.


UNREAD: Final = 1000  # transitions: more than other hosts may have read before this one
#: What `_change` reads.
CHANGES: Final = "SELECT id, t, session_id, before, after, rule, why, live FROM transitions"


class Change(NamedTuple):
    """A row of the transitions table."""

    id: int
    transition: Transition
    live: bool  # a host was running when it happened, so it may be announced

    @property
    def line(self) -> dict[str, Any]:
        """Return it in the form for readers."""
        t = self.transition
        return {
            "t": t.t,
            "session_id": t.session_id,
            "from": t.before,
            "to": t.after,
            "rule": t.rule,
            "why": t.why,
            "live": self.live,
            "id": self.id,
        }


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


class SentNotice(NamedTuple):
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

    def notices(self, most: int) -> list[SentNotice]:
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


def _sent(r: Cells) -> SentNotice:
    channel = text(r[1]).removeprefix("notice ")
    return SentNotice(time(r[2]), channel, number(r[3]), text(r[4]), text_or_none(r[5]), text(r[6]))


# What hosts share in board.db besides sessions: claims, open editors, and options.


#: The types of the shared options.
OPTIONS: Final[dict[str, Any]] = {
    "config": dict[str, Any],
    "watched_since": float,
    "mode": str,
    "bars": list[str],
    "database": str,
    "followers": dict[str, str],
    "looked": dict[str, Any],
    "space": str,
}

ICONS: Final = "icons"  # the option with the icons that were set last
LOOKED: Final = "looked"  # the option with the result of the last look: `hosting/look.py`
SPACE: Final = "space"  # the option with the pid namespace in which processes are looked up
DATABASE: Final = "database"  # the option with the id of this database: another one has another

_encoded = msgspec.msgpack.Encoder().encode


class Editor(NamedTuple):
    """An open Neovim, by the process of its host."""

    pid: int
    server: str  # its address
    tmux: str  # socket of the tmux server that it runs in
    pane: str
    focused: float  # when it last got the focus; 0: it has no screen


class SharedOption(NamedTuple):
    """A shared option."""

    value: Any
    t: float  # when it was set


Claim = tuple[int, str]  # a transition and an effect


class Shared(History):
    """What any host may write, and all may read."""

    # ------------------------------------------------------------ claims

    def claim(self, wanted: Sequence[Claim], pid: int, now: float) -> list[Claim]:
        """Claim effects; return those that this host got.  Each is granted once per machine."""
        with self.lock():
            return [each for each in wanted if self._insert(each, pid, now)]

    def grant(self, claim: Claim, to: str, pid: int, now: float) -> bool:
        """Claim an effect for somebody; return whether it is theirs, also if they ask again."""
        transition, effect = claim
        own = transition, f"granted to {to}: {effect}"
        with self.lock():
            if self._insert(claim, pid, now):
                return not to or self._insert(own, pid, now)
            where = "transition_id = ? AND effect = ?"
            return bool(self.all(f"SELECT 1 FROM claims WHERE {where}", *own))

    def _insert(self, claim: Claim, pid: int, now: float) -> bool:
        query = "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)"
        return self.db.execute(query, (*claim, pid, now)).rowcount == 1

    # ------------------------------------------------------------ editors

    def editors(self) -> list[Editor]:
        """Return the editors that are open, or were when their host died."""
        rows = self.all("SELECT pid, server, tmux, pane, focused FROM editors ORDER BY pid")
        return self.sound("editors", rows, _editor)

    def set_editor(self, editor: Editor) -> None:
        """Record an editor; call this within the lock."""
        self.db.execute("INSERT OR REPLACE INTO editors VALUES (?, ?, ?, ?, ?)", editor)

    def drop_editor(self, pid: int) -> None:
        """Remove an editor; call this within the lock."""
        self.db.execute("DELETE FROM editors WHERE pid = ?", (pid,))

    # ------------------------------------------------------------ options

    def option(self, key: str) -> Any:
        """Return a shared option, or None."""
        rows = self.all(f"SELECT key, {moderate('value')} FROM options WHERE key = ?", key)
        found = self.sound("options", rows, _option)
        return found[0] if found else None

    def options(self) -> dict[str, SharedOption]:
        """Return all shared options."""
        rows = self.all(f"SELECT key, {moderate('value')}, t FROM options")
        return dict(self.sound("options", rows, lambda r: (text(r[0]), _dated(r))))

    def set_option(self, key: str, value: object, pid: int, now: float) -> None:
        """Set a shared option, within the lock; `pid` is the process that sets it."""
        self.is_changed = True  # for those who cache options
        self.db.execute(
            "INSERT OR REPLACE INTO options VALUES (?, ?, ?, ?)", (key, _encoded(value), pid, now)
        )


def _editor(r: Cells) -> Editor:
    if not 0 < number(r[0]) < HIGHEST:
        raise ValueError("invalid process id")
    return Editor(r[0], text(r[1]), text(r[2]), text(r[3]), time(r[4]))


def _option(r: Cells) -> Any:
    value = msgspec.msgpack.decode(blob(r[1]), type=OPTIONS.get(r[0], Any))
    return time(value) if isinstance(value, float) else value


def _dated(r: Cells) -> SharedOption:
    return SharedOption(_option(r), time(r[2]))


#: Kinds of events with the time since which something is true, maybe before it was noticed.
DATED: Final = frozenset(
    {"registry", "process gone", "screen idle", "screen busy", "screen waiting", "far"}
)
TWICE: Final = 60.0  # seconds in which several hosts may report the same finding under one name

__all__ = [
    "KEEP",
    "SCHEMA",
    "Busy",
    "Claim",
    "Damaged",
    "Draining",
    "Editor",
    "Newer",
    "Replaced",
    "Store",
]


_encode = msgspec.msgpack.Encoder().encode


class Store(Shared):
    """The contents of board.db."""

    revision = 0  # the newest one that the board in memory has
    _applied: set[str] | None = None  # cached names, valid until another host commits

    def __init__(self, *given: Any, **how: Any) -> None:
        self.mend: set[str] = set()  # sessions with a damaged row, to be written again
        super().__init__(*given, **how)

    # ------------------------------------------------------------ sessions

    def refresh(self, board: Board) -> set[str]:
        """Update the board in memory with what was committed; return the changed sessions."""
        query = f"SELECT session_id, revision, {moderate('record')} FROM sessions"
        if self.revision:  # otherwise read all: a comparison does not find a damaged revision
            query += f" WHERE revision > {self.revision} AND revision < {LARGEST}"
        rows = self.all(query)
        found = self.sound("sessions", rows, self._known)
        try:
            board.load((sid, body) for sid, _, body in found if body is not None)
        except UNSOUND:
            self._load_singly(board, found)
        for sid, revision, body in found:
            self.revision = max(self.revision, revision)
            if body is None:
                board.drop(sid)
                board.dirty.discard(sid)
        return {r[0] for r in found} - {LEDGER}

    def _known(self, row: Cells) -> tuple[str, int, bytes | None]:
        """Validate a row of sessions; note a damaged one, to be written again."""
        sid = text(row[0])
        try:
            return sid, number(row[1]), None if row[2] is None else blob(row[2])
        except ValueError:
            self.mend.add(sid)
            if isinstance(row[2], bytes):
                return sid, 0, row[2]  # only its time of writing is unknown
            raise

    def _load_singly(self, board: Board, found: Sequence[tuple[str, int, bytes | None]]) -> None:
        for sid, _, body in found:
            if body is not None:
                try:
                    board.load([(sid, body)])
                except UNSOUND as e:
                    self.suspect("sessions", (sid,), e)
                    self.mend.add(sid)

    def write(
        self,
        board: Board,
        names: Iterable[str],
        folded: Sequence[tuple[str, Folded]],
        live_since: float,
        now: float,
        behind: int = 0,
    ) -> None:
        """Write the results of folding these files; call this within the lock.

        Skip the event log if the `behind` files still pending would push these events out of it.
        """
        db = self.db
        rows = [(n, now) for n in names]
        db.executemany("INSERT INTO applied VALUES (?, ?)", rows)
        if self._applied is not None:
            self._applied.update(n for n, _ in rows)
        if folded and behind < self.keep_events:
            log = [_row(file, f) for file, f in folded]
            db.executemany("INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", log)
            far = [row for row in log if is_far(row[0])]
            self.limit("events", self.keep_events, len(log), len(far))
            self.limit_bytes(*(sum(len(row[-1]) for row in rows) for rows in (log, far)))
        if folded:
            board.dirty.add(LEDGER)  # the next host must fold with the same clock
        changes = [
            (*astuple(c), _is_live(f.event, c, live_since)) for _, f in folded for c in f.changes
        ]
        if changes:
            db.executemany("INSERT INTO transitions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", changes)
            far = [row for row in changes if is_far(row[1])]
            self.limit("transitions", self.keep_transitions, len(changes), len(far))
        dirty = board.take_dirty()
        if dirty:
            query = f"SELECT max(revision) FROM sessions WHERE revision < {LARGEST}"
            self.revision = max(self.revision, int(db.execute(query).fetchone()[0] or 0)) + 1
            db.executemany(
                "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)",
                [(sid, self.revision, *_index(board, sid), body) for sid, body in dirty],
            )

    # ------------------------------------------------------------ names

    def applied(self, names: Sequence[str]) -> set[str]:
        """Return which of these names have been folded."""
        if self._applied is not None:
            return self._applied.intersection(names)
        found: set[str] = set()
        for start in range(0, len(names), 500):  # SQLite may allow no more than 999 marks
            part = names[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self.all(f"SELECT name FROM applied WHERE name IN ({marks})", *part)
            found.update(r[0] for r in rows)
        return found

    def caught_up(self) -> None:
        """Note that the commits of others were read, and drop the cached names."""
        self.is_changed, self._applied = False, None

    def remember_applied(self) -> None:
        """Cache the applied names, until another host commits."""
        if self._applied is None:
            self._applied = {r[0] for r in self.all("SELECT name FROM applied")}

    def forget_applied(self, names: Iterable[str]) -> None:
        """Forget names whose files are gone; call this within the lock."""
        names = list(names)
        self.db.executemany("DELETE FROM applied WHERE name = ?", [(n,) for n in names])
        if self._applied is not None:
            self._applied.difference_update(names)

    def sweep(self, now: float, is_there: Callable[[str], bool]) -> None:
        """Forget the names that dead hosts left, and those kept against duplicates."""
        old = now - TWICE
        if self.all("SELECT 1 FROM applied WHERE t NOT BETWEEN ? AND ? LIMIT 1", old, now + TWICE):
            with self.lock():
                rows = self.all("SELECT name, t FROM applied")
                named = self.sound("applied", rows, lambda r: (text(r[0]), time(r[1])))
                gone = [n for n, t in named if not old < t < now + TWICE and not is_there(n)]
                self.forget_applied(gone)


def _row(file: str, f: Folded) -> tuple[Any, ...]:
    own = next((c for c in f.changes if c.session_id == f.session_id), None)
    statuses = (own.before, own.after) if own else (None, None)
    rule, taken, why = f.verdict
    return (f.session_id, file, rule, taken, why, *statuses, _encode(f.event))


def _is_live(e: Event, c: Transition, since: float) -> bool:
    """Return whether it happened, and was not only noticed, while a host was running."""
    happened = min(e.t, e.at) if e.kind in DATED else e.t
    return min(c.t, happened) >= since and c.after != "unknown"


def _index(board: Board, sid: str) -> tuple[bool, float]:
    """Return the other columns of a record: whether it is listed, and its newest evidence."""
    s = board.sessions.get(sid)
    if s is None:
        return False, board.ledger.clock
    return is_listed(s), max(s.last, s.ended)
