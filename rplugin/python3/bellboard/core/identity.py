"""The identity of a session: where it runs, its name, which session it replaces, who sees it.

A session is known by its id.  It runs in one or more processes and has at most one terminal.  A
process, unless it is a server, holds one session: the one that started there last.  One that runs
several at once also holds those that work or ask.

A terminal holds one session as well, except that a process that is seen to run shares it (CTRL-Z
and another agent, an agent without a screen that another one runs): its own end ends it.  That a
session lost its terminal is only inferred: any newer event of its process proves otherwise.

Names and labels move on with the process or, if no process is known, with the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Final

from msgspec.structs import replace

from .events import MATE, Event, Origin
from .records import Records, Transition, View
from .rules.crew import dismiss
from .rules.steps import MOVES_ON, end, of_agents
from .session import (
    ABSENT,
    Crew,
    Process,
    Run,
    Session,
    Stated,
    bring_forward,
    is_listed,
    is_nameless,
    owns_pane,
    published_status,
    runs_of,
    says_itself,
    status_of,
    stays,
    take_up,
    terminal_of,
)
from .sources import TERMINAL, best

REKEYED: Final = 10.0  # seconds after its end in which a session can continue under a new id
TAKEN_OVER: Final = "taken over"  # the end of a session whose terminal another one has now
MOST_PREVIOUS: Final = 20
MOST_EDITED: Final = 8
#: What others find out about a session, besides hooks. Notes in a transcript repeat what is known;
#: a session file says when its status began.
NO_WORD: Final = frozenset({"note", "registry", "process gone", "pane gone"})
#: What besides shows no progress of its main thread.
NO_MOVE: Final = NO_WORD | {"said attempt", "said retry", "screen busy", "screen idle"}
RESUMED: Final = frozenset({"resume", "fork"})  # how a start says that it continues another


def sees(view: View, s: Session) -> bool:
    """Return whether a view shows this session; a pane counts only if it is the session's own."""
    if view.session_id:
        return view.session_id == s.session_id
    return bool(view.pane) and (view.tmux, view.pane) == (s.tmux, s.pane) and owns_pane(s)


# ---------------------------------------------------------------- facts from an event


def set_origin(records: Records, s: Session, e: Event, begins: bool) -> None:
    """Set the terminal and the lead of a session from an event."""
    s.origin = e.origin
    set_place(s, e.origin, begins)
    s.pane_tty = pane_tty(records, s)
    lead = records.sessions.get(s.parent) if s.parent else None
    s.teammate = s.teammate or (lead is not None and is_listed(lead))


def set_place(s: Session, o: Origin, begins: bool) -> None:
    """Set where a session is from its origin; ignore what a job or a nested run inherited."""
    env = o.env
    s.agent = o.agent
    if begins:
        s.tty = s.tmux = s.pane = s.pane_tty = s.nvim = s.kitty = ""
        s.through, s.connection = o.through, o.connection
        s.headless = env.get("entrypoint", "").startswith("sdk-") and env.get("attended") != "1"
    s.job = s.job or bool(env.get("job"))
    set_terminal(s, o)
    s.parent = env.get("parent", s.parent)
    s.project_dir = env.get("project_dir", s.project_dir)
    s.config_dir = env.get("config_dir", s.config_dir)
    s.terminal_program = env.get("terminal", s.terminal_program)


def set_terminal(s: Session, o: Origin, tty_alone: bool = False, shows: bool = False) -> None:
    """Set the terminal; that of a job is the one that `shows` it: it inherits its starter's."""
    if s.job and not shows:
        return
    s.tty = o.tty or s.tty
    s.ssh = o.env.get("ssh", s.ssh)
    s.kitty = o.kitty or s.kitty
    if not tty_alone:
        s.tmux, s.pane = (o.tmux or "", o.pane) if o.pane else (s.tmux, s.pane)
        s.nvim = o.nvim or s.nvim


def pane_tty(records: Records, s: Session) -> str:
    """Return the known tty of a session's pane."""
    return records.ledger.panes.get(f"{s.tmux}\n{s.pane}", "") if s.pane else ""


