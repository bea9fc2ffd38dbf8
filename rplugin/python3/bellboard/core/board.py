"""The board of all sessions: fold an event, return the verdict and the changes of status.

`fold` is deterministic, and gives the same result in one run or in parts: its whole state is in the
records that `take_dirty` returns for the database and `load` restores.  It is atomic: if a rule
raises, the board is unchanged.  A deadline whose rule raises is dropped and counted.

This file does no I/O, knows no clock, and tolerates any event.
"""

from __future__ import annotations

from copy import copy
from typing import Final

import msgspec

from . import machine
from .deadlines import expire
from .events import AHEAD, Event
from .far import OF_LINKS
from .identity import (
    absorb,
    inherit,
    is_refuted,
    make_room,
    resume,
    runs_in,
    set_origin,
    told_by_mate,
    update_viewers,
)
from .machine import TABLE, Verdict
from .own_report import compared
from .records import TOMBSTONE, Changed, Folded, Records, Step, Transition, refused, why_of
from .routes import ROUTES
from .session import (
    ABSENT,
    Session,
    as_known,
    bring_forward,
    displace,
    published_status,
    take_up,
    whose,
)
from .sources import lead

TWICE: Final = 2.0  # seconds in which a copy of an event (plugin and settings) is a duplicate
LAG: Final = 0.5  # seconds after a turn ended, or was sent on, in which copies of its events come
MOST_RECENT: Final = 12  # events to remember against duplicates, besides those of the last seconds
MOST_EVER: Final = 100  # events to remember in any case
#: What only a thread at work reports.
AT_WORK: Final = frozenset(("tool", "question", "request", "agent question", "agent request"))
STARTS: Final = frozenset({"start", "resume"})
ENDS_OF_TURNS: Final = frozenset({"stop", "failure"})
STARTS_OR_GONE: Final = STARTS | {"process gone"}
#: Actions of users and hosts, which say nothing about the session itself.
NO_NEWS: Final = frozenset(
    (
        *("view", "jump", "set", "label", "name", "park", "snooze", "submit", "facts"),
        *("forget", "restart", "answer", "answer outcome", *OF_LINKS),
    )
)

_NOT_LISTED: Final = refused("the session is not listed, and this event does not start one")
_TWICE: Final = refused("duplicate event")


class Board(Records):
    """All known sessions."""

    def fold(self, e: Event) -> list[Folded]:
        """Fold an event, after the deadlines that fall due before it."""
        before = self.savepoint()
        try:
            return self._fold(e)
        except BaseException:
            self.take_back(before)
            raise

    def advance(self, now: float) -> list[Folded]:
        """Advance to `now`, applying every deadline that falls due."""
        out: list[Folded] = []
        while self._queue and self._queue[0][0] <= now and (found := self._next()):
            when, sid = found
            if when > now:
                break
            self.ledger.clock = max(self.ledger.clock, when)
            try:
                out += self._expire(sid, when)
            except Exception as e:  # a failure in one session must not stop the clock for all
                self.count(f"deadline: {e!r}")
                self._due.pop(sid, None)
        if now > self.ledger.clock:
            self.ledger.clock = now
        return out

    def _fold(self, e: Event) -> list[Folded]:
        e = as_known(self.sessions.get(e.session_id), e)
        out = self.advance(e.clock)
        if e.t > e.clock + AHEAD:
            e = msgspec.structs.replace(e, t=e.clock)
        route = ROUTES.get(e.kind)
        if route is not None:
            out += (self._take(e, step) for step in route(self, e))
        elif e.kind not in TABLE and e.kind not in ROUTES:  # from a trace of a newer version
            out += self._fold(msgspec.structs.replace(e, kind="unknown"))
        elif e.session_id:
            out.append(self._fold_into(e, e.session_id))
            if e.member and e.lead and (told := told_by_mate(self, e)):
                out.append(self._fold_into(told[1], told[0]))
        if self._queue and self._queue[0][0] <= self.ledger.clock:
            out += self.advance(self.ledger.clock)  # a late event may set a deadline already past
        return out

    def _take(self, e: Event, step: Step) -> Folded:
        if isinstance(step, Folded):
            return step
        if isinstance(step, Changed):
            return self._changed(e, *step)
        sid, about = step
        return self._fold_into(about, sid)

    def _expire(self, sid: str, now: float) -> list[Folded]:
        """Apply the deadlines of a session that fall due."""
        old = self.sessions[sid]
        s = copy(old)
        out = []
        was = published_status(s)
        for event in expire(s, now, self.options):
            verdict = machine.apply(s, event, self.options)
            lead(s, max(event.clock, self.ledger.clock))
            bring_forward(s)
            out.append(Folded(event, sid, verdict, self._change(s, was, event, verdict)))
            was = published_status(s)
        s = compared(s, now)
        update_viewers(self, s, old)
        if self.keep(s) and (others := make_room(self, s, old)):
            out[-1] = msgspec.structs.replace(out[-1], changes=out[-1].changes + others)
        return out

    def _fold_into(self, e: Event, sid: str) -> Folded:
        """Fold an event into the session that it is about."""
        old = self.sessions.get(sid)
        if old is None:
            if TABLE[e.kind]["absent"] == ".":
                return Folded(e, sid, _NOT_LISTED)
            s = Session(sid, started=e.t)
        else:
            s = msgspec.structs.replace(old)  # a copy, and faster than `copy`
        from_hook = e.from_hook
        was = published_status(s)
        pid = e.origin.pid if from_hook else e.pid
        if pid != s.pid and (pid or s.aside):
            take_up(s, whose(s, e))
        if (no := _unfit(s, e, from_hook)) is not None:
            return Folded(e, sid, no)
        is_new = s.turn == ABSENT or not (s.hooked or s.processes)  # so far only mentioned
        if from_hook and (is_new or e.origin != s.origin):
            begins = is_new and e.kind != "end"
            set_origin(self, s, e, begins)
            if begins:
                inherit(self, s)
                displace(s)
                if old is None:
                    resume(self, s, e)
        if e.kind not in NO_NEWS:
            absorb(s, e)
        verdict = machine.apply(s, e, self.options)
        if s.turn == ABSENT:
            s.hooked = False
            if old is None:
                return Folded(e, sid, verdict)
        elif from_hook:
            s.hooked = True
            if e.origin.pid is not None and e.kind != "end":
                runs_in(self, s, e.origin.pid)
        return self._changed(e, s, old, was, verdict)

    def _changed(
        self, e: Event, s: Session, old: Session | None, was: str | None, verdict: Verdict
    ) -> Folded:
        """Store a session that an event changed, and return the changes of published statuses."""
        if s.ended and s.turn != ABSENT:
            s.ended, s.end_reason, s.ended_pid = 0.0, "", 0
        now = max(e.clock, self.ledger.clock)
        if s.own_report is not None and s.turn not in (ABSENT, "unknown"):
            machine.state(s, now, self.options)  # which source is the best depends on what happened
        lead(s, now)
        if s.aside:
            bring_forward(s)
        if s.own_report is not None:
            s = compared(s, self.ledger.clock)
        if old is not None and old.pid != s.pid:
            update_viewers(self, s, old)
        moved = self.keep(s)
        changes = self._change(s, was, e, verdict)
        if moved:
            # One that comes back because it asks is not the one that its terminal shows.
            unseen = old is not None and old.turn == ABSENT and is_at_work_unseen(old, e)
            changes += make_room(self, s, old, unseen)
        return Folded(e, s.session_id, verdict, changes)

    def _change(self, s: Session, was: str | None, e: Event, v: Verdict) -> tuple[Transition, ...]:
        now = published_status(s)
        if now == was:
            return ()
        t = max(e.clock, self.ledger.clock)
        return (Transition(t, s.session_id, was, now, v.rule, why_of(e, v)),)


