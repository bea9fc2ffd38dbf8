"""Find the session that a program's own report (OSC 7501) is about, and keep what it says.

The report belongs to the process in front in its terminal.  If hooks, a session file or a server
know that process, it is a source of their session, the best one (`sources.py`).  Otherwise the
program gets a session of its own.

A process such as `ssh` leads elsewhere (`Origin.through`): nothing is known of the programs there
but what they report.  One of them may be another board, which reports each of its sessions
(`outward.py`); each is one of ours until that ends it, or a link to its machine shows it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Final

from msgspec.structs import replace

from .events import Event
from .identity import is_alone, set_place, speak
from .machine import Verdict, state
from .options import Options
from .outward import of_another
from .program_status import Record, Report, asked, at_prompt, stated, taken, within
from .records import TOMBSTONE, Changed, Folded, Records, Step, refused
from .rules.steps import end, turn_to_work
from .session import (
    ABSENT,
    FILES,
    OwnReport,
    Process,
    Session,
    Shell,
    Stated,
    Subagent,
    is_nameless,
    is_told_otherwise,
    nameless,
    own,
    published_status,
    take_up,
)
from .sources import is_dialog, reported

ENDS: Final = frozenset({"clear", "prompt", "exit"})  # what says nothing but that something is over
MOMENT: Final = 1.0  # seconds for the others to say the same
LAST_WORDS: Final = 2.0  # seconds after its end in which what a program said last may arrive
OUTLIVES: Final = frozenset({"done", "error"})  # what stays until seen, even if the program ends


def own_report(records: Records, e: Event) -> Iterator[Step]:
    """Keep a program's report of itself, and set its session to it."""
    if e.status == "exit":
        yield from closed(records, e)
        return
    if e.status in ENDS:
        there = [s for s in records.running_in(e.pid or 0) if s.record and s.turn != ABSENT]
        for s in there:
            if not e.agent or within(s.record, e.agent):
                yield _reported(records, e, s.session_id)
        if there and of_another(e.agent, ""):
            return
    elif of_another(e.agent, e.origin.agent):
        yield _of_board(records, e)
        return
    yield _reported(records, e, session_of(records, e))


def _of_board(records: Records, e: Event) -> Step:
    """Keep what another board, as of a Neovim over ssh, reports of one of its sessions."""
    if not of_another(e.agent, ""):
        return Folded(e, "", refused("another board reports each of its sessions, too"))
    sid = f"{nameless(e.pid or 0, e.started)}-{e.agent.replace('/', '-')}"
    return _reported(records, e, sid, e.agent)


def _reported(records: Records, e: Event, sid: str, record: str = "") -> Step:
    """Set a session to a report; `record`: that of another board."""
    pid = e.pid or 0
    old = records.sessions.get(sid)
    is_new = old is None or old.turn == ABSENT
    if is_new and has_just_ended(records, sid, e):
        return Folded(e, sid, refused("the session of its process has just ended"))
    if is_over(records, sid, e):
        return Folded(e, sid, refused("a program that has ended, or another one, said that"))
    if old is not None and not is_new and not is_alone(records, old, pid):
        return Folded(e, sid, refused("its terminal may show another session of its process"))
    buried = records.ledger.dead.get(pid)
    is_dead = buried is not None and buried in ("", e.started)
    if is_new and e.status in ENDS:
        return Folded(e, sid, refused("no program is listed there, and this does not start one"))
    if is_dead and not (e.status in OUTLIVES and is_last_word(old, e)):
        return Folded(e, sid, refused("its process is dead"))
    s = copy(old) if old is not None else Session(sid, started=e.t)
    was = published_status(s)
    take_up(s, pid)
    if is_new:
        s.own_report = None
        s.record = record
        set_place(s, e.origin, begins=True)
        s.cwd = "" if s.through else e.cwd or s.cwd
    if is_new or (s.through and e.status not in ENDS):
        s.processes = {} if is_dead else {**s.processes, pid: Process(pid, e.started)}
    if is_new and any(not x.stale for x in records.same(s)):
        return Folded(e, sid, refused("a link to its machine shows it"))
    if not is_told_otherwise(s):
        s.last = max(s.last, e.t)
    speak(s, e.t)
    if e.source == "app" and not e.agent and is_nameless(sid):
        s.agent = e.origin.agent  # until now only its command was known, or a part of it
    verdict = heard(s, replace(e, agent="") if s.record else e, records.options)
    if e.status == "prompt" and s.through:  # it has ended over there
        s.processes = {}  # what is done goes once it was seen
        if s.turn == "idle":
            end(s, e.t, "its own report", pid)
    if s.turn == ABSENT and old is None:
        return Folded(e, sid, verdict)
    return Changed(s, old, was, verdict)


