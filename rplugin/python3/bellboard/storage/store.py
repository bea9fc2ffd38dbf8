"""board.db, shared by all hosts: one writer at a time, any number of readers, and any may die.

The contract of the hosts (`hosting/turn.py` keeps it, this file supports it):

1. A host takes the write lock (`transaction`: BEGIN IMMEDIATE) and only then lists and reads the
   spool.  So no host has folded what it finds there, unless its name is in `applied`.
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
writing to a newer database (`Newer`).  A damaged file (`Damaged`) is renamed with a date, once
nobody else has it open; the spool loses nothing.  A row that does not decode is skipped, noted in
`unsound`, and written over or deleted in the next transaction (`delete_unsound`).  Events committed
to a file that was removed or replaced (`Replaced`) are not unlinked, and are folded again.  If the
WAL file is lost, a host stops writing: others may have a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, convert
from msgspec.structs import astuple

from ..core.board import Board
from ..core.events import Event
from ..core.records import HIGHEST, LEDGER, Folded, Transition
from ..core.session import is_far, is_listed
from ..core.text import line
from ..core.untrusted import LARGEST, LATEST
from ..system.failures import described
from ..system.locks import Lock
from .database import (
    MIGRATIONS,
    PATIENCE,
    SCHEMA,
    Busy,
    Damaged,
    Database,
    Draining,
    Newer,
    Replaced,
)
from .pruning import KEEP, Pruning

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
    "Transaction",
]

#: Kinds of events with the time since which something is true, maybe before it was noticed.
DATED: Final = frozenset(
    {"registry", "process gone", "screen idle", "screen busy", "screen waiting", "far"}
)
TWICE: Final = 60.0  # seconds in which several hosts may report the same evidence under one name
UNREAD: Final = 1000  # transitions: more than other hosts may have read before this one

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

T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode


# ---------------------------------------------------------------- what is in the tables


class Change(NamedTuple):
    """A row of the transitions table."""

    id: int
    transition: Transition
    live: bool  # a host was running when it happened, so it may be announced

    @property
    def line(self) -> dict[str, Any]:
        """Return the transition in the form for readers."""
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
    text: str  # its words; "" if they were not kept


class Editor(NamedTuple):
    """An open Neovim, by the process of its host."""

    pid: Annotated[int, Meta(gt=0, lt=HIGHEST)]
    server: str  # its address
    tmux: str  # socket of the tmux server that it runs in
    pane: str
    focused: Annotated[float, Meta(ge=-LATEST, le=LATEST)]  # when last; 0: it has no screen


def in_front(editors: Iterable[Editor], now: float) -> Editor | None:
    """Return the editor that had the focus last, unless none has a screen."""

    def recent(editor: Editor) -> tuple[bool, float, int]:
        """Return a key by the last focus; a time to come is from before the clock was set back."""
        return editor.focused > 0, editor.focused if editor.focused <= now else 0.0, editor.pid

    last = max(editors, key=recent, default=None)
    return last if last is not None and last.focused > 0 else None


class SharedOption(NamedTuple):
    """A shared option."""

    value: Any
    t: float  # when it was set


Claim = tuple[int, str]  # a transition and an effect
Rows = list[tuple[Any, ...]]

# A cell may hold anything, whatever its column says, so each row is converted to these.
_Number = Annotated[int, Meta(ge=0, lt=LARGEST)]
_Time = Annotated[float, Meta(ge=-LATEST, le=LATEST)]
_SESSION: Final = tuple[str, _Number, bytes | None]
_CHANGE: Final = tuple[_Number, _Time, str, str | None, str | None, str, str, int]
_LOGGED: Final = tuple[_Number, str, bytes, str, str, int, str, str | None, str | None]
_SENT: Final = tuple[_Number, str, _Time, _Number, str, str | None, str, str]
_OPTION: Final = tuple[str, bytes, _Time]
_NAME: Final = tuple[str, _Time]
_CHANGES: Final = "SELECT id, t, session_id, before, after, rule, why, live FROM transitions"
_KEYS: Final = {  # table → the column that names a row; one of claims has no name of its own
    "sessions": "session_id",
    "transitions": "id",
    "events": "id",
    "applied": "name",
    "options": "key",
    "editors": "pid",
}
Sessions = list[tuple[str, int, bytes | None]]

#: What begins the claim that keeps the words of another one.
WORDS: Final = "words of "
UNSOUND: Final = (
    *(TypeError, ValueError, LookupError, ArithmeticError, RecursionError),
    msgspec.MsgspecError,
)


class Store:
    """The contents of board.db."""

    def __init__(
        self,
        home: Path,
        readonly: bool = False,
        network: str | None = None,
        schema: int = SCHEMA,
        migrations: Mapping[int, str] = MIGRATIONS,
        patience: float = PATIENCE,
    ) -> None:
        self.database = Database(home, readonly, network, schema, migrations, patience)
        self.pruning = Pruning(self.database)
        self.drain = Lock(home / "drain.lock")  # who works through a backlog, while others wait
        self.revision = 0  # the newest one that the board in memory has
        self.transition = 0  # the newest one that was published
        self.unsound: dict[tuple[str, Any], str] = {}  # table and name of a row → what is wrong
        self._lost: list[tuple[float, str]] = []  # rows that were unsound: when deleted, which
        self._goes_on = False  # whether `transition` is one after those of another database
        self._applied: set[str] | None = None  # cached names, valid until another host commits

    def close(self) -> None:
        self.drain.close()
        self.database.close()

    def transaction(self) -> Transaction:
        """Hold the write lock; commit at the end, or roll back on an error."""
        return Transaction(self)

    def committed(self, tx: Transaction) -> None:
        """Take over the changes of a committed transaction."""
        self.revision = max(self.revision, tx.revision)
        if self._applied is not None:
            self._applied.difference_update(tx.forgotten)
            self._applied.update(tx.names)
        for row, lost in tx.deleted.items():
            self.unsound.pop(row, None)
            self._lost.append(lost)
        if tx.last is not None and not self._goes_on:
            self.transition, self._goes_on = tx.last, True

    # ------------------------------------------------------------ sessions

    def refresh(self, board: Board) -> set[str]:
        """Update the board in memory from the committed tables; return the changed sessions."""
        query = "SELECT session_id, revision, record FROM sessions"
        if self.revision:  # otherwise read all: a comparison does not find every damaged revision
            query += f" WHERE revision > {self.revision}"
        found: Sessions = self._sound("sessions", self.database.all(query), _SESSION)
        try:
            board.load((sid, body) for sid, _, body in found if body is not None)
        except UNSOUND:
            found = self._loaded_singly(board, found)
        for sid, revision, body in found:
            self.revision = max(self.revision, revision)
            if body is None:
                board.drop(sid)
                board.dirty.discard(sid)
        return {sid for sid, _, _ in found} - {LEDGER}

    def _loaded_singly(self, board: Board, found: Sessions) -> Sessions:
        loaded = []
        for sid, revision, body in found:
            try:
                if body is not None:
                    board.load([(sid, body)])
                loaded.append((sid, revision, body))
            except UNSOUND as e:
                self._suspect("sessions", sid, e)
        return loaded

    # ------------------------------------------------------------ names

    def applied(self, names: Sequence[str]) -> set[str]:
        """Return which of these names have been folded."""
        if self._applied is not None:
            return self._applied.intersection(names)
        found: set[str] = set()
        for start in range(0, len(names), 500):  # SQLite may allow no more than 999 marks
            part = names[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self.database.all(f"SELECT name FROM applied WHERE name IN ({marks})", *part)
            found.update(r[0] for r in rows)
        return found

    def caught_up(self) -> None:
        """Note that the commits of others were read, and drop the cached names."""
        self.database.is_changed, self._applied = False, None

    def remember_applied(self) -> None:
        """Cache the applied names, until another host commits."""
        if self._applied is None:
            self._applied = {r[0] for r in self.database.all("SELECT name FROM applied")}

    def sweep(self, now: float, is_there: Callable[[str], bool]) -> None:
        """Forget names that dead hosts left, and names kept against duplicates."""
        old = now - TWICE
        query = "SELECT 1 FROM applied WHERE t NOT BETWEEN ? AND ? LIMIT 1"
        if self.database.all(query, old, now + TWICE):
            with self.transaction() as tx:
                rows = self.database.all("SELECT name, t FROM applied")
                named: list[tuple[str, float]] = self._sound("applied", rows, _NAME)
                gone = [n for n, t in named if not old < t < now + TWICE and not is_there(n)]
                tx.forget_applied(gone)

    # ------------------------------------------------------------ rows that do not decode

    def lost_since(self, t: float) -> list[str]:
        """Return which rows did not decode and were deleted since then, and why."""
        self._lost = [each for each in self._lost if each[0] > t]
        return [what for _, what in self._lost]

    def _sound(self, table: str, rows: Rows, kind: Any) -> list[Any]:
        """Convert rows that begin with their name; skip and note any that do not decode."""
        try:
            return list(convert(rows, list[kind], builtin_types=(bytes,)))
        except UNSOUND:
            return self._made(table, rows, lambda row: convert(row, kind, builtin_types=(bytes,)))

    def _made(self, table: str, rows: Rows, make: Callable[[Any], T]) -> list[T]:
        found = []
        for row in rows:
            try:
                found.append(make(row))
            except UNSOUND as e:
                self._suspect(table, row[0], e)
        return found

    def _suspect(self, table: str, name: object, why: Exception) -> None:
        self.unsound[table, name] = described(why)

    # ------------------------------------------------------------ transitions

    def changes(self) -> list[Change]:
        """Return the transitions since the last call, whichever host wrote them."""
        rows = self.database.all(
            f"{_CHANGES} WHERE id > ? AND id < {LARGEST} ORDER BY id", self.transition
        )
        if rows:
            self.transition = rows[-1][0]
        return self._changes(rows)

    def _changes(self, rows: Rows) -> list[Change]:
        found = self._sound("transitions", rows, _CHANGE)
        return [Change(id, Transition(*given), bool(live)) for id, *given, live in found]

    def skip_changes(self, seen: int | None = None) -> None:
        """Skip all transitions up to now, or up to one that the reader has seen."""
        rows = self.database.all(f"SELECT max(id) FROM transitions WHERE id < {LARGEST}")
        newest = rows[0][0] or 0
        self.transition = newest if seen is None else min(newest, max(0, seen))

    def since(self, last: int, most: int) -> list[Change] | None:
        """Return the published transitions after a given one; None if any is gone, or too many."""
        rows = self.database.all(
            f"{_CHANGES} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
            *(last, self.transition, most + 1),
        )
        oldest = self.database.all("SELECT min(id) FROM transitions")[0][0]
        if len(rows) > most or last > self.transition or (oldest or 0) > last + 1:
            return None
        return self._changes(rows)

    def has_transition(self, id: int) -> bool:
        """Return whether there is a transition with that number."""
        return bool(self.database.all("SELECT 1 FROM transitions WHERE id = ?", id))

    def last_transition(self, session_id: str) -> tuple[int, str | None]:
        """Return the newest transition of a session, 0 if there is none, and where it led."""
        query = f"{_CHANGES} WHERE session_id = ? ORDER BY id DESC LIMIT 1"
        found = self._changes(self.database.all(query, session_id))
        return (found[0].id, found[0].transition.after) if found else (0, None)

    def standing(self, since: float) -> list[Change]:
        """Return the last transition of each session, if it is not older than that."""
        last = "SELECT max(id) FROM transitions WHERE t >= ? GROUP BY session_id"
        rows = self.database.all(f"{_CHANGES} WHERE id IN ({last})", since)
        return self._changes(rows)

    def history(self, since: float = 0.0, session_id: str = "") -> list[Transition]:
        """Return the transitions since then, of all sessions or of one, oldest first."""
        rows = self.database.all(
            f"{_CHANGES} WHERE t >= ? AND (? = '' OR session_id = ?) ORDER BY id",
            *(since, session_id, session_id),
        )
        return [change.transition for change in self._changes(rows)]

    # ------------------------------------------------------------ the log of events

    def log(self, session_id: str = "") -> list[Logged]:
        """Return the log of events with their verdicts, oldest first."""
        return self._logged_where("true", session_id)

    def logged(self, start: str) -> list[str]:
        """Return the ids of sessions in the log that begin so, whether or not they are listed."""
        query = "SELECT DISTINCT session_id FROM events WHERE substr(session_id, 1, ?) = ?"
        rows = self.database.all(query, len(start), start)
        return [sid for (sid,) in rows if isinstance(sid, str) and sid]

    def answers(self, since: float = 0.0, session_id: str = "") -> list[Logged]:
        """Return the answers that were given, and what followed them, oldest first."""
        given = self._logged_where("rule IN ('reply', 'outcome') AND taken", session_id)
        return [x for x in given if x.event.t >= since]

    def _logged_where(self, condition: str, session_id: str) -> list[Logged]:
        rows = self.database.all(
            "SELECT id, file, event, session_id, rule, taken, why, before, after"
            f" FROM events WHERE {condition} AND (? = '' OR session_id = ?) ORDER BY id",
            *(session_id, session_id),
        )
        return self._made("events", self._sound("events", rows, _LOGGED), _logged)

    # ------------------------------------------------------------ claims

    def claim(self, wanted: Sequence[Claim], pid: int, now: float) -> list[Claim]:
        """Claim effects; return those that this host got.  Each is granted once per machine."""
        with self.transaction() as tx:
            return [each for each in wanted if tx.claim(each, pid, now)]

    def grant(self, claim: Claim, to: str, pid: int, now: float) -> bool:
        """Claim an effect for somebody; return whether it is theirs, also if they ask again."""
        transition, effect = claim
        own = transition, f"granted to {to}: {effect}"
        with self.transaction() as tx:
            if tx.claim(claim, pid, now):
                return not to or tx.claim(own, pid, now)
            where = "transition_id = ? AND effect = ?"
            return bool(self.database.all(f"SELECT 1 FROM claims WHERE {where}", *own))

    def announce(self, claim: Claim, text: str, pid: int, now: float) -> bool:
        """Claim a notification, and keep its words as a claim beside it."""
        number, effect = claim
        with self.transaction() as tx:
            is_ours = tx.claim(claim, pid, now)
            if is_ours:
                tx.claim((number, f"{WORDS}{effect}: {text}"), pid, now)
        return is_ours

    def notices(self, most: int) -> list[SentNotice]:
        """Return the newest notifications of all hosts, oldest first."""
        rows = self.database.all(
            "SELECT sent.transition_id, sent.effect, sent.t, sent.pid, session_id, after, why,"
            " coalesce(substr(words.effect, length(? || sent.effect || ': ') + 1), '')"
            " FROM claims AS sent JOIN transitions ON transitions.id = sent.transition_id"
            " LEFT JOIN claims AS words ON words.transition_id = sent.transition_id"
            " AND instr(words.effect, ? || sent.effect || ': ') = 1"
            " WHERE sent.effect LIKE 'notice %' ORDER BY sent.t DESC LIMIT ?",
            *(WORDS, WORDS, most),
        )
        found = self._sound("claims", rows[::-1], _SENT)
        return [SentNotice(t, effect.removeprefix("notice "), *x) for _, effect, t, *x in found]

    # ------------------------------------------------------------ editors

    def editors(self) -> list[Editor]:
        """Return the editors that are open, or were when their host died."""
        rows = self.database.all(
            "SELECT pid, server, tmux, pane, focused FROM editors ORDER BY pid"
        )
        return self._sound("editors", rows, Editor)

    # ------------------------------------------------------------ options

    def option(self, key: str) -> Any:
        """Return a shared option, or None."""
        found = self._options(
            self.database.all("SELECT key, value, t FROM options WHERE key = ?", key)
        )
        return found[0][1].value if found else None

    def options(self) -> dict[str, SharedOption]:
        """Return all shared options."""
        return dict(self._options(self.database.all("SELECT key, value, t FROM options")))

    def _options(self, rows: Rows) -> list[tuple[str, SharedOption]]:
        return self._made("options", self._sound("options", rows, _OPTION), _option)


class Transaction:
    """The changes to the tables: all are written, or none.

    What is true only within it is an attribute, which the store takes over after COMMIT; a rollback
    drops it.
    """

    def __init__(self, store: Store) -> None:
        self.names: set[str] = set()  # applied
        self.forgotten: set[str] = set()  # names that are no longer
        self.revision = 0  # of what it wrote
        self.last: int | None = None  # the transition of another database after which this goes on
        self.deleted: dict[tuple[str, Any], tuple[float, str]] = {}  # unsound rows: when, which
        self._store, self._db = store, store.database.db
        self._lock = store.database.lock()

    def __enter__(self) -> Transaction:
        self._lock.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._lock.__exit__(kind, error, trace)
        if error is None:
            self._store.committed(self)

    def write(
        self,
        board: Board,
        names: Iterable[str],
        folded: Sequence[tuple[str, Folded]],
        live_since: float,
        now: float,
        behind: int = 0,
    ) -> None:
        """Write the results of folding these files.

        Skip the event log if the `behind` files still pending would push these events out of it.
        """
        db, pruning = self._db, self._store.pruning
        rows = [(n, now) for n in names]
        db.executemany("INSERT INTO applied VALUES (?, ?)", rows)
        self.names.update(n for n, _ in rows)
        if folded and behind < pruning.keep_events:
            log = [_row(file, f) for file, f in folded]
            db.executemany("INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", log)
            far = [row for row in log if is_far(row[0])]
            pruning.limit("events", pruning.keep_events, len(log), len(far))
            pruning.limit_bytes(*(sum(len(row[-1]) for row in rows) for rows in (log, far)))
        if folded:
            board.dirty.add(LEDGER)  # the next host must fold with the same clock
        changes = [
            (*astuple(c), _is_live(f.event, c, live_since)) for _, f in folded for c in f.changes
        ]
        if changes:
            db.executemany("INSERT INTO transitions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", changes)
            far = [row for row in changes if is_far(row[1])]
            pruning.limit("transitions", pruning.keep_transitions, len(changes), len(far))
        dirty = board.take_dirty()
        if dirty:
            query = f"SELECT max(revision) FROM sessions WHERE revision < {LARGEST}"
            known = max(self._store.revision, self.revision)
            self.revision = max(known, int(db.execute(query).fetchone()[0] or 0)) + 1
            db.executemany(
                "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)",
                [(sid, self.revision, *_index(board, sid), body) for sid, body in dirty],
            )

    def forget_applied(self, names: Iterable[str]) -> None:
        """Forget names whose files are gone."""
        names = list(names)
        self._db.executemany("DELETE FROM applied WHERE name = ?", [(n,) for n in names])
        self.forgotten.update(names)

    def delete_unsound(self, now: float) -> set[str]:
        """Delete the rows in `unsound`; return the sessions to write again."""
        for (table, name), why in self._store.unsound.items():
            if table in _KEYS:  # others go after a month
                where = f"CAST({_KEYS[table]} AS BLOB) IS CAST(? AS BLOB)"  # it may be anything
                self._db.execute(f"DELETE FROM {table} WHERE {where}", (name,))
            what = "session" if table == "sessions" else f"row of {table}"
            lost = f"{what} {line(str(name), 80) or 'of all'} ({why})"
            self.deleted[table, name] = (now, lost)
        return {name for table, name in self.deleted if table == "sessions" and type(name) is str}

    def go_on_after(self, before: Store) -> None:
        """Go on where another database ended: hosts know them by number.

        What other hosts have written since is read as new: once, though hosts try an arrival again.
        """
        last = before.transition
        self.last = last
        self._db.execute(
            "INSERT INTO sqlite_sequence SELECT 'transitions', 0"
            " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'transitions')"
        )
        self._db.execute(
            "UPDATE sqlite_sequence SET seq = ? WHERE name = 'transitions' AND seq < ?",
            (last + UNREAD, last),
        )

    def claim(self, claim: Claim, pid: int, now: float) -> bool:
        """Claim an effect; return whether nobody had claimed it."""
        query = "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)"
        return self._db.execute(query, (*claim, pid, now)).rowcount == 1

    def set_editor(self, editor: Editor) -> None:
        """Record an editor."""
        self._db.execute("INSERT OR REPLACE INTO editors VALUES (?, ?, ?, ?, ?)", editor)

    def drop_editor(self, pid: int) -> None:
        """Remove an editor."""
        self._db.execute("DELETE FROM editors WHERE pid = ?", (pid,))

    def set_option(self, key: str, value: object, pid: int, now: float) -> None:
        """Set a shared option; `pid` is the process that sets it."""
        self._store.database.is_changed = True  # for those who cache options
        self._db.execute(
            "INSERT OR REPLACE INTO options VALUES (?, ?, ?, ?)", (key, _encode(value), pid, now)
        )


# ---------------------------------------------------------------- rows


def _row(file: str, f: Folded) -> tuple[Any, ...]:
    own = next((c for c in f.changes if c.session_id == f.session_id), None)
    statuses = (own.before, own.after) if own else (None, None)
    rule, taken, why = f.verdict
    return (f.session_id, file, rule, taken, why, *statuses, _encode(f.event))


def _logged(row: Any) -> Logged:
    id, file, event, session_id, rule, taken, *rest = row
    return Logged(id, file, _events().decode(event), session_id, rule, bool(taken), *rest)


@cache
def _events() -> msgspec.msgpack.Decoder[Event]:
    """Return the decoder of the log; only some commands read that."""
    return msgspec.msgpack.Decoder(Event)


def _option(row: tuple[str, bytes, float]) -> tuple[str, SharedOption]:
    key, value, t = row
    decoded = msgspec.msgpack.decode(value, type=OPTIONS.get(key, Any))
    if isinstance(decoded, float):
        decoded = convert(decoded, _Time)
    return key, SharedOption(decoded, t)


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
