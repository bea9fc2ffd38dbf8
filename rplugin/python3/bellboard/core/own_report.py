"""Find the session that a program's own report (OSC 7501) is about, and compare both.

The report belongs to the process in front in its terminal.  If hooks, a session file or a server
know that process, the report is kept beside what they show.  Otherwise the program gets a session
of its own, whose status is what it reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Final

from msgspec.structs import replace

from . import machine
from .events import Event
from .front import take_up
from .identity import set_place, speak
from .ledger import TOMBSTONE, Changed, Folded, Step, refused
from .records import Records
from .rules.own_report import ENDS
from .session import (
    ABSENT,
    OwnReport,
    Process,
    Session,
    is_nameless,
    is_told_otherwise,
    nameless,
    published_status,
    stated,
    status_of,
)

#: What a program says → the statuses that agree with it: what you have seen is at rest.
AGREES: Final = {
    "working": frozenset({"working", "background"}),
    "blocked": frozenset({"blocked"}),
    "done": frozenset({"completed", "idle", "background"}),
    "error": frozenset({"error", "idle"}),
    "idle": frozenset({"idle", "background"}),
    "background": frozenset({"background"}),
}
MOMENT: Final = 0.5  # seconds for the others to say the same: a session file is that late
LAST_WORDS: Final = 2.0  # seconds after its end in which what a program said last may arrive
OUTLIVES: Final = frozenset({"done", "error"})  # what stays until seen, even if the program ends


def own_report(records: Records, e: Event) -> Iterator[Step]:
    """Keep what a program reports of itself, and set its status if nothing else does."""
    if e.status == "exit":
        yield from closed(records, e)
        return
    pid = e.pid or 0
    sid = session_of(records, e)
    old = records.sessions.get(sid)
    is_new = old is None or old.turn == ABSENT
    if is_new and has_just_ended(records, sid, e):
        yield Folded(e, sid, refused("the session of its process has just ended"))
        return
    if is_over(records, sid, e):
        yield Folded(e, sid, refused("a program that has ended, or another one, said that"))
        return
    buried = records.ledger.dead.get(pid)
    is_dead = buried is not None and buried in ("", e.started)
    if is_new and e.status in ENDS:
        yield Folded(e, sid, refused("no program is listed there, and this does not start one"))
        return
    if is_dead and not (e.status in OUTLIVES and is_last_word(old, e)):
        yield Folded(e, sid, refused("its process is dead"))
        return
    s = copy(old) if old is not None else Session(sid, started=e.t)
    was = published_status(s)
    take_up(s, pid)
    if is_new:
        s.own_report = None
        set_place(s, e.origin, begins=True)
        s.processes = {} if is_dead else {**s.processes, pid: Process(pid, e.started)}
        s.cwd = e.cwd or s.cwd
    if not is_told_otherwise(s):
        if (p := s.processes.get(pid)) is not None and p.shown:  # a title knows less
            s.processes = {**s.processes, pid: replace(p, says="", asks="", shown=False)}
        speak(s, e.t)
        s.last = max(s.last, e.t)
    if e.source == "app" and not e.agent and is_nameless(sid):
        s.agent = e.origin.agent  # until now only its command was known, or a part of it
    verdict = machine.apply(s, e, records.options)
    if s.turn == ABSENT and old is None:
        yield Folded(e, sid, verdict)
    else:
        yield Changed(s, old, was, verdict)


def closed(records: Records, e: Event) -> Iterator[Step]:
    """End what programs have said in a terminal that is gone: nobody can look at it any more."""
    there = [
        s
        for s in records.in_terminal(("tty", e.origin.tty or ""))
        if s.turn != ABSENT and s.own_report is not None
    ]
    for s in there:
        yield s.session_id, replace(e, pid=s.pid or None)
    if not there:
        yield Folded(e, "", refused("no program is listed there"))


def session_of(records: Records, e: Event) -> str:
    """Return the session that runs in the process of a report: one that names itself first."""
    pid, tty = e.pid or 0, e.origin.tty
    named = records.sessions.get(e.session_id)
    if named is not None and named.turn != ABSENT and pid in named.processes:
        return e.session_id
    there = [
        s
        for s in records.running_in(pid)
        if s.turn != ABSENT
        and not s.processes[pid].shared
        and (not e.started or s.processes[pid].started in ("", e.started))
    ]
    if not there:
        return nameless(pid, e.started)
    best = max(there, key=lambda s: (s.tty == tty, not is_nameless(s.session_id), s.last))
    return best.session_id


def has_just_ended(records: Records, sid: str, e: Event) -> bool:
    """Return whether a known session of its process has ended: another may begin in a moment."""
    return any(
        s.session_id != sid and s.turn == ABSENT and e.t < s.ended + TOMBSTONE
        for s in records.ran_in(e.pid or 0)
        if s.ended_pid == e.pid
    )


def is_over(records: Records, sid: str, e: Event) -> bool:
    """Return whether it was said before its program ended, or before another one's newest report.

    After a time without hosts a terminal says everything again, whoever is in front by now.
    """
    return any(
        (s.session_id != sid or s.turn == ABSENT)
        and s.own_report is not None
        and e.t <= s.own_report.at
        for s in records.in_terminal(("tty", e.origin.tty or ""))
    )


def is_last_word(old: Session | None, e: Event) -> bool:
    """Return whether a program ended right after it had said how: both may arrive in any order."""
    return old is None or (old.own_report is not None and e.t <= old.ended + LAST_WORDS)


def unsaid(report: OwnReport | None) -> OwnReport | None:
    """Return a report after a time without hosts: a terminal says again what still holds."""
    return report and replace(report, unsaid=tuple(report.records))


def compared(s: Session, t: float) -> Session:
    """Return a session after comparing its own report with what hooks and files show."""
    report = s.own_report
    if report is None:
        return s
    says = stated(report.records)
    agrees = not says or not is_told_otherwise(s) or status_of(s) in AGREES[says]
    if agrees == (not report.differs):
        return s
    if not agrees:
        report = replace(report, differs=t)
    else:
        lasted = t - report.differs
        is_long = lasted > MOMENT
        count, seconds = report.count + is_long, report.seconds + is_long * lasted
        report = replace(report, differs=0.0, count=count, seconds=seconds)
    return replace(s, own_report=report)
