"""Observe the sessions of GitHub Copilot CLI: which are open, whether a turn runs, and their logs.

`open-sessions-state.json` lists open sessions, whether each works, and since when; one that asks
works.  `inuse.PID.lock` in the folder of a session names its process.  Both may be left by a crash,
so a process has to be alive, and older than its lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ...core.evidence import Evidence, TraceLine
from ...core.observing import Want
from ...core.session import Session
from ...core.untrusted import Facts, object_of, text_of, time_of
from ...system import processes
from ...system.files import decoded, names_in, read, status_of
from ...system.reach import reach
from ..agent import Agent
from ..need import PATHS, RESCAN, Need, Observing
from ..tailing import Logs

LIST: Final = "open-sessions-state.json"
SESSIONS: Final = "session-state"
LOG: Final = "events.jsonl"
LIMIT: Final = 1 << 18  # bytes of the list; a session takes 150
MOST: Final = 200  # sessions to look at
STAMP: Final = 40  # characters of a time
COARSE: Final = 2.0  # seconds by which a clock of files may be behind
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_LOCK: Final = re.compile(r"inuse\.([0-9]{1,9})\.lock", re.ASCII)


class Opened(NamedTuple):
    """A session that a live process shows, and what counts of its record in the list."""

    pid: int
    record: Facts


def state_folder(environ: dict[str, str]) -> str:
    """Return the folder of the CLI's state."""
    given = environ.get("COPILOT_HOME", "")
    return given or f"{environ.get('HOME', '')}/.copilot"


def session_log(folder: str, session_id: str) -> str:
    """Return the path of a session's log."""
    is_one = _SESSION.fullmatch(session_id)
    return f"{folder}/{SESSIONS}/{session_id}/{LOG}" if is_one else ""


def opened_in(folder: str) -> list[Opened]:
    """Return the session that each live process has opened last; never raises.

    After /clear, the one before is listed and locked for a while.
    """
    try:
        listed = decoded(read(f"{folder}/{LIST}", LIMIT)[0]) or {}
    except OSError:
        return []
    found = {sid: object_of(listed[sid]) for sid in listed if _SESSION.fullmatch(sid)}
    ids = sorted(found, key=lambda sid: time_of(found[sid].get("openedAt")) or 0.0)[-MOST:]
    shown = {
        pid: Opened(pid, {"sessionId": sid, **_counted(found[sid])})
        for sid in ids
        for pid in _holders(f"{folder}/{SESSIONS}/{sid}")
    }
    return [*shown.values()]


def _counted(given: Facts) -> Facts:
    works, since = given.get("working"), text_of(given, "refreshedAt")[:STAMP]
    return {"refreshedAt": since} | ({"working": works} if isinstance(works, bool) else {})


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


OPEN: Final = Want("copilot sessions", ())


class OpenSessions:
    """Observes open sessions, and their logs."""

    def __init__(self, agent: Agent, environ: Mapping[str, str], brief: bool) -> None:
        self._key, self._folder = agent.key, state_folder(dict(environ))
        self._logs = Logs(agent, brief, self._find)

    def observing(self) -> Observing:
        """Return the observers of both."""
        observe = {OPEN.kind: self._observe_list, self._logs.kind: self._logs.observe}
        return Observing(observe, self._wanted, (OPEN,), self._logs.forget)

    def _wanted(self, s: Session, now: float) -> Iterator[Want]:
        yield OPEN
        yield from self._logs.wanted(s, now)

    def _find(self, s: Session) -> tuple[str, partial[str]]:
        return self._folder, partial(session_log, self._folder, s.session_id)

    async def _observe_list(self, need: Need) -> None:
        path = f"{self._folder}/{LIST}"
        need.watch(path)
        while True:
            for each in await reach(partial(opened_in, self._folder), path):
                known = TraceLine(pid=each.pid, agent=self._key, record=each.record)
                line = known.line(need.means.clock(), "registry")
                need.report(Evidence(line, f"copilot {each} {need.means.generation}"))
            await need.news(PATHS, RESCAN)