def _unfit(s: Session, e: Event, from_hook: bool) -> Verdict | None:
    """Return why an event must not count for this session, or None."""
    if e.kind in OF_LINKS:
        return None
    if s.machine:
        return refused("it is on another machine; only that reports it")
    if s.turn == ABSENT and s.ended:
        if e.t < s.ended:
            return refused("older than the end of the session")
        same = e.origin.pid is None or not s.ended_pid or e.origin.pid == s.ended_pid
        # A process with several threads may go back to an earlier one, without a start if it is a
        # server: for that, a thread does not end with its terminal.
        resumable = s.end_reason == "rekeyed" or (
            e.origin.shared and s.end_reason != "process gone"
        )
        returns = e.kind == "prompt" and resumable and e.t > s.ended
        returns = returns or is_at_work_unseen(s, e)
        returns = returns or e.kind in STARTS or is_refuted(s, e.t) or e.kind == "facts"
        if not returns and same and e.t < s.ended + TOMBSTONE:
            return refused("the session has ended")
    if from_hook and s.turn != ABSENT and s.hook and e.origin.agent != s.agent:
        return refused("another agent's session has this id")
    if s.left and s.pid in s.left:
        if e.t < s.left[s.pid] + TOMBSTONE and e.kind not in STARTS_OR_GONE:
            return refused("its process now runs another session")
        s.left = {pid: t for pid, t in s.left.items() if pid != s.pid}
    if from_hook:
        recent = s.recent
        before = recent.get(e.key)
        if before is not None and abs(e.t - before) < TWICE and not _is_another(s, e, before):
            return _TWICE
        if len(recent) > MOST_RECENT:
            recent = {k: t for k, t in recent.items() if t > e.t - TWICE}
            if len(recent) > MOST_EVER:
                recent = dict(list(recent.items())[-MOST_RECENT:])
        s.recent = {**recent, e.key: e.t}
    return None


def is_at_work_unseen(s: Session, e: Event) -> bool:
    """Return whether a thread asks or works that was taken to have left for another one."""
    return s.end_reason == "rekeyed" and e.origin.many and e.kind in AT_WORK and e.t > s.ended


def _is_another(s: Session, e: Event, before: float) -> bool:
    """Return whether an event without an id only looks like a copy of an earlier one.

    That is so if the question that it repeats was answered, or an equal tool has begun since; if it
    ends a tool that has asked since; or if it ends a turn that began since, or a subagent's: a CLI
    starts no turn while the hooks at the end of the last one still run.
    """
    if e.kind in ENDS_OF_TURNS:
        return e.anyones or before < s.began or before < s.sent < e.t - LAG
    if e.kind == "prompt":
        return not e.prompt_id and before < s.over < e.t - LAG
    if e.kind == "tool end" and not e.tool_id:
        return any(before < b.since < e.t - LAG for b in s.blocks.values())
    if not e.asks or e.tool_id:
        return False
    is_over = all(b.key != e.key for b in s.blocks.values())
    return is_over or any(t.key == e.tool_key and t.since > before for t in s.tools.values())
