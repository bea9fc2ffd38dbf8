"""Who follows this machine: its hosts then leave notifications to the machine its reader sits at.

A feed notes itself in the database, with its process, and renews nothing: hosts watch the process,
so the note ends with it, whatever killed it.
"""

from __future__ import annotations

from typing import Final

from ..core.lenient import decimal
from ..storage.store import Store
from ..system.processes import runs

FOLLOWERS: Final = "followers"  # the shared option: process → when it started


def followers(store: Store) -> dict[int, str]:
    """Return the processes of the feeds through which somebody follows, and their starts."""
    known = store.option(FOLLOWERS)
    found = {decimal(pid): started for pid, started in known.items()} if known else {}
    return {pid: started for pid, started in found.items() if pid and runs(pid, started)}


def note(store: Store, pid: int, started: str, follows: bool, now: float) -> bool:
    """Note that somebody follows through this process, or no longer does; return True."""
    with store.lock():
        known = {p: s for p, s in followers(store).items() if p != pid}
        if follows:
            known[pid] = started
        store.set_option(FOLLOWERS, {str(p): s for p, s in known.items()}, pid, now)
    return True
