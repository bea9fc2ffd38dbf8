"""Who a session is: where it runs, what it is called, whose place it takes, who sees it.

A session is known by its id; it runs in one or more processes, and has at most one terminal.  A
process runs one session, a terminal holds one: whichever begins there last.  Names and labels move
on with the process, or, where no process is known, with the terminal.
"""

from __future__ import annotations

from copy import copy
from typing import Final

from msgspec.structs import replace

from .events import Event, Origin
from .front import bring_forward, runs_of, take_up
from .ledger import Transition, View
from .records import Records
from .rules.steps import MOVES_ON, end, of_agents
from .session import (
    ABSENT,
    Crew,
    Process,
    Session,
    is_listed,
    owns_pane,
    published_status,
    terminal_of,
)

REKEYED: Final = 10.0  # so long after its end a session can move on under a new id
MOST_PREVIOUS: Final = 20


def sees(view: View, s: Session) -> bool:
    """Whether a view shows this session: its pane only if that is the session's own."""
    if view.session_id:
        return view.session_id == s.session_id
    return bool(view.pane) and (view.tmux, view.pane) == (s.tmux, s.pane) and owns_pane(s)


# ---------------------------------------------------------------- what an event tells of it


def place(records: Records, s: Session, e: Event, begins: bool) -> None:
    """Where an event says that its session is: its terminal, its lead."""
    s.origin = e.origin
    locate(s, e.origin, begins)
    s.pane_tty = pane_tty(records, s)
    lead = records.sessions.get(s.parent) if s.parent else None
    s.teammate = s.teammate or (lead is not None and is_listed(lead))


def locate(s: Session, o: Origin, begins: bool) -> None:
    """Where it is, as its origin tells; what a job or a nested run inherited is not it."""
    env = o.env
    s.agent = o.agent
    if begins:
        s.tty = s.tmux = s.pane = s.pane_tty = s.nvim = ""
        s.headless = env.get("entrypoint", "").startswith("sdk-") and env.get("attended") != "1"
    s.job = s.job or bool(env.get("job"))
    address(s, o)
    s.parent = env.get("parent", s.parent)
    s.project_dir = env.get("project_dir", s.project_dir)
    s.config_dir = env.get("config_dir", s.config_dir)
    s.terminal_program = env.get("terminal", s.terminal_program)
    s.ssh = env.get("ssh", s.ssh)


def address(s: Session, o: Origin, tty_alone: bool = False) -> None:
    """Its terminal; none is a job's own, which inherits that of whoever started it."""
    if s.job:
        return
    s.tty = o.tty or s.tty
    if not tty_alone:
        s.tmux, s.pane = (o.tmux or "", o.pane) if o.pane else (s.tmux, s.pane)
        s.nvim = o.nvim or s.nvim


def pane_tty(records: Records, s: Session) -> str:
    """The terminal that its pane is known to be."""
    return records.ledger.panes.get(f"{s.tmux}\n{s.pane}", "") if s.pane else ""


def absorb(s: Session, e: Event) -> None:
    """The facts in an event that no rule needs."""
    if e.t > s.last:
        s.last = e.t
    s.stale = False
    if e.agent:
        return
    if e.cwd:
        s.cwd = e.cwd
    if e.transcript:
        s.transcript = e.transcript
    if e.mode:
        s.mode = e.mode
    if e.model:
        s.model = e.model
    if e.context:
        s.context = e.context
    if e.prompt:
        s.prompt = e.prompt
    if e.message and e.kind in ("stop", "said text", "said last"):
        s.message = e.message
    if e.title and (e.named or not s.titled):
        s.title, s.titled = e.title, e.named or s.titled


def runs_in(records: Records, s: Session, pid: int) -> None:
    """The hooks of a live process tell that it runs it."""
    known = s.processes.get(pid)
    if known is None:
        records.unbury(pid)
    if known is None or not known.hooked:
        s.processes = {**s.processes, pid: replace(known or Process(pid), hooked=True)}


def inherit(records: Records, s: Session) -> None:
    """What the session that its process had before left running goes on in this one."""
    s.crew, now = Crew(), records.ledger.clock
    for other in records.ran_in(s.pid) if s.pid else ():
        if other.session_id == s.session_id:
            continue
        if other.turn == ABSENT:
            lately = other.ended_pid == s.pid and now <= other.ended + REKEYED
            s.crew = other.crew if lately else s.crew
        elif (run := next((r for r in runs_of(other) if r.pid == s.pid), None)) is not None:
            s.crew = Crew(run.agents, run.shells, of_agents(run.tools), of_agents(run.blocks))


