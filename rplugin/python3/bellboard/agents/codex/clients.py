"""Find the terminal of a thread that a shared server runs: the terminal of one of its clients.

Hooks then run in the server, which has no terminal, or that of whoever happened to start it.  A
client holds nothing that names its thread, but it works in the same folder and is connected to the
server.  If there are several, it is the one that was started last before the thread: a terminal
opens a thread when it starts.  Otherwise it is unknown which, and nothing is reported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...system import processes, ssh
from ...system.places import place_of
from .dialect.names import NO_TERMINAL
from .threads import made_at

PROGRAM: Final = "codex"
OPENS: Final = 3.0  # seconds in which a terminal that starts opens its thread; it takes 0.6 s
APART: Final = 1.0  # seconds; two that start at once cannot be told apart
CLOCK: Final = 1.0  # seconds; the system reports its boot time to the second


class Client(NamedTuple):
    """A terminal that shows threads of a server."""

    pid: int
    started: str
    began: float
    cwd: str
    place: Mapping[str, str]  # see `place_of`

    @property
    def tty(self) -> str:
        return self.place.get("tty", "")


def clients_of(server: int) -> list[Client] | None:
    """Return the terminals that are connected to a server; None if that is not known.

    May hang.
    """
    peers = ssh.peers()
    if not peers:
        return None
    ends = {peers[name] for name in processes.descriptors(server) if name in peers}
    found = (pid for pid in processes.pids() if ends and pid != server and processes.tty_of(pid))
    return [
        Client(
            pid,
            processes.started_of(pid),
            processes.began_at(pid) or 0.0,
            processes.cwd_of(pid),
            place_of(pid),
        )
        for pid in found
        if _is_terminal(pid) and not ends.isdisjoint(processes.descriptors(pid))
    ]


def client_of(thread: str, there: Sequence[Client]) -> Client | None:
    """Return the terminal that shows a thread, of those in its folder, if known."""
    if len(there) > 1:
        made = made_at(thread)
        near = [c for c in there if made and -CLOCK <= made - c.began <= OPENS]
        last = max((c.began for c in near), default=0.0)
        there = [c for c in near if c.began > last - APART]
    return there[0] if len(there) == 1 else None


def _is_terminal(pid: int) -> bool:
    program, *words = processes.argv_of(pid) or [""]
    return os.path.basename(program) == PROGRAM and not NO_TERMINAL & set(words)  # noqa: PTH119
