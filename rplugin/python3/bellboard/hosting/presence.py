"""Who can notify: machines that follow this one, and hosts here with a desktop.

While somebody follows, this machine leaves notifications to the machine its reader sits at.  Hosts
note this in the database with their process, and renew nothing: the others watch that process, so
a note ends with it, whatever killed it.
"""

from __future__ import annotations

from typing import Final

from ..core.lenient import decimal
from ..storage.machines import OPTION
from ..storage.store import Store
from ..system.processes import runs, started_of

#: Shared options: process and why → when it started.
FOLLOWERS: Final = "followers"
SCREENS: Final = "screens"


def present(store: Store, which: str) -> dict[int, str]:
    """Return the processes that are noted and still run, and their starts."""
    return {pid: started for (pid, _), started in _noted(store, which).items()}


def is_published(store: Store) -> bool:
    """Return whether other machines of a fleet may notify of our sessions too."""
    joined = store.option(OPTION)
    return isinstance(joined, dict) and joined.get("publishes") is not False


def note(store: Store, which: str, pid: int, why: str, is_so: bool, now: float) -> bool:
    """Note something for as long as this process runs, or no longer; return whether that is new."""
    known = _noted(store, which)
    if ((pid, why) in known) == is_so:
        return False
    with store.lock():
        known = _noted(store, which)
        known.pop((pid, why), None)
        if is_so:
            known[pid, why] = started_of(pid)
        value = {f"{p} {w}": started for (p, w), started in known.items()}
        store.set_option(which, value, pid, now)
    return True


def _noted(store: Store, which: str) -> dict[tuple[int, str], str]:
    known = store.option(which)
    found = {}
    for key, started in known.items() if isinstance(known, dict) else ():
        pid, _, why = str(key).partition(" ")
        if (number := decimal(pid)) and runs(number, started):
            found[number, why] = started
    return found