# ---------------------------------------------------------------- whose place it takes


def settle(records: Records, s: Session, old: Session | None) -> tuple[Transition, ...]:
    """After it came, went or moved: one terminal holds one session, one process runs one."""
    was_listed = old is not None and is_listed(old)
    if not is_listed(s):
        if was_listed and s.parent:
            _muster(records, s)
        return ()
    out: list[Transition] = []
    known = old.processes if old is not None and was_listed else {}
    for pid in sorted(s.processes.keys() - known.keys()):
        for other in records.ran_in(pid):
            if other.session_id != s.session_id:
                out += _yield(records, other, s)
    if not was_listed:
        terminal = terminal_of(s)
        for other in records.in_terminal(terminal) if terminal else ():
            if other.session_id != s.session_id:
                out += _yield(records, other, s, terminal)
        _look(records, s)
        if s.parent:
            _muster(records, s)
    return tuple(out)


def _yield(
    records: Records, other: Session, s: Session, terminal: tuple[str, ...] | None = None
) -> list[Transition]:
    """Another session gives up the process or the terminal that this one now has."""
    now = records.ledger.clock
    shared = other.processes.keys() & s.processes.keys()
    ended_lately = other.turn == ABSENT and other.ended and now <= other.ended + REKEYED
    moved_on = other.turn != ABSENT if shared else ended_lately and other.end_reason in MOVES_ON
    if moved_on and other.session_id not in s.previous:
        s.previous = (*other.previous, other.session_id)[-MOST_PREVIOUS:]
        s.label, s.name = s.label or other.label, s.name or other.name
        s.parked = s.parked or other.parked
        s.snoozed_until = max(s.snoozed_until, other.snoozed_until)
        if shared and not (s.tty or s.pane):
            _take_place(s, other)
        records.keep(s)
    if other.turn == ABSENT:
        if shared:
            gone = copy(other)
            gone.processes = {p: x for p, x in other.processes.items() if p not in shared}
            records.keep(gone)
        return []
    gone = copy(other)
    was = published_status(gone)
    places = [run.pid for run in runs_of(other) if terminal and terminal_of(run) == terminal]
    for pid in places if terminal else sorted(shared):
        take_up(gone, pid)
        end(gone, now, "taken over" if terminal else "rekeyed", pid)
        bring_forward(gone)
    records.keep(gone)
    if was == published_status(gone):
        return []
    why = f"{s.session_id} has its {'terminal' if terminal else 'process'} now"
    rule = "taken over" if terminal else "moved on"
    return [Transition(now, gone.session_id, was, published_status(gone), rule, why)]


def _take_place(s: Session, other: Session) -> None:
    """The terminal of a process stays, whichever session it runs."""
    run = next((run for run in runs_of(other) if run.pid == s.pid), None)
    if run is not None:
        s.tty, s.tmux, s.pane = run.tty, run.tmux, run.pane
        s.pane_tty, s.nvim = run.pane_tty, run.nvim


def look_again(records: Records, s: Session, old: Session) -> None:
    """Another of its processes is shown than before, maybe elsewhere: who looks there?"""
    if s.pid != old.pid and old.pid and (s.tmux, s.pane) != (old.tmux, old.pane):
        _views(records, s, 0.0)


def _look(records: Records, s: Session) -> None:
    """A session that begins where somebody looks already is looked at."""
    _views(records, s, s.started)
    records.keep(s)


def _views(records: Records, s: Session, since: float) -> None:
    views = records.ledger.views.items()
    s.viewers = {viewer: max(view.since, since) for viewer, view in views if sees(view, s)}


def _muster(records: Records, member: Session) -> None:
    """Its lead knows its members; a team whose last member ended is over soon."""
    lead = records.sessions.get(member.parent)
    if lead is None or lead is member:
        return
    team = lead.team if member.session_id in lead.team else (*lead.team, member.session_id)
    others = (records.sessions.get(m) for m in team)
    ended = all(m is None or m.turn == ABSENT for m in others)
    lead = copy(lead)
    lead.team, lead.team_over = team, member.ended if ended else 0.0
    records.keep(lead)
