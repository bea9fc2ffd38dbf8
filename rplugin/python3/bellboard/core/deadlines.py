"""The deadlines of a session, and what a session file says after the settle time.

A deadline follows from the record, so every host computes the same ones.  When it falls due, it
becomes evidence of its own kind and goes through the table in `machine.py` like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .events import Event
from .machine import TABLE
from .options import APPROVAL_CLASS, Options
from .session import (
    ABSENT,
    RUNS,
    Block,
    OwnReport,
    Run,
    Session,
    heard_of,
    oldest,
    says,
    says_itself,
    status_of,
    take_up,
)
from .sources import best, is_unread, statement

NEVER: Final = float("inf")  # never falls due


class Deadline(Struct, order=True, frozen=True, gc=False):
    """A moment at which time alone becomes evidence."""

    t: float
    kind: str
    process: int = 0
    tool: str = ""


LOST: Final = 3600.0  # seconds after which the sessions of an unreachable machine are one line
SILENT: Final = 15.0  # seconds in which a model usually says something, and the next attempt begins
CHECKED: Final = frozenset({"Bash", "WebFetch", "WebSearch"})  # the tools that auto mode checks
FOLLOWS: Final = 60.0  # seconds after a Stop in which a program that works on shows that
UNSEEN: Final = frozenset({"completed", "error"})  # always unseen; looking clears them
STOOD: Final = "states since"  # becomes the kind for the value
STANDS: Final = "states still"  # likewise: what a source states, which the machine has led
UNREAD: Final = "report unread"  # likewise: what is stated without a report that is not read
LEADS: Final = 2.0  # seconds in which the machine may lead what states the status
#: Kinds that only deadlines produce; no evidence has them.
BY_TIME: Final = frozenset(
    (
        *("states busy", "states idle", "states waiting", "states shell"),
        *("states dialog", "states nothing", "question stood", "report overdue", "looked at"),
        *("compaction quiet", "approval overdue", "silent", "long silent", "team over"),
        *("transcript quiet", "process unknown", "proof overdue", "end overdue"),
        "link long down",
    )
)


def deadlines(s: Session, o: Options) -> list[Deadline]:
    """Return the deadlines of a session for which the table has a rule.

    Of one on another machine, that decides; here it only counts since when it cannot be reached.
    """
    if s.machine:
        is_lost = s.turn != ABSENT and s.link_since and not s.folded
        return [Deadline(s.link_since + LOST, "link long down")] if is_lost else []
    found: list[Deadline] = []
    if s.turn == ABSENT:
        if not s.stood and s.pid in s.processes:  # it goes on working while it becomes another one
            found.append(Deadline(s.stated.at + o.settle, STOOD, s.pid))
        return found
    _of_run(s, s, o, found)
    for run in s.aside.values():
        if run.turn == ABSENT:
            if not run.stood:
                found.append(Deadline(run.stated.at + o.settle, STOOD, run.pid))
        else:
            _of_run(s, run, o, found)
    if s.team_over:
        found.append(Deadline(s.team_over + o.team, "team over", s.pid))
    if not s.processes:
        found.append(Deadline(s.last + o.forget, "process unknown", s.pid))
    return found


def _of_run(s: Session, run: Run, o: Options, found: list[Deadline]) -> None:
    status = status_of(run)
    if not run.stood:
        found.append(Deadline(run.stated.at + o.settle, STOOD, run.pid))
    elif run.leads:
        found.append(Deadline(run.leads + LEADS, STANDS, run.pid))
    if run.own_report is not None and run.own_report.differs and is_unread(s, run):
        found.append(Deadline(run.own_report.differs + LEADS, UNREAD, run.pid))
    if status == "working":
        said = run.stated.says
        if not (run.silent or run.quiet):
            found.append(Deadline(heard_of(s, run) + SILENT, "silent", run.pid))
        if not run.quiet:
            found.append(Deadline(heard_of(s, run) + o.quiet, "long silent", run.pid))
        if (o.approval or (run.unchecked and asks_unheard(s, run))) and not run.blocks:
            found += _approvals(s, run, o)
        runs = run.tools or run.agents or run.held or run.screen == "busy"
        # After a time without hosts, silence proves nothing.
        if not (run.hooked or said or runs or run.trusted_until or says_itself(s, run)):
            found.append(Deadline(s.last + o.silence, "transcript quiet", run.pid))
    elif run is s and s.viewers and (status in UNSEEN or (status == "background" and s.unseen)):
        looked = (v + o.dwell if v > s.since else s.since + o.grace for v in s.viewers.values())
        found.append(Deadline(min(looked), "looked at", run.pid))
    for block in run.blocks.values():
        if not (block.shown or block.waits):
            found.append(Deadline(block.since + o.hold, "question stood", run.pid))
    if run.held_until and TABLE["report overdue"][status] != ".":
        found.append(Deadline(run.held_until, "report overdue", run.pid))
    ended = run.held in ("stop", "fail") and not (run.tools or run.agents)
    alone = run.stated.says in RUNS and run.stated.source == "file"  # a report is a second voice
    if ended and alone and TABLE["end overdue"][status] != ".":
        newest = max(heard_of(s, run), run.began, run.active)
        found.append(Deadline(newest + FOLLOWS, "end overdue", run.pid))
    if run.compacting and TABLE["compaction quiet"][status] != ".":
        found.append(Deadline(run.compacting + o.compaction, "compaction quiet", run.pid))
    if run.trusted_until and TABLE["proof overdue"][status] != ".":
        found.append(Deadline(run.trusted_until, "proof overdue", run.pid))


def asks_unheard(s: Session, run: Run) -> bool:
    """Return whether it may ask unnoticed: auto mode cannot check, and there is no session file."""
    return run.unchecked and s.mode == "auto" and not says(s, run)


def _approvals(s: Session, run: Run, o: Options) -> Iterator[Deadline]:
    """Yield when each tool of the main thread will have run longer than usual."""
    unheard = asks_unheard(s, run)
    for slot, tool in run.tools.items():
        limit = o.approval.get(APPROVAL_CLASS.get(tool.name, ""))
        if unheard and tool.name in CHECKED:
            limit = o.hold
        if limit and not (tool.proven or tool.agent):
            yield Deadline(tool.since + limit, "approval overdue", run.pid, slot)


def slow_tools(s: Session, o: Options) -> Iterator[tuple[str, float, float]]:
    """Yield tools that a child process would prove to be running: slot, start, deadline."""
    if status_of(s) == "working":
        for due in _approvals(s, s, o) if o.approval else ():
            tool = s.tools[due.tool]
            if APPROVAL_CLASS[tool.name] == "slow":
                yield due.tool, tool.since, due.t


def due(s: Session, o: Options) -> float | None:
    """Return when the next deadline falls due."""
    found = deadlines(s, o)
    return min(found).t if found else None


def is_due_sooner(s: Session, old: Session, o: Options) -> bool:
    """Return whether a change may have brought a deadline nearer; newer evidence only delays them.

    Called for every event, and ten times faster than `due`.  Collections are never changed in
    place, so the same object has the same content.
    """
    return not (
        s.turn == old.turn
        and s.blocks is old.blocks
        and s.processes is old.processes
        and s.stated is old.stated
        and s.own_report is old.own_report
        and s.leads == old.leads
        and s.aside is old.aside
        and s.since == old.since
        and s.last >= old.last
        and s.news >= old.news
        and s.held == old.held
        and s.held_until == old.held_until
        and s.compacting == old.compacting
        and s.trusted_until == old.trusted_until
        and s.viewers is old.viewers
        and s.unseen == old.unseen
        and s.silent == old.silent
        and s.quiet == old.quiet
        and s.team_over == old.team_over
        and s.hooked
        and old.hooked
        and s.unchecked == old.unchecked
        and s.mode == old.mode
        and (s.tools is old.tools or not (o.approval or (s.unchecked and asks_unheard(s, s))))
    )


def expire(s: Session, now: float, o: Options) -> Iterator[Event]:
    """Yield the deadlines that fall due until `now`, in order; apply each before the next."""
    done = None
    while found := deadlines(s, o):
        d = min(found)
        if d.t > now:
            return
        if d == done:
            raise RuntimeError(f"the deadline {d.kind} does not clear")
        done = d
        take_up(s, d.process)
        if d.kind == STOOD:
            s.stood = True
            yield statement(s, d.t)
        elif d.kind == STANDS:
            s.leads, s.overruled = 0.0, d.t
            yield statement(s, d.t, stands=True)
        elif d.kind == UNREAD:
            s.own_report = replace(s.own_report or OwnReport(), doubted=True)
            s.stated, s.stood = best(s, s), True
            yield statement(s, d.t)
        else:
            about = question_due(s, d.t, o) if d.kind == "question stood" else None
            tool, detail = (about.tool, about.detail) if about else ("", "")
            yield Event(
                d.kind,
                d.kind,
                d.t,
                d.t,
                s.session_id,
                tool=tool,
                tool_id=d.tool,
                detail=detail,
                pid=d.process,
            )


def question_due(s: Session, t: float, o: Options) -> Block | None:
    """Return the oldest question whose hold time is over."""
    held = (b for b in s.blocks.values() if not (b.shown or b.waits))
    return oldest(b for b in held if b.since + o.hold <= t)
