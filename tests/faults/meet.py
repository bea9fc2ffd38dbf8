"""One way to meet a fault: do it, check everything, mend it, check that all is well again."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence

from faults.fault import EITHER, EVENTS, NOTHING, SESSIONS, Fault, Kind, nothing
from faults.target import HEAL, Fallen, Target, brief_of

LEAST_FIRST = (NOTHING, SESSIONS, EVENTS)


def meet(target: Target, kind: Kind, faults: Sequence[Fault]) -> None:
    """Raise Fallen if a check fails while these last, or after they were mended.

    While they last: events are folded, the hook says nothing, `list` shows what is known, health
    and doctor name what is wrong, a second host can start and end, and the host rests. Afterwards:
    health is silent, and no event was lost or counted twice. Of several that may stand in each
    other's way, nothing need be named, nor survive.
    """
    names = {target.hook("UserPromptSubmit", sid := target.unique()): sid}
    target.committed(names)
    row = faults[0] if len(faults) == 1 else together(faults, kind.mixed)
    named = [] if kind.mixed and len(faults) > 1 else faults
    later: dict[str, str] = {}
    done: list[Fault] = []
    try:
        for fault in faults:
            done.append(fault)
            with several(faults):
                fault.do(target)
        with contextlib.suppress(OSError):  # the hook could not write it either
            later = {target.hook("UserPromptSubmit", sid := target.unique()): sid}
        if all(fault.hooks for fault in faults):
            target.emit()
        for fault in named:
            target.notes(fault.says)
        if kind.settle:
            with contextlib.suppress(subprocess.TimeoutExpired):
                target.process.wait(kind.settle)
        with target.another(row.refuses) as late:
            doctor = [fault.doctor for fault in named]
            known = [*(fault.lists or "" for fault in named), *names.values()]
            if row.lists is None or row.survives == NOTHING or row.refuses:
                known = []
            target.check(row.folds, kind.within, doctor=doctor, known=known)
            target.notes(row.waits, late)
            if row.folds and not (row.refuses or row.waits):
                target.canary(kind.within, late)
        if kind.is_caught and (said := target.caught()):
            raise Fallen(f"a reader raised: {brief_of(said)}")
    except Fallen:
        with contextlib.suppress(Fallen, OSError, subprocess.SubprocessError):
            mend(target, done)
        raise
    mend(target, done)
    if row.mend is not nothing or not row.folds:
        target.canary(HEAL)
    for fault in named:
        if fault.heals and fault.says:
            target.heals(fault.says)
    target.kept(names, later, row.survives)


def together(faults: Sequence[Fault], mixed: bool) -> Fault:
    """Return what several faults at once have in common."""
    refuse = {fault.refuses or fault.waits for fault in faults}
    return Fault(
        "together",
        do=nothing,
        mend=next((fault.mend for fault in faults if fault.mend is not nothing), nothing),
        survives=min((fault.survives for fault in faults), key=LEAST_FIRST.index),
        folds=all(fault.folds for fault in faults),
        lists=None if mixed else "",
        refuses=EITHER if (mixed and any(refuse)) or len(refuse) > 1 else faults[0].refuses,
    )


@contextlib.contextmanager
def several(faults: Sequence[Fault]) -> Iterator[None]:
    """Let one fault stand in the way of another."""
    try:
        yield
    except (OSError, sqlite3.Error):
        if len(faults) == 1:
            raise


def mend(target: Target, done: Sequence[Fault]) -> None:
    """Mend faults, the last one first."""
    for fault in reversed(done):
        with several(done):
            fault.mend(target)
