"""What a process tells of the session that it runs: where it is, that it works, that it is gone."""

from __future__ import annotations

from typing import Final

from ..core.finding import Finding
from ..system import processes

PLACE: Final = ("TMUX", "TMUX_PANE", "NVIM")
CLOCK: Final = 1.0  # seconds: the start of the system is told to the second


def gone(now: float, pid: int, started: str = "", found: bool = False) -> Finding:
    """It runs no more; `found`: nobody saw it end, so nobody knows when it did."""
    told = {"pid": pid, "alive": False, "started": started} | ({"found": True} if found else {})
    return Finding({"t": now, "process": told}, f"process gone {pid} {started}")


def seen(now: float, pid: int, generation: str = "") -> Finding:
    """Where and since when it runs; gone, if it does not run.

    Its environment says where its terminal may be, as it does to the hooks that it starts.
    """
    started, tty = processes.started_of(pid), processes.tty_of(pid)
    if not processes.is_alive(pid):
        return gone(now, pid, started, found=True)
    place = processes.environment_of(pid, PLACE)
    told = {
        "pid": pid,
        "alive": True,
        "started": started,
        "tty": tty,
        "tmux": place.get("TMUX", "").rsplit(",", 2)[0],  # socket,pid,session
        "pane": place.get("TMUX_PANE", ""),
        "nvim": place.get("NVIM", ""),
    }
    known = {k: v for k, v in told.items() if v}
    return Finding({"t": now, "process": known}, f"process {known} {generation}")


def at_work(now: float, pid: int, since: float) -> Finding:
    """How many children it has that began since then: a tool that runs has one.

    Older ones prove nothing: an MCP server is a child for as long as the agent lives.
    """
    began = [processes.began_at(child) or 0.0 for child in processes.children_of(pid)]
    told = {"pid": pid, "alive": True, "children": sum(t > since - CLOCK for t in began)}
    return Finding({"t": now, "process": told}, f"process {told} {since}")
