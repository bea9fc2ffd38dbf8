"""Find the session that a session file is about, and what the file says of its process."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import msgspec

from .events import AHEAD, LIVE, Event
from .front import runs_of, take_up
from .identity import absorb, inherit, is_refuted, set_place, speak
from .ledger import TOMBSTONE, UNKNOWN, Changed, Folded, Step, noted, refused
from .machine import state
from .records import Records
from .rules.steps import MOVES_ON
from .session import ABSENT, Process, Run, Session, Stated, is_nameless, published_status


def registry(records: Records, e: Event) -> Iterator[Step]:
    pid = e.pid or 0
    buried = records.ledger.dead.get(pid)
    if buried is not None:
        if not (e.started and buried and e.started != buried):
            yield Folded(e, e.session_id, refused("its process is dead"))
            return
        records.unbury(pid)
    named = any(
        s.turn != ABSENT and (not is_nameless(s.session_id) or s.session_id == e.session_id)
        for s in records.running_in(pid)
    )
    if e.source == "discovered" and named:
        yield Folded(e, e.session_id, refused("the session of its process is known"))
        return
    sid = session_of_file(records, e)
    old = records.sessions.get(sid)
    s = copy(old) if old is not None else Session(sid, started=e.t)
    # After its end, hooks may run before the next session of its process begins.
    is_new = e.at > s.ended - records.options.settle  # our hook of the end may be stamped later
    lingers = e.status == "busy" and s.end_reason in MOVES_ON and is_new
    lingers = lingers or is_refuted(s, e.at)
    is_over = s.turn == ABSENT and s.ended and pid == s.ended_pid and e.t < s.ended + TOMBSTONE
    if is_over and not lingers:
        yield Folded(e, sid, refused("the session has ended"))
        return
    known = s.processes.get(pid)
    if known and e.started and known.started and e.started != known.started:
        known = None  # an earlier process with the same pid
    elsewhere = any(s.session_id != sid for s in records.ran_in(pid))
    if known is None and not elsewhere and e.t < s.left.get(pid, -TOMBSTONE) + TOMBSTONE:
        yield Folded(e, sid, refused("the session has ended in that process"))
        return
    if is_held_back(e, known):
        yield Folded(e, sid, refused("its server says that it waits"))
        return
    word = said(e, known, s.started if elsewhere else 0.0)
    value = process_of(e, known, word)
    if value == known and (not e.title or e.title == s.title):
        yield Folded(e, sid, refused("the value is unchanged"))
        return
    for other in records.running_in(pid):
        if other.session_id != sid and not other.processes[pid].shared:
            records.keep(moved_on(other, pid))
    stays = known is None or known.file_cwd in ("", e.cwd)
    absorb(s, msgspec.structs.replace(e, cwd="") if stays and s.cwd and is_hooked(s, pid) else e)
    was = published_status(s)
    take_up(s, pid)
    if says_more(e, known, word):
        speak(s, word.at)
    if s.turn == ABSENT and not is_over:
        if known is None:  # otherwise its terminal may already be known
            set_place(s, e.origin, begins=True)
        inherit(records, s)
    s.processes = {**s.processes, pid: value}
    yield Changed(s, old, was, state(s, e.clock, records.options))


def says_more(e: Event, known: Process | None, word: Stated) -> bool:
    """Return whether the CLI has reported something: what a new host reads first is older."""
    before = known.states if known is not None else Stated()
    changed = (before.says, before.asks, before.at) != (word.says, word.asks, word.at)
    return changed and (e.at < e.t or bool(before.says))


def moved_on(s: Session, pid: int) -> Session:
    """Return a session after the file of its process names another one."""
    s = copy(s)
    others = {p: x for p, x in s.processes.items() if p != pid}
    silent = msgspec.structs.replace(s.processes[pid], states=Stated())
    s.processes = others if s.turn == ABSENT else {**others, pid: silent}
    forget_files(s, pid)
    return s


def forget_files(s: Session, pid: int | None = None) -> None:
    """Forget what others than its own report state of a run, or of all."""
    gone = {"stated": Stated(), "stood": True, "leads": 0.0, "overruled": 0.0}

    def is_its(run: Run) -> bool:
        return pid in (None, run.pid) and run.stated.source != "report"

    s.aside = {
        p: msgspec.structs.replace(r, **gone) if is_its(r) else r for p, r in s.aside.items()
    }
    if is_its(s):
        for name, value in gone.items():
            setattr(s, name, value)


def said(e: Event, known: Process | None, began: float) -> Stated:
    """Return what a session file, a server or a title states, and since when.

    `began`: when the session started, if its process ran another one before.
    """
    at = max(began, e.at if e.at <= e.clock + AHEAD else e.t)
    before = known.states if known is not None else Stated()
    if before.says == e.status and before.at >= at:  # no newer time given
        at = before.at if before.asks == e.asks else e.t
    source = e.source if e.source in LIVE else "file"
    return Stated(e.status, e.asks, e.tool, "", at, source)


def process_of(e: Event, known: Process | None, states: Stated) -> Process:
    return Process(
        pid=e.pid or 0,
        started=e.started or (known.started if known else ""),
        states=states,
        file_session=e.session_id,
        file_cwd=e.cwd,
        children=known.children if known else 0,
        hooked=known is not None and known.hooked,
        shared=known is not None and known.shared,
        spare=e.spare,
    )


def is_held_back(e: Event, known: Process | None) -> bool:
    """Return whether a title still shows work: a dialog opens once nobody has typed for a while."""
    waits = known is not None and known.states.source == "server" and known.states.says == "waiting"
    return waits and e.source == "title" and e.status == "busy"


def session_of_file(records: Records, e: Event) -> str:
    """Find the session by its process: older CLIs leave a stale id in the file after /clear."""
    for s in records.running_in(e.pid or 0):
        p = s.processes[e.pid or 0]
        if p.shared and s.session_id != e.session_id:
            continue  # it runs the sessions of many terminals
        if s.turn == ABSENT or (e.started and p.started and e.started != p.started):
            continue
        if is_hooked(s, e.pid or 0) and p.file_session in ("", e.session_id):
            return s.session_id
    return e.session_id


def is_hooked(s: Session, pid: int) -> bool:
    return any(run.hooked for run in runs_of(s) if run.pid == pid)


def registry_gone(records: Records, e: Event) -> Iterator[Step]:
    pid = e.pid or 0
    there = records.running_in(pid)
    for old in there:
        s = copy(old)
        was = published_status(s)
        p = s.processes[pid]
        left = Process(pid, p.started, hooked=p.hooked, shared=p.shared)
        s.processes = {**s.processes, pid: left}
        if s.turn == ABSENT:
            s.processes = {p: x for p, x in s.processes.items() if p != pid}
            records.keep(s)
            yield Folded(e, s.session_id, noted("The session file is gone."))
            continue
        take_up(s, pid)
        verdict = state(s, e.clock, records.options)
        yield Changed(s, old, was, verdict if verdict.rule else noted("The session file is gone."))
    if not there:
        yield Folded(e, "", UNKNOWN)
