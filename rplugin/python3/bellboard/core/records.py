"""The records of the board: its sessions, and a ledger of what they share."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from . import deadlines
from .deadlines import NEVER
from .events import Event
from .machine import Verdict
from .options import Options
from .outward import marks_of
from .session import (
    ABSENT,
    STATUSES,
    URGENCY,
    Run,
    Session,
    is_listed,
    runs_of,
    status_of,
    terminal_of,
)
from .untrusted import LATEST, trimmed

# What is known beyond single sessions, and the result of folding an event.


LEDGER: Final = ""  # its key among the records
MOST_DEAD: Final = 512  # dead processes to remember
TOMBSTONE: Final = 60.0  # seconds to ignore late events of a process that ended
MOST_COUNTED: Final = 200  # kinds of junk to count separately
MOST_PANES: Final = 64  # panes without a session to remember: one may appear later
MOST_VIEWERS: Final = 64  # editors and tmux clients to remember


class View(Struct, frozen=True, gc=False):
    """The session or pane that a viewer looks at, and since when."""

    session_id: str
    tmux: str
    pane: str
    since: float
    away: bool = False  # its terminal does not have the focus, so it looks at nothing


class LinkState(Struct, frozen=True, gc=False):
    """The connection to another machine: whether it is up, and how far that was followed."""

    up: bool
    since: float
    why: str = ""  # it is down
    cursor: str = ""


class Ledger(Struct):
    """The state beside the sessions; replaced, never changed in place, except its clock."""

    clock: float = 0.0
    dead: dict[int, str] = {}  # process → its start, as far as known
    views: dict[str, View] = {}
    panes: dict[str, str] = {}  # server and pane → tty
    counts: dict[str, int] = {}  # junk and unknown events, by name
    links: dict[str, LinkState] = {}  # by machine
    forgotten: int = 0  # listed sessions that were dropped because there were too many


def with_view(views: dict[str, View], viewer: str, view: View | None) -> dict[str, View]:
    """Return the views with that of one viewer replaced, or removed (None)."""
    others = [(name, seen) for name, seen in views.items() if name != viewer]
    own = [(viewer, view)] if view is not None else []
    return dict([*others, *own][-MOST_VIEWERS:])


def with_pane(
    panes: dict[str, str], where: str, tty: str | None, needed: Container[str]
) -> dict[str, str]:
    """Return the terminals of all panes with one replaced, or removed (None).

    Drop the oldest ones that no session needs, because all are written with every commit.
    """
    kept = {known: its for known, its in panes.items() if known != where}
    if tty is not None:
        kept[where] = tty
    spare = [known for known in kept if known not in needed][:-MOST_PANES]
    return {known: its for known, its in kept.items() if known not in spare} if spare else kept


class Transition(Struct, frozen=True, gc=False):
    """A change of a session's published status; None means not listed."""

    t: float
    session_id: str
    before: str | None
    after: str | None
    rule: str
    why: str


class Folded(Struct, frozen=True, gc=False):
    """The result of folding an event."""

    event: Event
    session_id: str
    verdict: Verdict
    changes: tuple[Transition, ...] = ()


class Changed(NamedTuple):
    """A session that a route has changed, for the board to store."""

    s: Session
    old: Session | None
    was: str | None  # its published status before
    verdict: Verdict


#: An event to fold into a session, a changed session, or a verdict.
Step = tuple[str, Event] | Changed | Folded


def noted(why: str) -> Verdict:
    return Verdict("noted", True, why)


def refused(why: str) -> Verdict:
    return Verdict("", False, why)


UNKNOWN: Final = refused("it belongs to no known session")


def why_of(e: Event, v: Verdict) -> str:
    """Return the reason of a verdict, with what it is about."""
    about = e.error or (f"{e.tool}: {e.detail}" if e.tool and e.detail else e.tool or e.detail)
    return f"{v.why.rstrip('.')} ({about})" if about else v.why


# The records of all sessions, with an index by process and terminal, and a queue of deadlines.
#
# `keep` replaces a record and leaves the old one unchanged, so `take_back` can restore the
# state before a failed fold. Index and queue follow from the records alone: they are the same
# whether the records came one by one or from the database.


MOST_SESSIONS: Final = 4096  # sessions in memory, with ended ones; then some are dropped
SHARE: Final = 8  # which part of them is dropped at a time; also how many times as many may ask
MOST_THERE: Final = 64  # in a process or terminal; then the oldest that ended there are dropped
LARGEST_RECORD: Final = 64 << 10  # bytes of a session; 1 kB is usual

