"""Find the process of an event whose hook ran in a pid namespace of its own.

Its pid there may be that of any process here.  What proves which one it is: the kernel's own list
of pids, with the start of the process, which the hook reports; or, if the hook cannot see that,
what the process runs and the terminal that it was started in.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from ..core.events import Origin
from ..system.namespaces import known_as
from ..system.processes import (
    argv_of,
    environment_of,
    has_proc,
    owner_of,
    program_of,
    started_of,
)
from .proof import is_agent

PLACE = ("TMUX", "TMUX_PANE", "NVIM")


def located(o: Origin, t: float) -> Origin | None:
    """Return an origin with the pid that its process has here, or None if that is not here."""
    pid = o.pid
    if pid is None or not has_proc():
        return o
    if o.started:
        if started_of(pid) == o.started:
            return o
        found = [p for p in known_as(pid, t) if started_of(p) == o.started]
    elif _is_its(pid, o):
        return o
    else:
        found = [p for p in known_as(pid, t) if _is_its(p, o)]
    if len(found) > 1 or not o.started:
        found = [p for p in found if _is_there(p, o)]
    if len(found) == 1:
        return replace(o, pid=found[0], started=started_of(found[0]))
    return None if o.started else o


def _is_its(pid: int, o: Origin) -> bool:
    """Return whether a process of ours runs that agent."""
    return owner_of(pid) == os.geteuid() and is_agent(o.agent, argv_of(pid), program_of(pid))


def _is_there(pid: int, o: Origin) -> bool:
    """Return whether a process was started in the same terminal as the hook."""
    env = environment_of(pid, PLACE)
    from ..system.tmux import socket_in  # loads much, and few events lead here

    there = socket_in(env), env.get("TMUX_PANE", ""), env.get("NVIM", "")
    return there == (o.tmux or "", o.pane or "", o.nvim or "")
