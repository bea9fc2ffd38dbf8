"""Stop processes that a test started, by process id, and those they left behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import psutil

from bellboard.system.processes import descendants
from rig.waiting import eventually

GRACE = 3.0


def family(pids: Iterable[int]) -> list[psutil.Process]:
    """Return the running processes and all their descendants."""
    found: dict[int, psutil.Process] = {}
    for parent in pids:
        for pid in (parent, *descendants(parent)):
            with contextlib.suppress(psutil.NoSuchProcess):
                found[pid] = psutil.Process(pid)
    return list(found.values())


def lives(process: psutil.Process) -> bool:
    """Return whether a process runs under its own pid; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end(processes: Iterable[psutil.Process]) -> None:
    """Stop the processes: terminate them, and kill what is left after a moment."""
    mine = list(processes)
    for stop in (psutil.Process.terminate, psutil.Process.kill):
        for process in filter(lives, mine):
            with contextlib.suppress(psutil.NoSuchProcess):
                stop(process)
        with contextlib.suppress(AssertionError):
            eventually(lambda: not any(map(lives, mine)), within=GRACE)
