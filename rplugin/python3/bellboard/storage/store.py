"""board.db: what every host shares; one writer at a time, any number of readers, any may die.

The contract of the hosts (`folding.py` keeps it, this file provides for it):

1. A host takes the write lock (`lock`: BEGIN IMMEDIATE) and only then lists and reads the spool.
   So what it finds there has been folded by nobody, or its name is in `applied`.
2. Names in `applied` are skipped: their host has not yet unlinked them, or died before it could.
3. Events are folded one by one; one that raises goes to `spool/bad` with its traceback, and the
   board is as it was before it.
4. Sessions, transitions, events and the names are written in one transaction; COMMIT makes them
   true together (WAL, synchronous=NORMAL: no death of a process loses or doubles anything; the
   death of the machine may lose the last moments).
5. Only then are the files unlinked.  A name leaves `applied` in a later transaction, once its file
   was seen to be gone: soon by the host that unlinked it, else by whoever sweeps (`sweep`).
6. Every host publishes from its own cursors (`revision`, `transition`), whoever committed.

Sessions carry the revision of the transaction that wrote them: a host's memory is brought up to
date, under the lock, with the rows newer than its own revision.  A row without a record is gone.
So what is folded, and with which clock, depends on what was committed alone, not on who folds.

What one event will change may be shown before the lock is had (`preview`): it is folded, shown, and
taken back.  Nothing is counted, announced or kept of that; whoever folds it comes to the same.

What must happen once in the world is claimed first (`claim`): at most once, whoever dies.

Versions: `user_version` is the schema.  A newer program migrates forward under the lock; an older
one that meets a newer database writes no more (`Newer`).  A damaged database (`Damaged`) is set
aside, dated, and only when nobody else has it open; the spool has lost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import astuple

from ..core.board import Board
from ..core.events import Event
from ..core.ledger import LEDGER, Folded, Transition
from ..core.session import is_listed
from .database import Busy, Damaged, Database, Newer
from .schema import SCHEMA

KEEP: Final = 30 * 86400.0  # of history, and of ended sessions
TWICE: Final = 60.0  # so long hosts that see the same thing may tell it under the same name

__all__ = ["SCHEMA", "Busy", "Change", "Claim", "Damaged", "Editor", "Logged", "Newer", "Store"]


class Change(NamedTuple):
    """A transition as it stands in the table."""

    id: int
    transition: Transition
    live: bool  # somebody watched when it happened, so it may be announced


class Logged(NamedTuple):
    """An event of the log, with the verdict on it."""

    id: int
    file: str  # that it came in; empty for what time alone brought
    event: Event
    session_id: str
    rule: str
    taken: bool
    why: str
    before: str | None
    after: str | None


class Editor(NamedTuple):
    """A Neovim that is open, by the process of its host."""

    pid: int
    server: str  # its address
    tmux: str  # socket of the tmux server that it runs in
    pane: str
    focused: float  # when it last got the focus


class Rung(NamedTuple):
    """A notice that was given."""

    t: float
    channel: str
    pid: int  # of the host that gave it
    session_id: str
    status: str | None
    why: str


Claim = tuple[int, str]  # a transition, and what it is to cause

_encode = msgspec.msgpack.Encoder().encode
_event = msgspec.msgpack.Decoder(Event).decode


class Store(Database):
    """What is in board.db."""

    keep_events = 20_000  # of the log that explain and record read
    keep_transitions = 200_000  # a month of the busiest user; against a loop gone wild

    revision = 0  # the newest that the board in memory has seen
    transition = 0  # the newest that was published
    _applied: set[str] | None = None  # the names in that table, as long as nobody else commits

    # ------------------------------------------------------------ sessions

    def refresh(self, board: Board) -> set[str]:
        """Bring the board in memory up to date with what was committed; name what changed."""
        rows = self.all(
            "SELECT session_id, revision, record FROM sessions WHERE revision > ?", self.revision
        )
        if rows:
            self.revision = max(r[1] for r in rows)
            for sid, _, record in rows:
                if record is None:
                    board.drop(sid)
            board.load((sid, record) for sid, _, record in rows if record is not None)
        return {r[0] for r in rows} - {LEDGER}

    def write(
        self,
        board: Board,
        names: Iterable[str],
        folded: Sequence[tuple[str, Folded]],
        live_since: float,
        now: float,
        behind: int = 0,
    ) -> None:
        """Write what files (by their names) came to, within the lock.

        What would leave the bounded log at once, as `behind` more files wait, is not put there.
        """
        db = self.db
        rows = [(n, now) for n in names]
        db.executemany("INSERT OR IGNORE INTO applied VALUES (?, ?)", rows)
        if self._applied is not None:
            self._applied.update(n for n, _ in rows)
        if folded and behind < self.keep_events:
            log = [_row(file, f) for file, f in folded]
            db.executemany("INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", log)
            self._limit("events", self.keep_events)
        if folded:
            board.dirty.add(LEDGER)  # the next host is to fold with the clock that this one met
        changes = [
            (*astuple(c), _is_live(f.event, c, live_since)) for _, f in folded for c in f.changes
        ]
        if changes:
            db.executemany("INSERT INTO transitions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", changes)
            self._limit("transitions", self.keep_transitions)
        dirty = board.take_dirty()
        if dirty:
            revision = db.execute("SELECT max(revision) FROM sessions").fetchone()[0] or 0
            self.revision = max(self.revision, revision) + 1
            db.executemany(
                "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)",
                [(sid, self.revision, *_index(board, sid), body) for sid, body in dirty],
            )

    def _limit(self, table: str, most: int) -> None:
        # with every write: a busy hour between two prunes would else leave a big file for ever
        self.db.execute(
            f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?", (most,)
        )

    def sessions(self) -> list[tuple[str, bytes]]:
        """Every record, for a reader."""
        return self.all("SELECT session_id, record FROM sessions WHERE record IS NOT NULL")

    # ------------------------------------------------------------ names

    def applied(self, names: Sequence[str]) -> set[str]:
        """Which of these were folded already."""
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
        """What others committed has been read; what was remembered of the names may be old."""
        self.is_changed, self._applied = False, None

    def remember_applied(self) -> None:
        """Spare the next look-ups the table, unless another host commits meanwhile."""
        if self._applied is None:
            self._applied = {r[0] for r in self.all("SELECT name FROM applied")}

    def forget_applied(self, names: Iterable[str]) -> None:
        """Forget names whose files were seen to be gone, within the lock."""
        names = list(names)
        self.db.executemany("DELETE FROM applied WHERE name = ?", [(n,) for n in names])
        if self._applied is not None:
            self._applied.difference_update(names)

    def sweep(self, now: float, is_there: Callable[[str], bool]) -> None:
        """Forget the names that dead hosts left, and those kept against telling a thing twice."""
        old = now - TWICE
        if self.all("SELECT 1 FROM applied WHERE t NOT BETWEEN ? AND ? LIMIT 1", old, now + TWICE):
            with self.lock():
                rows = self.all("SELECT name, t FROM applied")
                gone = [n for n, t in rows if not old < t < now + TWICE and not is_there(n)]
                self.forget_applied(gone)

    # ------------------------------------------------------------ history

    def changes(self) -> list[Change]:
        """The transitions since the last call, whoever wrote them."""
        rows = self.all(
            "SELECT id, t, session_id, before, after, rule, why, live FROM transitions"
            " WHERE id > ? ORDER BY id",
            self.transition,
        )
        if rows:
            self.transition = rows[-1][0]
        return [Change(r[0], Transition(*r[1:7]), bool(r[7])) for r in rows]

    def skip_changes(self) -> None:
        """What happened before is history: begin with what comes."""
        self.transition = self.all("SELECT max(id) FROM transitions")[0][0] or 0

    def standing(self, since: float) -> list[Change]:
        """The last transition of each session, if it is not older than that."""
        rows = self.all(
            "SELECT max(id), t, session_id, before, after, rule, why, live FROM transitions"
            " WHERE t >= ? GROUP BY session_id",
            since,
        )
        return [Change(r[0], Transition(*r[1:7]), bool(r[7])) for r in rows]

    def history(self, since: float = 0.0, session_id: str = "") -> list[Transition]:
        rows = self.all(
            "SELECT t, session_id, before, after, rule, why FROM transitions"
            " WHERE t >= ? AND (? = '' OR session_id = ?) ORDER BY id",
            *(since, session_id, session_id),
        )
        return [Transition(*r) for r in rows]

    def log(self, session_id: str = "", since: float = 0.0) -> list[Logged]:
        """The log of events with the machine's verdicts, oldest first."""
        rows = self.all(
            "SELECT id, file, event, session_id, rule, taken, why, before, after FROM events"
            " WHERE ? = '' OR session_id = ? ORDER BY id",
            *(session_id, session_id),
        )
        found = (Logged(r[0], r[1], _event(r[2]), r[3], r[4], bool(r[5]), *r[6:]) for r in rows)
        return [x for x in found if x.event.clock >= since]

    def prune(self, now: float) -> None:
        """Drop what is older than it is kept; the pages freed so are used again."""
        old = now - KEEP
        with self.lock():
            self.db.execute("DELETE FROM transitions WHERE t < ?", (old,))
            self.db.execute("DELETE FROM claims WHERE t < ?", (old,))
            # the newest revision stays: hosts compare theirs with it
            self.db.execute(
                "DELETE FROM sessions WHERE session_id != '' AND NOT listed AND last < ?"
                " AND revision < (SELECT max(revision) FROM sessions)",
                (old,),
            )

    # ------------------------------------------------------------ claims

    def claim(self, wanted: Sequence[Claim], pid: int, now: float) -> list[Claim]:
        """Those of them that this host is the one to do; each once in the world."""
        with self.lock():
            return [
                (transition, effect)
                for transition, effect in wanted
                if self.db.execute(
                    "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)",
                    (transition, effect, pid, now),
                ).rowcount
                == 1
            ]

    def notices(self, most: int) -> list[Rung]:
        """The newest notices that were given, by whichever host, oldest first."""
        rows = self.all(
            "SELECT claims.t, effect, pid, session_id, after, why FROM claims"
            " JOIN transitions ON transitions.id = transition_id"
            " WHERE effect LIKE 'notice %' ORDER BY claims.t DESC LIMIT ?",
            most,
        )
        return [Rung(r[0], r[1].removeprefix("notice "), *r[2:]) for r in rows[::-1]]

    # ------------------------------------------------------------ editors

    def editors(self) -> list[Editor]:
        """Those that are open, or were when their host died."""
        return [Editor(*r) for r in self.all("SELECT * FROM editors ORDER BY pid")]

    def set_editor(self, editor: Editor) -> None:
        """Note one, within the lock."""
        self.db.execute("INSERT OR REPLACE INTO editors VALUES (?, ?, ?, ?, ?)", editor)

    def drop_editor(self, pid: int) -> None:
        """Forget one, within the lock."""
        self.db.execute("DELETE FROM editors WHERE pid = ?", (pid,))

    # ------------------------------------------------------------ options

    def option(self, key: str) -> Any:
        """A value that all hosts share, or None."""
        rows = self.all("SELECT value FROM options WHERE key = ?", key)
        return msgspec.msgpack.decode(rows[0][0]) if rows else None

    def set_option(self, key: str, value: object, pid: int, now: float) -> None:
        """Set it, within the lock; `pid` says who did."""
        self.is_changed = True  # for whoever remembers options
        self.db.execute(
            "INSERT OR REPLACE INTO options VALUES (?, ?, ?, ?)", (key, _encode(value), pid, now)
        )


def _row(file: str, f: Folded) -> tuple[object, ...]:
    own = next((c for c in f.changes if c.session_id == f.session_id), None)
    statuses = (own.before, own.after) if own else (None, None)
    rule, taken, why = f.verdict
    return (f.session_id, file, rule, taken, why, *statuses, _encode(f.event))


def _is_live(e: Event, c: Transition, since: float) -> bool:
    """Whether it happened while somebody watched: told then is not enough, e.g. by a registry."""
    happened = min(e.t, e.at) if e.kind in ("registry", "process gone") else e.t
    return min(c.t, happened) >= since and c.after != "unknown"


def _index(board: Board, sid: str) -> tuple[bool, float]:
    """What the table tells of a record without decoding it: listed or not, and its last news."""
    s = board.sessions.get(sid)
    if s is None:
        return False, board.ledger.clock
    return is_listed(s), max(s.last, s.ended)
