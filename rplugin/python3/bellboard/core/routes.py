"""Find the sessions that evidence is about if it names none, or several.

A route yields steps; the board applies each before the route continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Final

import msgspec

from .clock import set_back
from .events import UNCOUNTED, Event
from .far import far, far_gone, let_go, link
from .front import bring_forward, runs_of, take_up
from .identity import find_viewers, pane_tty, sees, set_terminal
from .ledger import UNKNOWN, Changed, Folded, Step, View, noted, refused, with_pane, with_view
from .machine import Verdict
from .options import options_of
from .own_report import own_report, unsaid
from .records import Records
from .session import ABSENT, Process, owns_pane, published_status, terminal_of
from .session_files import forget_files, registry, registry_gone

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
