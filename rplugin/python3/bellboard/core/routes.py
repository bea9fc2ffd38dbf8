"""Which session an event is about, and what it changes besides a status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Final

import msgspec

from .clock import set_back
from .events import AHEAD, LIVE, UNCOUNTED, Event
from .far import far, far_gone, let_go, link
from .identity import (
    absorb,
    find_viewers,
    inherit,
    is_alone,
    is_refuted,
    pane_tty,
    sees,
    set_place,
    set_terminal,
    speak,
)
from .machine import Verdict, state
from .options import options_of
from .own_report import own_report, unsaid
from .records import (
    TOMBSTONE,
    UNKNOWN,
    Changed,
    Folded,
    Records,
    Step,
    View,
    noted,
    refused,
    with_pane,
    with_view,
)
from .rules.steps import MOVES_ON
from .session import (
    ABSENT,
    RUNS,
    Process,
    Run,
    Session,
    Stated,
    bring_forward,
    is_nameless,
    owns_pane,
    published_status,
    runs_of,
    take_up,
    terminal_of,
)

# Find the session that a session file is about, and what the file says of its process.


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
    lingers = e.status in RUNS and s.end_reason in MOVES_ON and is_new
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
    if e.source == "title" and old is not None and not is_alone(records, old, pid):
        yield Folded(e, sid, refused("its terminal may show another session of its process"))
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
    """Forget the statements about a run, or about all, but for the program's own reports."""
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
    """Return the statement of a session file, a server or a title, and since when it holds.

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


# Find the sessions that evidence is about if it names none, or several.
#
# A route yields steps; the board applies each before the route continues.


# ---------------------------------------------------------------- the host and its clock


def count(records: Records, e: Event) -> Iterator[Step]:
    records.count(f"{e.kind}: {e.name if e.kind == 'unknown' else e.why}")
    yield Folded(e, e.session_id, refused(e.why or "an event of an unknown kind"))


def configure(records: Records, e: Event) -> Iterator[Step]:
    records.configure(options_of(e.settings, records.options))
    yield Folded(e, "", Verdict("configured", True, "Options were set."))


def restart(records: Records, e: Event) -> Iterator[Step]:
    """Forget views and registry values, and mark statuses that are no longer proven."""
    records.note(views={})
    let_go(records, e.t)
    ran = False
    for sid, old in sorted(records.sessions.items()):
        if old.machine:
            continue
        s = copy(old)
        s.viewers, s.own_report = {}, unsaid(s.own_report)
        forget_files(s)
        s.processes = {
            pid: Process(pid, p.started, p.claimed, file_session=p.file_session, shared=p.shared)
            for pid, p in s.processes.items()
        }
        records.keep(s)
        for pid in [run.pid for run in runs_of(s) if run.turn != ABSENT]:
            about = msgspec.structs.replace(e, pid=pid or None)
            ran = True
            yield sid, about
    if not ran:
        yield Folded(e, "", noted("No background process was running, and there was no session."))


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
        if not known.shared:  # a server's terminal is not its sessions' terminal
            set_terminal(s, e.origin, tty_alone=s.hooked)  # its hooks inherit the rest
        s.pane_tty = pane_tty(records, s)
        verdict = noted("Its terminal and child processes were noted.")
        yield Changed(s, old, was, verdict)
    if not there:
        yield Folded(e, "", UNKNOWN)


def client(records: Records, e: Event) -> Iterator[Step]:
    """Note the terminal of a session that a server runs: its client's terminal."""
    old = records.sessions.get(e.session_id)
    if old is None or old.turn == ABSENT or e.pid not in old.processes:
        yield Folded(e, e.session_id, UNKNOWN)
        return
    s = copy(old)
    take_up(s, e.pid)
    s.tty = s.tmux = s.pane = s.nvim = s.kitty = ""
    set_terminal(s, e.origin, shows=True)
    s.pane_tty = pane_tty(records, s)
    find_viewers(records, s, e.t)
    verdict = noted("Its terminal is that of a client of its server.")
    yield Changed(s, old, published_status(old), verdict)


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
    "own report": own_report,
    "process": process,
    "process gone": process_gone,
    "client": client,
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