Savepoint = tuple[Ledger, float, Options]

_encode = msgspec.msgpack.Encoder().encode
_session = msgspec.msgpack.Decoder(Session).decode
_ledger = msgspec.msgpack.Decoder(Ledger).decode


class Records:
    """All known sessions, and the ledger."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.sessions: dict[str, Session] = {}
        self.ledger = Ledger()
        self.dirty: set[str] = set()
        self._before: dict[str, Session | None] = {}  # as it was at the savepoint
        self._at: dict[object, frozenset[str]] = {}  # process or terminal → its sessions
        self._keys_of: dict[str, frozenset[object]] = {}  # session → its keys in `_at`
        # Session → its next deadline or an earlier time; may be NEVER.
        self._due: dict[str, float] = {}
        self._queue: list[tuple[float, str]] = []

    # ------------------------------------------------------------ loading and storing

    def load(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Load records that a host has written.

        Raise ValueError at the first invalid one; the ones before it are loaded.
        """
        for key, body in records:
            if key == LEDGER:
                ledger = _ledger(body)
                check_ledger(ledger)
                self.ledger = ledger
            else:
                session = _session(body)
                check_session(session, key)
                self._put(key, session)
        self.dirty.clear()

    def take_dirty(self) -> list[tuple[str, bytes | None]]:
        """Return the records changed since the last call; None for a dropped one."""
        keys, self.dirty = self.dirty, set()
        if not keys:
            return []
        gone = sorted(k for k in keys if k != LEDGER and k not in self.sessions)
        kept = sorted(k for k in keys if k in self.sessions)
        return [
            (LEDGER, _encode(self.ledger)),  # always, because it holds the clock
            *((k, self._encoded(k)) for k in kept),
            *((k, None) for k in gone),
        ]

    def _encoded(self, sid: str) -> bytes:
        """Encode a record; trim one that is too large to be written with every event."""
        body = _encode(self.sessions[sid])
        if len(body) <= LARGEST_RECORD:
            return body
        self._put(sid, trimmed(self.sessions[sid]))
        return _encode(self.sessions[sid])

    # ------------------------------------------------------------ the ledger

    def note(self, **changed: Any) -> None:
        """Change the ledger."""
        self.ledger = replace(self.ledger, **changed)
        self.dirty.add(LEDGER)

    def count(self, what: str) -> None:
        counts, what = self.ledger.counts, what[:80]
        if what not in counts and len(counts) >= MOST_COUNTED:
            what = "others"
        self.note(counts={**counts, what: counts.get(what, 0) + 1})

    def bury(self, pid: int, started: str) -> None:
        """Note that a process is dead."""
        kept = list(self.ledger.dead.items())[1 - MOST_DEAD :]
        self.note(dead={**dict(kept), pid: started})

    def unbury(self, pid: int) -> None:
        """Note that a process is alive: its pid was reused."""
        if pid in self.ledger.dead:
            self.note(dead={p: x for p, x in self.ledger.dead.items() if p != pid})

    # ------------------------------------------------------------ one record

    def keep(self, s: Session) -> bool:
        """Store a session with its deadlines; return whether it came, went or moved."""
        sid = s.session_id
        if sid not in self._before:
            self._before[sid] = self.sessions.get(sid)
        self.dirty.add(sid)
        moved = self._put(sid, s)
        if moved:
            self._limit(sid)
        return moved

    def drop(self, sid: str) -> None:
        """Drop a session."""
        if sid in self.sessions:
            self._before.setdefault(sid, self.sessions[sid])
            self._put(sid, None)
            self.dirty.add(sid)

    def _put(self, sid: str, s: Session | None) -> bool:
        old = self.sessions.get(sid)
        if s is None:
            self.sessions.pop(sid, None)
            self._due.pop(sid, None)
        else:
            self.sessions[sid] = s
            if old is None or sid not in self._due or deadlines.is_due_sooner(s, old, self.options):
                when = deadlines.due(s, self.options)
                if when is None:
                    self._due[sid] = NEVER
                elif when < self._due.get(sid, NEVER):  # otherwise `_next` checks it again then
                    self._wake(sid, when)
        if old is not None and s is not None and old is not s and not has_moved(old, s):
            return False
        return self._index(sid, _keys(s)) or old is not s

    def _index(self, sid: str, keys: frozenset[object]) -> bool:
        """Index a session under these keys only; return whether they changed."""
        before = self._keys_of.pop(sid, frozenset())
        if keys:
            self._keys_of[sid] = keys
        for key in before - keys:
            self._at[key] -= {sid}
            if not self._at[key]:
                del self._at[key]
        for key in keys - before:
            self._at[key] = self._at.get(key, frozenset()) | {sid}
        return keys != before

    def _limit(self, sid: str) -> None:
        """Forget some sessions if there are too many where this one is, or altogether."""
        for key in self._keys_of.get(sid, ()):
            if len(self._at[key]) > MOST_THERE:
                self._forget_some(
                    sid, (s for s in self._found(key) if s.turn == ABSENT), MOST_THERE
                )
        more = len(self.sessions) - MOST_SESSIONS
        # Once for many new sessions, not for each: if all of them ask, there is nothing to drop.
        if more > 0 and (more - 1) % max(1, MOST_SESSIONS // SHARE) == 0:
            self._forget_some(sid, self.sessions.values(), MOST_SESSIONS)

    def _forget_some(self, but: str, among: Iterable[Session], most: int) -> None:
        """Drop a share of the most allowed: ended ones first, then what needs you least.

        Those of other machines go first, so that a machine never displaces what runs here.  What
        asks here stays.
        """
        is_flooded = len(self.sessions) > SHARE * MOST_SESSIONS
        ranked = sorted(
            (s for s in among if s.session_id != but and (is_flooded or not _asks_here(s))),
            key=lambda s: (
                *(s.turn != ABSENT, not s.machine, -URGENCY.get(status_of(s), 0)),
                *(max(s.last, s.ended), s.session_id),
            ),
        )[: most // SHARE]
        for s in ranked:
            self.drop(s.session_id)
        if listed := sum(s.turn != ABSENT for s in ranked):
            self.note(forgotten=self.ledger.forgotten + listed)

    @property
    def is_crowded(self) -> bool:
        """Return whether there are about as many sessions as are kept."""
        return len(self.sessions) > MOST_SESSIONS - MOST_SESSIONS // SHARE

    # ------------------------------------------------------------ look-ups

    def running_in(self, pid: int) -> list[Session]:
        """Return the sessions that a process runs, listed ones first."""
        found = (s for s in self._found(pid) if pid in s.processes)
        return sorted(found, key=lambda s: (s.turn == ABSENT, s.session_id))

    def ran_in(self, pid: int) -> list[Session]:
        """Return the sessions that a process runs, or that ended in it, oldest end first."""
        return sorted(self._found(pid), key=lambda s: (s.ended, s.session_id))

    def in_terminal(self, terminal: tuple[str, ...]) -> list[Session]:
        """Return the sessions in a terminal, or that ended in it."""
        return sorted(self._found(terminal), key=lambda s: s.session_id)

    def same(self, s: Session) -> list[Session]:
        """Return the listed sessions that are the same one, seen by a link and in a terminal."""
        there = (x for mark in sorted(marks_of(s)) for x in self._found(mark))
        return [x for x in there if x.turn != ABSENT and bool(x.machine) != bool(s.machine)]

    def _found(self, key: object) -> list[Session]:
        return [self.sessions[sid] for sid in self._at.get(key, ())]

    # ------------------------------------------------------------ time

    def due(self) -> float | None:
        """Return when the next deadline falls due."""
        found = self._next()
        return found[0] if found else None

    def _wake(self, sid: str, when: float) -> None:
        """Schedule a session for this time."""
        self._due[sid] = when
        heappush(self._queue, (when, sid))
        if len(self._queue) > 2 * len(self._due) + 64:  # most of it outdated
            self._queue = sorted((t, key) for key, t in self._due.items() if t < NEVER)

    def _next(self) -> tuple[float, str] | None:
        """Return the next deadline and its session."""
        queue = self._queue
        while queue:
            set_for, sid = queue[0]
            if self._due.get(sid) == set_for:
                when = deadlines.due(self.sessions[sid], self.options)
                if when == set_for:
                    return queue[0]
                self._due[sid] = NEVER
                if when is not None:
                    self._wake(sid, when)
            if queue[0] == (set_for, sid):
                heappop(queue)
        return None

    def configure(self, options: Options) -> None:
        """Set the options, and compute every deadline again."""
        self.options = options
        self._due, self._queue = {}, []
        for sid, s in self.sessions.items():
            self._put(sid, s)

    # ------------------------------------------------------------ savepoint

    def savepoint(self) -> Savepoint:
        self._before = {}
        return self.ledger, self.ledger.clock, self.options

    def take_back(self, savepoint: Savepoint) -> None:
        """Restore the state at the savepoint."""
        self.ledger, self.ledger.clock, options = savepoint
        for sid, old in self._before.items():
            self._put(sid, old)
        if options is not self.options:
            self.configure(options)


def _asks_here(s: Session) -> bool:
    """Return whether a session of this machine asks something, shown or in a moment."""
    return s.turn != ABSENT and not s.machine and bool(s.blocks)


def has_moved(old: Session, s: Session) -> bool:
    """Return whether a session is listed, runs or is shown elsewhere than before."""
    return (
        s.processes is not old.processes
        or s.aside is not old.aside
        or s.ended_pid != old.ended_pid
        or (s.turn == ABSENT) != (old.turn == ABSENT)
        or s.tty != old.tty
        or s.pane != old.pane
        or s.tmux != old.tmux
        or s.nvim != old.nvim
        or s.job != old.job
        or (s.row is not old.row and marks_of(s) != marks_of(old))
    )


def _keys(s: Session | None) -> frozenset[object]:
    """Return the index keys of a session: processes, terminals, what it is known by elsewhere."""
    if s is None:
        return frozenset()
    pids = {pid for pid in (*s.processes, s.ended_pid) if pid}
    terminals = {terminal_of(run) for run in runs_of(s) if is_listed(run) or s.ended}
    return frozenset({*pids, *terminals, *marks_of(s)} - {None})


# Track the files that hold open questions, so that each is deleted with its question.


NONE: frozenset[str] = frozenset()


class Requests:
    """The files of open questions, by session."""

    def __init__(self) -> None:
        self._of: dict[str, frozenset[str]] = {}

    def follow(self, sessions: Mapping[str, Session], changed: Collection[str]) -> frozenset[str]:
        """Follow what changed sessions ask; return the files of questions that have ended."""
        ended = NONE
        for sid in changed:
            s = sessions.get(sid)
            asked, before = _requests_of(s) if s else NONE, self._of.pop(sid, NONE)
            if asked:
                self._of[sid] = asked
            ended |= before - asked
        return ended

    def standing(self) -> frozenset[str]:
        """Return the files of all open questions."""
        return NONE.union(*self._of.values())


def _requests_of(s: Session) -> frozenset[str]:
    """Return the files of a session's questions, in all its runs and in what it left running."""
    if not (s.blocks or s.aside or s.crew.blocks):
        return NONE
    asking = (*(run.blocks for run in runs_of(s)), s.crew.blocks)
    return frozenset(b.request for blocks in asking for b in blocks.values() if b.request)


# Check that a decoded record can be the result of a fold.
#
# Damaged bytes may still decode, to a status that no rule knows or to an impossible time.


TURNS: Final = frozenset((*STATUSES, ABSENT))
HIGHEST: Final = 1 << 31  # above any process id

#: The times of a record.  `msgspec.structs.fields` would take 2 ms of each command.
_times = {
    kind: attrgetter(
        *(
            name
            for base in kind.__mro__
            for name, said in getattr(base, "__annotations__", {}).items()
            if said == "float"
        )
    )
    for kind in (Run, Session)
}


def check_session(s: Session, key: str) -> None:
    """Raise ValueError, with the reason, if no fold can have left this record."""
    if s.session_id != key:
        raise ValueError("the record belongs to another session")
    times = [*s.viewers.values(), *s.left.values(), *_of_run(s)]
    for pid, run in s.aside.items():
        _check_number(pid, run.pid)
        times += _of_run(run)
    for pid, process in s.processes.items():
        _check_number(pid, process.pid)
        times.append(process.states.at)
    _check_times(times)


def _of_run(run: Run) -> list[float]:
    """Return all times of a run; raise ValueError if its status is unknown."""
    if run.turn not in TURNS:
        raise ValueError(f"unknown status {run.turn[:40]!r}")
    times = [*_times[type(run)](run), *run.recent.values(), run.stated.at]
    if run.blocks or run.tools or run.agents or run.shells or run.finished:
        for begun in (run.blocks.values(), run.tools.values(), run.agents.values(), run.shells):
            times += [x.since for x in begun]
        times += [x.t for x in run.finished]
    return times


def _check_number(pid: int, its: int) -> None:
    if pid != its or not 0 <= pid < HIGHEST:
        raise ValueError("invalid process id")


def check_ledger(ledger: Ledger) -> None:
    """Do the same for what is known beyond the sessions."""
    _check_times((ledger.clock, *(view.since for view in ledger.views.values())))
    _check_times([link.since for link in ledger.links.values()])


def _check_times(times: Sequence[float]) -> None:
    if not sum(map(abs, times)) <= LATEST * len(times):  # false for NaN, too
        raise ValueError("impossible time")