def speak(run: Run, t: float) -> None:
    """Note that a run has reported something of its own."""
    if t > run.news:
        run.news, run.silent, run.quiet = t, False, False


def absorb(s: Session, e: Event) -> None:
    """Store the facts of an event that no rule needs."""
    from_hook = e.from_hook
    if e.t > s.last:
        s.last = e.t
    if from_hook or e.kind not in NO_WORD:
        speak(s, e.at if e.kind.startswith("screen") else e.t)
    if from_hook and e.t >= s.hook_at:
        s.hook, s.hook_at = e.name, e.t
    if e.file:
        others = [x for x in s.edited.items() if x[0] != e.file]
        s.edited = dict([*others[1 - MOST_EDITED :], (e.file, e.t)])
    if e.agent:
        return
    if e.t > s.moved and (from_hook or e.kind not in NO_MOVE):
        s.moved = e.t
    if e.cwd:
        s.cwd = e.cwd
    if e.transcript:
        s.transcript = e.transcript
    if e.mode:
        s.mode, s.mode_at = e.mode, max(s.mode_at, e.t)
    s.reviewer = e.reviewer or s.reviewer
    s.headless = e.headless or s.headless
    if e.model:
        s.model = e.model
    if e.context:
        s.context = e.context
    if e.prompt:
        s.prompt = e.prompt
    if e.message and e.kind in ("stop", "rest", "said text", "said last"):
        s.message = e.message
    if e.title and (e.named or not s.titled):
        s.title, s.titled = e.title, e.named or s.titled


def runs_in(records: Records, s: Session, pid: int) -> None:
    """Note that a live process runs the session, as its hooks show."""
    known = s.processes.get(pid)
    if known is None:
        records.unbury(pid)
    if known is None or not known.hooked:
        claimed = s.origin.started if s.origin.pid == pid else ""
        there = (other for other in records.running_in(pid) if other.turn != ABSENT)
        seen = (other.processes[pid].started for other in there)
        started = next(filter(None, seen), "")  # which is reported once for all of its sessions
        made = known or Process(pid, started, claimed=claimed)
        now = replace(made, hooked=True, shared=s.origin.shared)
        s.processes = {**s.processes, pid: now}


def inherit(records: Records, s: Session) -> None:
    """Take over what the previous session of the process left running."""
    s.crew, now = Crew(), records.ledger.clock
    for other in records.ran_in(s.pid) if s.pid and not s.origin.shared else ():
        if other.session_id == s.session_id:
            continue
        if other.turn == ABSENT:
            lately = other.ended_pid == s.pid and now <= other.ended + REKEYED
            s.crew = other.crew if lately else s.crew
            continue
        run = next((r for r in runs_of(other) if r.pid == s.pid), None)
        if run is not None and not goes_on(run):
            s.crew = Crew(run.agents, run.shells, of_agents(run.tools), of_agents(run.blocks))


# ---------------------------------------------------------------- which session it replaces


def resume(records: Records, s: Session, e: Event) -> None:
    """Continue the last session of its terminal and directory, if it is resumed under a new id."""
    terminal = terminal_of(s)
    if e.source not in RESUMED or terminal is None:
        return
    before = [
        x
        for x in records.in_terminal(terminal)
        if (x.agent, x.cwd) == (s.agent, e.cwd) and x.session_id != s.session_id
        if x.turn == ABSENT or not stays(x, x.pid)  # a session that is still running keeps its name
    ]
    if before:
        _go_on(s, max(before, key=lambda x: (x.turn != ABSENT, x.ended, x.session_id)))


