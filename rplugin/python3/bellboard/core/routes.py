"""Find the sessions that evidence is about if it names none, or more than one.

A route yields steps; the board applies each before the route continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Final, NamedTuple

import msgspec

from . import machine
from .clock import set_back
from .deadlines import registry_event
from .events import AHEAD, UNCOUNTED, Event
from .far import far, far_gone, let_go, link
from .front import bring_forward, runs_of, take_up
from .identity import absorb, inherit, pane_tty, sees, set_place, set_terminal
from .ledger import Folded, View, noted, refused, with_pane, with_view
from .machine import Verdict
from .options import options_of
from .records import Records
from .session import ABSENT, Process, Session, is_nameless, owns_pane, published_status, terminal_of

TOMBSTONE: Final = 60.0  # seconds to ignore late events of a process that ended
UNKNOWN: Final = refused("it belongs to no known session")


class Changed(NamedTuple):
    """A session that a route has changed, for the board to store."""

    s: Session
    old: Session | None
    was: str | None  # its published status before
    verdict: Verdict


#: An event to fold into a session, a changed session, or a verdict.
Step = tuple[str, Event] | Changed | Folded

# ---------------------------------------------------------------- the host and its clock


def count(records: Records, e: Event) -> Iterator[Step]:
    records.count(f"{e.kind}: {e.name if e.kind == 'unknown' else e.why}")
    yield Folded(e, e.session_id, refused(e.why or "an event of an unknown kind"))


def configure(records: Records, e: Event) -> Iterator[Step]:
    records.configure(options_of(e.settings, records.options))
    yield Folded(e, "", Verdict("configured", True, "Options were set."))


def restart(records: Records, e: Event) -> Iterator[Step]:
    """Forget views and registry values, and let each session doubt its status."""
    records.note(views={})
    let_go(records, e.t)
    ran = False
    for sid, old in sorted(records.sessions.items()):
        if old.machine:
            continue
        s = copy(old)
        s.viewers = {}
        s.processes = {
            pid: Process(pid, p.started, file_session=p.file_session)
            for pid, p in s.processes.items()
        }
        records.keep(s)
        for pid in [run.pid for run in runs_of(s) if run.turn != ABSENT]:
            about = msgspec.structs.replace(e, pid=pid or None)
            ran = True
            yield sid, about
    if not ran:
        yield Folded(e, "", noted("No host was running, and no session."))


# ---------------------------------------------------------------- the CLI's session files


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
    if s.turn == ABSENT and s.ended and pid == s.ended_pid and e.t < s.ended + TOMBSTONE:
        yield Folded(e, sid, refused("the session has ended"))
        return
    known = s.processes.get(pid)
    if known and e.started and known.started and e.started != known.started:
        known = None  # an earlier process with the same pid
    elsewhere = any(s.session_id != sid for s in records.ran_in(pid))
    if known is None and not elsewhere and e.t < s.left.get(pid, -TOMBSTONE) + TOMBSTONE:
        yield Folded(e, sid, refused("the session has ended in that process"))
        return
    value = said(e, known, s.started if elsewhere else 0.0)
    if value == known and (not e.title or e.title == s.title):
        yield Folded(e, sid, refused("the value is unchanged"))
        return
    absorb(s, e)
    was = published_status(s)
    take_up(s, pid)
    if s.turn == ABSENT:
        if known is None:  # else its terminal may be known already
            set_place(s, e.origin, begins=True)
        inherit(records, s)
    if is_end(s, value):
        value = msgspec.structs.replace(value, stood=True)
    s.processes = {**s.processes, pid: value}
    verdict = noted("It counts after the settle time.")
    if value.stood and not (known and known.stood and known.at == value.at):
        verdict = machine.apply(s, registry_event(s, value, e.clock), records.options)
    yield Changed(s, old, was, verdict)


def is_end(s: Session, value: Process) -> bool:
    """Return whether a session file confirms at once that the end just reported was the end."""
    rests = value.says in ("idle", "shell")
    is_told = s.hooked and s.held in ("stop", "fail") and not s.queued
    return rests and is_told and value.at >= s.stopped


def said(e: Event, known: Process | None, began: float) -> Process:
    """Return what the file of a process says now, and since when; a question counts at once.

    `began`: when the session started, if its process ran another one before.
    """
    at, stood = max(began, e.at if e.at <= e.clock + AHEAD else e.t), False
    if known is not None and known.says == e.status and known.at >= at:  # no newer time given
        at, stood = (known.at, known.stood) if known.asks == e.asks else (e.t, False)
    was = known.says if known is not None and known.says != e.status else ""
    return Process(
        pid=e.pid or 0,
        started=e.started or (known.started if known else ""),
        says=e.status,
        asks=e.asks,
        tool=e.tool,
        at=at,
        stood=stood or (e.status == "waiting" and bool(e.asks)) or is_shown_busy(e),
        was=was or (known.was if known else ""),
        file_session=e.session_id,
        children=known.children if known else 0,
        hooked=known is not None and known.hooked,
        shared=known is not None and known.shared,
    )


def is_shown_busy(e: Event) -> bool:
    """Return whether a title says that it is working: unlike a session file, it has no blips."""
    return e.source == "title" and e.status == "busy"


def session_of_file(records: Records, e: Event) -> str:
    """Find the session by its process: older CLIs leave a stale id in the file after /clear."""
    for s in records.running_in(e.pid or 0):
        p = s.processes[e.pid or 0]
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
    for s in there:
        s = copy(s)
        was = s.processes[pid]
        left = Process(pid, was.started, was=was.says, at=e.t, stood=False)
        left = msgspec.structs.replace(left, hooked=was.hooked, shared=was.shared)
        s.processes = {**s.processes, pid: left}
        if s.turn == ABSENT:
            s.processes = {p: x for p, x in s.processes.items() if p != pid}
        records.keep(s)
        yield Folded(e, s.session_id, noted("The session file is gone."))
    if not there:
        yield Folded(e, "", UNKNOWN)


# ---------------------------------------------------------------- processes and panes


def process(records: Records, e: Event) -> Iterator[Step]:
    pid = e.pid or 0
    records.unbury(pid)
    there = records.running_in(pid)
    for old in there:
        s = copy(old)
        was = published_status(s)
        take_up(s, pid)
        known = s.processes[pid]
        children = known.children if e.children == UNCOUNTED else e.children
        seen = msgspec.structs.replace(known, started=e.started or known.started, children=children)
        s.processes = {**s.processes, pid: seen}
        if not known.shared:  # a server's terminal is not that of its sessions
            set_terminal(s, e.origin, tty_alone=s.hooked)  # its hooks inherit the rest
        s.pane_tty = pane_tty(records, s)
        verdict = noted("Its terminal and child processes were noted.")
        yield Changed(s, old, was, verdict)
    if not there:
        yield Folded(e, "", UNKNOWN)


def process_gone(records: Records, e: Event) -> Iterator[Step]:
    pid = e.pid or 0
    found, started = False, ""
    for s in records.running_in(pid):
        started = started or s.processes[pid].started
        if any(run.turn != ABSENT for run in runs_of(s) if run.pid == pid):
            found = True
            yield s.session_id, e
        else:
            s = copy(s)
            s.processes = {p: x for p, x in s.processes.items() if p != pid}
            s.aside = {p: x for p, x in s.aside.items() if p != pid}
            records.keep(s)
    if not (e.started and started and e.started != started):
        records.bury(pid, e.started or started)
    if not found:
        yield Folded(e, "", UNKNOWN)


def pane(records: Records, e: Event) -> Iterator[Step]:
    tmux, pane = e.origin.tmux or "", e.origin.pane or ""
    where = f"{tmux}\n{pane}"
    runs = (run for s in records.sessions.values() for run in runs_of(s))
    needed = {f"{run.tmux}\n{run.pane}" for run in runs if run.pane}
    its = (e.origin.tty or "") if e.alive else None
    records.note(panes=with_pane(records.ledger.panes, where, its, needed))
    found = False
    there = [
        (s.session_id, run.pid)
        for s in records.sessions.values()
        for run in runs_of(s)
        if (run.tmux, run.pane) == (tmux, pane) and run.turn != ABSENT
    ]
    for sid, pid in sorted(there):
        s = copy(records.sessions[sid])
        take_up(s, pid)
        if e.alive and e.origin.tty:
            s.pane_tty = e.origin.tty
            bring_forward(s)
            records.keep(s)
        elif not e.alive and terminal_of(s) is not None and owns_pane(s):
            about = msgspec.structs.replace(e, pid=pid or None)
            found = True
            yield sid, about
    if not found:
        yield Folded(e, "", UNKNOWN)


# ---------------------------------------------------------------- views


def view(records: Records, e: Event) -> Iterator[Step]:
    """Note what a viewer looks at; while its terminal has no focus, switching does not count."""
    known = records.ledger.views.get(e.viewer)
    if known is not None and known.away and not e.source:
        yield Folded(e, "", refused("the viewer's terminal does not have the focus"))
        return
    away = e.source in ("away", "gone")
    view = View(e.session_id, e.origin.tmux or "", e.origin.pane or "", e.t, away)
    kept = None if e.source == "gone" else view
    records.note(views=with_view(records.ledger.views, e.viewer, kept))
    looks = {
        sid: s.turn != ABSENT and sees(view, s)
        for sid, s in records.sessions.items()
        if e.viewer in s.viewers or sees(view, s)
    }
    for sid in sorted(looks):
        yield sid, msgspec.structs.replace(e, alive=looks[sid])
    if not looks:
        yield Folded(e, "", noted("The viewer looks at no session."))


ROUTES: Final[dict[str, Callable[[Records, Event], Iterable[Step]]]] = {
    "junk": count,
    "unknown": count,
    "config": configure,
    "restart": restart,
    "registry": registry,
    "registry gone": registry_gone,
    "process": process,
    "process gone": process_gone,
    "pane": pane,
    "pane gone": pane,
    "view": view,
    "clock": set_back,
    "tick": lambda records, e: (),
    "far": far,
    "far gone": far_gone,
    "link up": link,
    "link down": link,
    "link gone": link,
}
