"""Which process an event is about, and which process of a session is shown.

A record holds the shown run in its own fields, and the others in `aside`.  Before a rule sees the
record, the run that the event is about is moved into these fields, so that no rule can touch the
turn, questions or place of another process.  Afterwards the most urgent run is brought forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from .events import Event
from .session import ABSENT, Block, Run, Session, is_listed, question_of, status_of, terminal_of

FIELDS: Final = Run.__struct_fields__
#: Of several runs, a question shows first, then work; an end only if no other run is working.
SHOWS_FIRST: Final = {
    status: n
    for n, status in enumerate(
        ("blocked", "working", "error", "completed", "unknown", "background", "idle", ABSENT)
    )
}
#: Transcript entries that follow soon after a Stop.
OF_A_STOP: Final = frozenset({"said last", "said stop", "said end", "said feedback"})
MOMENT: Final = 2.0
AT_IT: Final = frozenset({"working", "unknown"})


def runs_of(s: Session) -> Iterator[Run]:
    """Yield the runs of a session, the shown one first."""
    yield s
    yield from s.aside.values()


def questions_of(s: Session) -> Iterator[tuple[Run, Block]]:
    """Yield the questions of a session, each with its run."""
    return ((run, block) for run in runs_of(s) for block in run.blocks.values())


def as_known(s: Session | None, e: Event) -> Event:
    """Return an event with the pid by which the session knows its process: that of another host.

    In a container, a process has another pid than outside, but it has started at the same time.
    """
    from_hook = e.from_hook
    pid, started = (e.origin.pid, e.origin.started) if from_hook else (e.pid, e.started)
    if s is None or not (pid and started) or pid in s.processes:
        return e
    known = next((p.pid for p in s.processes.values() if p.started == started), pid)
    if from_hook:
        return replace(e, origin=replace(e.origin, pid=known))
    return replace(e, pid=known)


def whose(s: Session, e: Event) -> int:
    """Return the process that an event is about: the one it names, or one that fits."""
    pid = e.origin.pid if e.from_hook else e.pid
    if pid:
        return pid
    if not s.aside:
        return s.pid
    for run in runs_of(s):
        if (
            (e.prompt_id and e.prompt_id in (run.prompt_id, run.said_id))
            or (e.tool_id and e.tool_id in run.tools)
            or (e.agent and e.agent in run.agents)
        ):
            return run.pid
    if e.kind in OF_A_STOP:
        newest = max(runs_of(s), key=lambda run: run.stopped)
        if newest.stopped and e.t < newest.stopped + MOMENT:
            return newest.pid
    if e.name.startswith("transcript"):
        at_it = [run.pid for run in runs_of(s) if run.turn in AT_IT]
        return at_it[0] if len(at_it) == 1 else s.pid
    return s.pid


def take_up(s: Session, pid: int) -> None:
    """Move the run of a process into the record, or start a new run."""
    if pid == s.pid:
        return
    if not s.pid and not s.aside:
        s.pid = pid  # earlier evidence without a process was about this one
        return
    shown = Run(**{field: getattr(s, field) for field in FIELDS})
    aside = {**s.aside, s.pid: shown} if s.turn != ABSENT or s.pid in s.processes else {**s.aside}
    run = aside.pop(pid, None) or Run(pid=pid)
    for field in FIELDS:
        setattr(s, field, getattr(run, field))
    s.aside = aside


def bring_forward(s: Session) -> None:
    """Move the most urgent run into the record."""
    if s.aside:
        take_up(s, min(runs_of(s), key=_rank).pid)


def _rank(run: Run) -> tuple[bool, int, float, int]:
    """Return a sort key: the oldest question first, or else the latest change."""
    status = status_of(run)
    question = question_of(run) if status == "blocked" else None
    when = question.since if question else -run.since
    return not is_listed(run), SHOWS_FIRST[status], when, run.pid


def stays(s: Session, pid: int) -> bool:
    """Return whether a process that runs a session is seen to run in its terminal."""
    p = s.processes.get(pid)
    return p is not None and bool(p.started) and not p.shared


def _goes_on(s: Session, run: Run) -> bool:
    """Return whether another run in this terminal is alive, and asks or one of them is headless."""
    is_apart = s.headless or run.headless or status_of(run) == "blocked"
    return is_apart and stays(s, run.pid)


def displace(s: Session) -> None:
    """Drop the other runs in this terminal, but for those that go on beside this one."""
    place = terminal_of(s)
    there = (pid for pid, run in s.aside.items() if place and terminal_of(run) == place)
    gone = {pid for pid in there if not _goes_on(s, s.aside[pid])}
    if gone:
        s.aside = {pid: run for pid, run in s.aside.items() if pid not in gone}
        s.processes = {pid: p for pid, p in s.processes.items() if pid not in gone}
