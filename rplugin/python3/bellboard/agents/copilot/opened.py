"""Find the sessions that GitHub Copilot CLI has open, which it lists in files of its own.

`open-sessions-state.json` names them and says whether each works, and since when; `inuse.PID.lock`
in the folder of a session names its process.  Both may be left by a crash, so a process has to be
alive, and older than its lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ...core.untrusted import object_of, time_of
from ...system import processes
from ...system.files import decoded, names_in, read, status_of

LIST: Final = "open-sessions-state.json"
SESSIONS: Final = "session-state"
LOG: Final = "events.jsonl"
LIMIT: Final = 1 << 18  # bytes of the list; a session takes 150
MOST: Final = 200  # sessions to look at
COARSE: Final = 2.0  # seconds by which a clock of files may be behind
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_LOCK: Final = re.compile(r"inuse\.([0-9]{1,9})\.lock", re.ASCII)


class Opened(NamedTuple):
    """A session that a live process has open."""

    session_id: str
    pid: int
    works: bool
    since: float = 0.0  # when it began or stopped working; 0 if the list does not say


def folder_of(environ: dict[str, str]) -> str:
    """Return where the CLI keeps its state."""
    given = environ.get("COPILOT_HOME", "")
    return given or f"{environ.get('HOME', '')}/.copilot"


def log_of(folder: str, session_id: str) -> str:
    """Return where the CLI writes what a session does."""
    is_one = _SESSION.fullmatch(session_id)
    return f"{folder}/{SESSIONS}/{session_id}/{LOG}" if is_one else ""


def opened_in(folder: str) -> list[Opened]:
    """Return the open sessions of a folder; never raises."""
    try:
        listed = decoded(read(f"{folder}/{LIST}", LIMIT)[0]) or {}
    except OSError:
        return []
    ids = [sid for sid in listed if _SESSION.fullmatch(sid)][:MOST]
    return [
        Opened(sid, pid, said.get("working") is True, time_of(said.get("refreshedAt")) or 0.0)
        for sid, said in ((sid, object_of(listed[sid])) for sid in ids)
        for pid in _holders(f"{folder}/{SESSIONS}/{sid}")
    ]


def _holders(folder: str) -> Iterator[int]:
    """Yield the live processes that hold a lock in the folder of a session."""
    try:
        names = names_in(folder)
    except OSError:
        return
    for name in names:
        lock = _LOCK.fullmatch(name)
        if lock is not None and _is_held(Path(folder, name), int(lock[1])):
            yield int(lock[1])


def _is_held(lock: Path, pid: int) -> bool:
    began = processes.began_at(pid)
    try:
        return began is not None and began < status_of(lock).st_mtime + COARSE
    except OSError:
        return False
