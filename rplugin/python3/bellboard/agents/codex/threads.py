"""Find the threads that Codex has open: it holds the lock of a file for each.

A thread has its lock as soon as a terminal shows it, also before its first prompt, when no hook
has run.  A thread that was left with /clear or /new keeps its lock until the process ends.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ...system import locks, processes
from ...system.files import entries, names_in, opened, status_of
from .dialect import NO_TERMINAL

FOLDER: Final = "thread-writer-locks"
DAY: Final = 86400.0  # seconds; a folder may be named after another time zone's day
MOST: Final = 200  # locks to look at, the newest first
HEAD: Final = 4096  # bytes of a log in which its first line says whose thread it is; 0.5 kB do
HELPER: Final = b'"source":{"subagent"'  # also of one that reviews what another one asks
_LOCK: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]{7,63})\.lock", re.ASCII)


class OpenThread(NamedTuple):
    """A thread that a live process has open."""

    id: str
    pid: int
    cwd: str


def home_in(environ: Mapping[str, str]) -> str:
    """Return the folder of Codex's files."""
    return environ.get("CODEX_HOME") or f"{environ.get('HOME', '')}/.codex"


def locks_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of the locks."""
    return f"{home_in(environ)}/{FOLDER}"


def threads_in(folder: str) -> list[OpenThread]:
    """Return the threads that processes with a terminal have open, the newest first. May hang.

    Those of subagents, and those that review approvals, are not among them.
    """
    try:
        made = {name: status.st_mtime for name, status in entries(folder)}
    except (OSError, ValueError):
        return []
    names = sorted(filter(_LOCK.fullmatch, made), key=lambda name: -made[name])[:MOST]
    held = locks.holders(Path(folder, name) for name in names)
    shown = [(path.stem, pid) for path, pid in held.items() if _has_terminal(pid)]
    home = os.path.dirname(folder)  # noqa: PTH120
    users = ((thread, pid) for thread, pid in shown if not _is_helper(home, thread))
    return [OpenThread(thread, pid, processes.cwd_of(pid)) for thread, pid in users]


def in_view_since(thread: str, pid: int, since: float, environ: Mapping[str, str]) -> bool:
    """Return whether a process has opened or run no other thread since. May hang.

    Otherwise its terminal may show that one.
    """
    home = home_in(environ)
    there = (x.id for x in threads_in(locks_folder(environ)) if x.pid == pid)
    return all(x == thread or _last_run(home, x) < since for x in there)


def _last_run(home: str, thread: str) -> float:
    made = made_at(thread)
    if log := thread_log(home, thread):
        with suppress(OSError):
            return max(made, status_of(log).st_mtime)
    return made


def thread_log(home: str, thread: str) -> str:
    """Return the log of a thread, which it has from its first prompt; "" if there is none.

    The logs of a day have a folder, and the id of a thread begins with its time.  May hang.
    """
    made = made_at(thread)
    try:
        days = {time.strftime("%Y/%m/%d", time.localtime(made + more)) for more in (-DAY, 0, DAY)}
    except (ValueError, OverflowError, OSError):
        return ""
    ending = f"-{thread}.jsonl"
    for day in sorted(days):
        folder = Path(home, "sessions", day)
        with suppress(OSError, ValueError):
            for name in names_in(folder):
                if name.startswith("rollout-") and name.endswith(ending):
                    return str(folder / name)
    return ""


def made_at(thread: str) -> float:
    """Return when a thread was made, by the start of its id; 0 if the id has another form."""
    try:
        return int(thread.replace("-", "")[:12], 16) / 1000
    except ValueError:
        return 0.0


def _is_helper(home: str, thread: str) -> bool:
    with suppress(OSError, ValueError), opened(thread_log(home, thread)) as (log, _):
        return HELPER in os.pread(log, HEAD, 0)
    return False


def _has_terminal(pid: int) -> bool:
    return processes.is_alive(pid) and not NO_TERMINAL & set(processes.argv_of(pid)[1:])
