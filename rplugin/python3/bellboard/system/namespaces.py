"""Find processes with a pid namespace of their own, such as in a container or a sandbox.

What runs there knows itself by another pid than we do.  The kernel says which (`NSpid`).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from . import processes
from .processes import PROC

FIRST: Final = "pid:[4026531836]"  # the pid namespace that a system starts with
_scan: tuple[float, dict[int, list[int]]] = 0.0, {}  # when, and what was found


def innermost(pid: int) -> int:
    """Return the pid by which a process knows itself."""
    for line in processes.lines_of(f"{PROC}/{pid}/status"):
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def space_of(pid: int) -> str:
    """Return the name of the pid namespace of a process, or "" if that is not known."""
    with contextlib.suppress(OSError):
        return str(Path(f"{PROC}/{pid}/ns/pid").readlink())
    return ""


def own_space() -> str:
    """Return the name of our pid namespace, or "" if that is not known, or if there are none."""
    with contextlib.suppress(OSError):
        return str(Path(f"{PROC}/self/ns/pid").readlink())
    return ""


def known_as(inner: int, since: float = 0.0) -> list[int]:
    """Return our processes that know themselves by this pid, which is another one here.

    The processes are searched at most once for events of one time (`since`): it takes milliseconds.
    """
    global _scan
    if _scan[0] <= since:
        begun, found = time.time(), dict[int, list[int]]()
        for pid in _mine():
            if (own := innermost(pid)) != pid:
                found.setdefault(own, []).append(pid)
        _scan = begun, found
    return [pid for pid in _scan[1].get(inner, ()) if innermost(pid) == inner]


def _mine() -> Iterator[int]:
    if processes.has_proc():
        with os.scandir(PROC) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.name.isdecimal() and entry.stat().st_uid == os.geteuid():
                        yield int(entry.name)
