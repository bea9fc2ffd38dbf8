"""Whose news it is, and which process of a session is shown.

A session's record holds one run in its own fields, the one that is shown, and the others aside.
Before a rule sees the record, the run that the evidence is about is taken up into these fields; so
no rule can touch another process's turn, questions or place.  Afterwards the most urgent one is
brought to the front again, and with it its process id, its terminal and its Neovim.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .events import Event
from .session import ABSENT, Run, Session, is_listed, question_of, status_of, terminal_of

FIELDS: Final = Run.__struct_fields__
#: Of several processes a question shows first, then work: an end counts once none is at work.
SHOWS_FIRST: Final = {
    status: n
    for n, status in enumerate(
        ("blocked", "working", "error", "completed", "unknown", "background", "idle", ABSENT)
    )
}
#: What a transcript has soon after a Stop.
OF_A_STOP: Final = frozenset({"said last", "said stop", "said end", "said feedback"})
MOMENT: Final = 2.0
AT_IT: Final = frozenset({"working", "unknown"})


def runs_of(s: Session) -> Iterator[Run]:
    """Each of its runs, the one that is shown first."""
    yield s
    yield from s.aside.values()


def whose(s: Session, e: Event) -> int:
    """The process that an event is about: as it says, else by what it names."""
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
    """Let the rules see the run of this process, a new one if it has none."""
    if pid == s.pid:
        return
    if not s.pid and not s.aside:
        s.pid = pid  # what was told without a process was told of this one
        return
    shown = Run(**{field: getattr(s, field) for field in FIELDS})
    aside = {**s.aside, s.pid: shown} if s.turn != ABSENT or s.pid in s.processes else {**s.aside}
    run = aside.pop(pid, None) or Run(pid=pid)
    for field in FIELDS:
        setattr(s, field, getattr(run, field))
    s.aside = aside


def bring_forward(s: Session) -> None:
    """Let the most urgent run be the one that is shown."""
    if s.aside:
        take_up(s, min(runs_of(s), key=_rank).pid)


def _rank(run: Run) -> tuple[bool, int, float, int]:
    """The question that has waited longest first, else what changed last."""
    status = status_of(run)
    question = question_of(run) if status == "blocked" else None
    when = question.since if question else -run.since
    return not is_listed(run), SHOWS_FIRST[status], when, run.pid


def displace(s: Session) -> None:
    """A run that begins in a terminal ends what ran there: one terminal holds one."""
    place = terminal_of(s)
    gone = {pid for pid, run in s.aside.items() if place and terminal_of(run) == place}
    if gone:
        s.aside = {pid: run for pid, run in s.aside.items() if pid not in gone}
        s.processes = {pid: p for pid, p in s.processes.items() if pid not in gone}
