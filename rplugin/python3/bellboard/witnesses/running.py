"""Report what a process shows about its session: its terminal, its children, its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from ..core.finding import Finding
from ..core.session import Process, Session
from ..system import processes
from ..system.namespaces import FIRST, own_space
from ..system.places import place_of

Clock = Callable[[], float]
Report = Callable[[], Finding]
CLOCK: Final = 1.0  # seconds; the system reports its boot time to the second


def gone(now: float, pid: int, started: str = "", found: bool = False) -> Finding:
    """Report that a process is gone; `found`: nobody saw it exit, so the time is unknown."""
    facts = {"pid": pid, "alive": False, "started": started} | ({"found": True} if found else {})
    return Finding({"t": now, "process": facts}, f"process gone {pid} {started}")


def seen(now: float, pid: int, generation: str = "") -> Finding:
    """Report where and since when a process runs, or that it is gone.

    Its environment says where its terminal may be, as it does for the hooks that it starts.
    """
    started = processes.started_of(pid)
    if not processes.is_alive(pid):
        return gone(now, pid, started, found=True)
    known = {"pid": pid, "alive": True, **({"started": started} if started else {})}
    known |= place_of(pid)
    return Finding({"t": now, "process": known}, f"process {known} {generation}")


def is_another(process: Process, heard: float) -> bool:
    """Return whether its pid belongs to a process that began after the last hook of the session.

    A process that began before that hook is the session's own, restarted, whatever was known of it.
    """
    if not process.started or processes.runs(process.pid, process.started):
        return False
    began = processes.began_at(process.pid)
    return began is not None and began > heard + CLOCK


def at_work(now: float, pid: int, since: float) -> Finding:
    """Report how many children started since then: a running tool has one.

    Older ones prove nothing: an MCP server is a child for as long as the agent runs.
    """
    began = [processes.began_at(child) or 0.0 for child in processes.children_of(pid)]
    facts = {"pid": pid, "alive": True, "children": sum(t > since - CLOCK for t in began)}
    return Finding({"t": now, "process": facts}, f"process {facts} {since}")


def start_of(process: Process) -> str:
    """Return when a process of a session started, if that is proven: "" proves nothing.

    Whoever sees all processes can believe a hook: one that is in a sandbox was found there.
    """
    return process.started or (process.claimed if own_space() == FIRST else "")


def reports(s: Session, clock: Clock, generation: str) -> Iterator[tuple[int, Report | None]]:
    """Yield the processes of a session, each with what reports it, unless it runs as is known."""
    for pid, process in s.processes.items():
        started = start_of(process)
        if not (started or processes.is_alive(pid)):
            continue  # never seen alive from here, such as in a container: proves nothing
        if not processes.runs(pid, started):
            yield pid, partial(gone, clock(), pid, started, found=True)
        else:
            yield pid, None if process.started else partial(seen, clock(), pid, generation)