def make_room(
    records: Records, s: Session, old: Session | None, unseen: bool = False
) -> tuple[Transition, ...]:
    """After a session came, went or moved, make others give up its terminal and processes.

    `unseen`: its process runs several, and its terminal shows another one.
    """
    was_listed = old is not None and is_listed(old)
    if not is_listed(s):
        if was_listed and s.parent:
            _muster(records, s)
        return ()
    out: list[Transition] = []
    known = old.processes if old is not None and was_listed else {}
    for pid in sorted(s.processes.keys() - known.keys()):
        for other in () if s.processes[pid].shared or s.record else records.ran_in(pid):
            if other.session_id != s.session_id:
                out += _yield(records, other, s, unseen=unseen)
    terminal = terminal_of(s)
    # If it was ended by mistake and comes back, both use this terminal.
    returns = old is not None and (old.end_reason, old.ended_pid) == (TAKEN_OVER, s.pid)
    for other in records.in_terminal(terminal) if terminal and not (returns or s.record) else ():
        # A log may name a session before its terminal is known.
        if other.session_id != s.session_id and (not was_listed or is_same_program(other, s)):
            out += _yield(records, other, s, terminal, unseen)
    if not was_listed:
        find_viewers(records, s, s.started)  # somebody may already look at its pane
        records.keep(s)
        if s.parent:
            _muster(records, s)
    return tuple(out)


def _yield(
    records: Records,
    other: Session,
    s: Session,
    terminal: tuple[str, ...] | None = None,
    unseen: bool = False,
) -> list[Transition]:
    """Make another session give up the process or terminal that this one has now."""
    if other.record:
        return []  # only its board says how long it is there
    now = records.ledger.clock
    shared = other.processes.keys() & s.processes.keys()
    there = (run for run in runs_of(other) if run.pid in shared)
    beside = {run.pid for run in there if unseen or goes_on(run)}
    lately = other.ended and now <= other.ended + REKEYED and other.end_reason in MOVES_ON
    wrapped = bool(terminal) and is_same_program(other, s)
    moved_on = lately if other.turn == ABSENT else shared or wrapped
    if moved_on and other.session_id not in s.previous:
        if not beside:
            _go_on(s, other)
        if shared and not (s.tty or s.pane):
            _take_terminal(s, other)
        records.keep(s)
    if other.turn == ABSENT:
        # The process was only discovered; now its file names the session, which starts in a moment.
        if shared and is_nameless(s.session_id) <= is_nameless(other.session_id):
            gone = copy(other)
            gone.processes = {p: x for p, x in other.processes.items() if p not in shared}
            records.keep(gone)
        return []
    if terminal and says_itself(s) and not is_nameless(other.session_id):
        return []  # whatever can write to that terminal can say so
    if terminal:
        inside = {run.pid for run in runs_of(other) if terminal_of(run) == terminal}
        given_up = {pid for pid in inside if wrapped or not stays(other, pid)} - beside
    else:
        given_up = shared - beside
    if beside:
        kept = other = copy(other)
        hide(kept, beside, now)
        records.keep(kept)
    if not given_up:
        return []
    gone = copy(other)
    was = published_status(gone)
    for pid in sorted(given_up):
        take_up(gone, pid)
        end(gone, now, TAKEN_OVER if terminal else "rekeyed", pid)
        bring_forward(gone)
    records.keep(gone)
    if was == published_status(gone):
        return []
    why = f"{s.session_id} has its {'terminal' if terminal else 'process'} now"
    rule = TAKEN_OVER if terminal else "moved on"
    return [Transition(now, gone.session_id, was, published_status(gone), rule, why)]


def is_same_program(other: Session, s: Session) -> bool:
    """Return whether `other`, known only by its own report, may be this program or its starter."""
    if is_nameless(s.session_id):
        return False  # each is a program of its own: one may be suspended
    return is_nameless(other.session_id) and other.agent == s.agent and says_itself(other)


def goes_on(run: Run) -> bool:
    """Return whether a run goes on beside a new session of its process."""
    # Of work that only their terminal shows, nobody knows whose it is.
    is_its_own = not (run.rested and run.stated.source in TERMINAL)
    is_its_own = is_its_own or any(b.key for b in run.blocks.values())
    return run.origin.many and is_its_own and status_of(run) in ("working", "blocked", "unknown")