def heard(s: Session, e: Event, o: Options) -> Verdict:
    """Keep a report, and set the run to the sum of the program's reports."""
    before = s.own_report or OwnReport()
    records = _heard(before.records, e)
    was, now = stated(before.records), stated(records)
    # A turn may have passed in a time without hosts, after which everything is said again.
    is_missed = bool(before.unsaid) and e.t > before.at and e.status in OUTLIVES
    unsaid = tuple(x for x in before.unsaid if x != e.agent)
    is_same = was == now and (now != "blocked" or asked(before.records) == asked(records))
    said = before.said if is_same and not is_missed else e.t
    s.own_report = replace(
        before,
        records=records,
        at=max(before.at, e.t),
        said=said,
        unsaid=unsaid,
        doubted=before.doubted and is_same,
    )
    root = records.get("") or Record(now, e.t)
    if not s.hooked:
        _name_parts(s, now, records)
        s.title = root.title if root.title and not s.titled else s.title
    if is_same and not is_missed and s.turn != "unknown":
        s.trusted_until = 0.0
        return refused("it has said that before")
    if not (now or is_told_otherwise(s)):
        if s.turn == ABSENT:
            return refused("no program is listed there, and this does not start one")
        end(s, e.t, "its own report", s.pid)
        return Verdict("leave", True, "It says no more.")
    if s.turn == ABSENT and now in OUTLIVES:
        turn_to_work(s, e.t)
    return state(s, e.clock, o)


def _name_parts(s: Session, now: str, records: Mapping[str, Record]) -> None:
    """Show the parts that a program reports as its agents, or its shells once it is at rest."""
    parts = [(x, r) for x, r in records.items() if x and r.state in ("working", "blocked")]
    if now == "background":
        s.agents, s.shells = (
            {},
            tuple(Shell(x, "shell", r.since, r.title or r.msg) for x, r in parts),
        )
    else:
        s.shells = ()
        s.agents = {x: Subagent(x, "task", r.since, r.title or r.msg) for x, r in parts}


def _heard(records: Mapping[str, Record], e: Event) -> Mapping[str, Record]:
    """Return its records after a report, at the next prompt of its shell, or without a terminal."""
    if e.status == "prompt":
        kept = at_prompt(records)  # a part that is done says nothing of the whole
        return kept if "" in kept or "" not in records else {}
    if e.status == "exit":
        return {}
    said = (e.status, e.agent, e.asks, "", e.progress, e.title, e.detail)
    return taken(records, Report(*said), e.t)


def closed(records: Records, e: Event) -> Iterator[Step]:
    """End the reports of a terminal that is gone: nobody can look at it any more."""
    there = [
        s
        for s in records.in_terminal(("tty", e.origin.tty or ""))
        if s.turn != ABSENT and s.own_report is not None
    ]
    for old in there:
        s = copy(old)
        take_up(s, s.pid)
        yield Changed(s, old, published_status(old), heard(s, e, records.options))
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
        and not (s.processes[pid].shared or s.record)
        and (not e.started or s.processes[pid].started in ("", e.started))
    ]
    if not there:
        return nameless(pid, e.started)
    best = max(there, key=lambda s: (s.tty == tty, not is_nameless(s.session_id), s.last))
    return best.session_id


def has_just_ended(records: Records, sid: str, e: Event) -> bool:
    """Return whether a known session of its process has ended: another may begin in a moment."""
    return any(
        s.turn == ABSENT and e.t < s.ended + TOMBSTONE and not is_nameless(s.session_id)
        for s in records.ran_in(e.pid or 0)
        if s.ended_pid == e.pid
    )


def is_over(records: Records, sid: str, e: Event) -> bool:
    """Return whether it was said before its program ended, or before another one's newest report.

    After a time without hosts a terminal says everything again, whoever is in front by now.
    """
    return any(
        (s.turn == ABSENT if s.session_id == sid else not s.record)
        and s.own_report is not None
        and e.t <= s.own_report.at
        for s in records.in_terminal(("tty", e.origin.tty or ""))
    )


def is_last_word(old: Session | None, e: Event) -> bool:
    """Return whether a program ended right after it had said how: both may arrive in any order."""
    return old is None or (old.own_report is not None and e.t <= old.ended + LAST_WORDS)


def unsaid(report: OwnReport | None) -> OwnReport | None:
    """Return a report after a time without hosts: a terminal repeats those that still hold."""
    return report and replace(report, unsaid=tuple(report.records))


def compared(s: Session, t: float) -> Session:
    """Return a session after comparing its own report with its session file or server."""
    report, p = s.own_report, own(s)
    if report is None:
        return s
    its = reported(report)
    other = p.states if p is not None and p.states.source in FILES else Stated()
    agrees = not its.says or not other.says or is_dialog(other) or its.says == other.says
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