def is_alone(records: Records, s: Session, pid: int) -> bool:
    """Return whether its terminal shows no other session of its process."""
    there = (
        x for x in records.running_in(pid) if x.turn != ABSENT and not is_nameless(x.session_id)
    )
    return all(x.session_id == s.session_id or terminal_of(x) != terminal_of(s) for x in there)


def hide(s: Session, pids: Iterable[int], now: float) -> None:
    """Forget what the terminal of some runs shows: it may now be about another session."""
    for pid in pids:
        take_up(s, pid)
        s.own_report = None
        if (p := s.processes[pid]).states.source == "title":
            s.processes = {**s.processes, pid: replace(p, states=Stated())}
        s.stated, s.stood, s.leads, s.overruled = best(s, s), True, 0.0, 0.0
        s.blocks = {k: replace(b, waits=b.waits and b.passed) for k, b in s.blocks.items()}
        s.held_until = now if s.held in ("stop", "fail") else s.held_until
    bring_forward(s)


def is_refuted(s: Session, t: float) -> bool:
    """Return whether a session reports something after it was taken to have ended."""
    return s.end_reason == TAKEN_OVER and t > s.ended


def _go_on(s: Session, other: Session) -> None:
    """Make a session the continuation of another one."""
    s.previous = (*other.previous, other.session_id)[-MOST_PREVIOUS:]
    s.label, s.name = s.label or other.label, s.name or other.name
    s.parked = s.parked or other.parked
    s.snoozed_until = max(s.snoozed_until, other.snoozed_until)


def _take_terminal(s: Session, other: Session) -> None:
    """Keep the terminal of a process that now runs another session."""
    run = next((run for run in runs_of(other) if run.pid == s.pid), None)
    if run is not None:
        s.tty, s.tmux, s.pane = run.tty, run.tmux, run.pane
        s.pane_tty, s.nvim, s.kitty = run.pane_tty, run.nvim, run.kitty


def update_viewers(records: Records, s: Session, old: Session) -> None:
    """Update the viewers if another process is shown than before, perhaps elsewhere."""
    if s.pid != old.pid and old.pid and (s.tmux, s.pane) != (old.tmux, old.pane):
        find_viewers(records, s, 0.0)


def find_viewers(records: Records, s: Session, since: float) -> None:
    """Set who looks at a session where it is now."""
    views = () if s.machine else records.ledger.views.items()
    s.viewers = {viewer: max(view.since, since) for viewer, view in views if sees(view, s)}


def told_by_mate(records: Records, e: Event) -> tuple[str, Event] | None:
    """Report to the lead of a team what a member with a session of its own does."""
    leads = (s for s in records.sessions.values() if s.session_id.startswith(e.lead))
    lead = next((s for s in leads if is_listed(s) and s.session_id != e.session_id), None)
    member = records.sessions.get(e.session_id)
    if lead is None or member is None:
        return None
    if member.parent != lead.session_id:
        member = copy(member)
        member.parent = lead.session_id
        records.keep(member)
        _muster(records, member)
    kind = "agent stop" if e.kind == "teammate idle" else "agent start"
    about = replace(e, kind=kind, session_id=lead.session_id, origin=Origin(pid=lead.pid or None))
    return lead.session_id, replace(about, agent=e.member, agent_type=MATE, pid=lead.pid or None)


def _muster(records: Records, member: Session) -> None:
    """Update the team of its lead; a team ends soon after its last member."""
    lead = records.sessions.get(member.parent)
    if lead is None or lead is member:
        return
    team = lead.team if member.session_id in lead.team else (*lead.team, member.session_id)
    others = (records.sessions.get(m) for m in team)
    ended = all(m is None or m.turn == ABSENT for m in others)
    lead = copy(lead)
    lead.team, lead.team_over = team, member.ended if ended else 0.0
    if member.turn == ABSENT and member.member in lead.agents:
        now = records.ledger.clock
        dismiss(lead, Event("agent stop", "team", now, now, agent=member.member), records.options)
    records.keep(lead)
