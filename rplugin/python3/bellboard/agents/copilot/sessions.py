"""Observe the sessions of GitHub Copilot CLI: whether they are open and work, and their logs.

`open-sessions-state.json` lists open sessions, whether each works, and since when;
`inuse.PID.lock` in the folder of a session names its process.  Both may be left by a crash, so a
process has to be alive, and older than its lock.

Only that list shows that Esc stopped a session between two tries of a failed call: it no longer
works then.  That counts only after a while, as its log may still say how the turn ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ...core.evidence import Evidence, TraceLine
from ...core.observing import Want
from ...core.rules.steps import is_alone
from ...core.session import Session
from ...core.untrusted import object_of, time_of
from ...system import processes
from ...system.files import decoded, names_in, read, status_of
from ...system.reach import reach
from ..agent import Agent
from ..need import CHANGED, LEFT, PATHS, RESCAN, Need, Observing
from ..tailing import Logs

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
    since: float = 0.0  # when it began or stopped working; 0 if not in the list


def state_folder(environ: dict[str, str]) -> str:
    """Return the folder of the CLI's state."""
    given = environ.get("COPILOT_HOME", "")
    return given or f"{environ.get('HOME', '')}/.copilot"


def session_log(folder: str, session_id: str) -> str:
    """Return the path of a session's log."""
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


OPEN: Final = Want("copilot sessions", ())
SETTLE: Final = 0.25  # seconds by which the log may be late


class OpenSessions:
    """Observes open sessions, and their logs."""

    def __init__(self, agent: Agent, environ: Mapping[str, str], brief: bool) -> None:
        self._key, self._folder = agent.key, state_folder(dict(environ))
        self._logs = Logs(agent, brief, self._find)
        self._working: set[str] = set()  # sessions that work, by the list
        self._waiting: set[Need] = set()  # logs that nothing has reported as written

    def observing(self) -> Observing:
        """Return the observers of both."""
        observe = {OPEN.kind: self._observe_list, self._logs.kind: self._observe_log}
        return Observing(observe, self._wanted, (OPEN,), self._logs.forget)

    def _wanted(self, s: Session, now: float) -> Iterator[Want]:
        yield OPEN
        yield from self._logs.wanted(s, now)

    def _find(self, s: Session) -> tuple[str, partial[str]]:
        return self._folder, partial(session_log, self._folder, s.session_id)

    async def _observe_log(self, need: Need) -> None:
        """Follow a log once a hook or the list shows that its session is active."""
        need.at_end = partial(self._waiting.discard, need)
        while is_alone(need.session) and need.session.session_id not in self._working:
            self._waiting.add(need)
            await need.news(CHANGED)
        self._waiting.discard(need)
        await self._logs.observe(need)

    async def _observe_list(self, need: Need) -> None:
        path, left, late = f"{self._folder}/{LIST}", "", 0.0
        need.watch(path)
        while True:
            found = await reach(partial(opened_in, self._folder), path)
            self._working = {each.session_id for each in found if each.works}
            for log in self._waiting:
                log.stir(CHANGED)
            late = 0.0
            for each in found:
                s = need.sessions.get(each.session_id)
                if s is None:
                    key = f"{each.session_id} {each.pid} {need.means.generation} {left}"
                    self._report(need, each, {"sessionId": each.session_id}, key)
                elif s.retrying and not each.works:
                    late = max(late, self._stopped(need, each))
            await need.news(PATHS, RESCAN, LEFT, within=late or None)
            if need.left:  # after /clear, the process has another session
                left = need.left.pop().session_id
                need.left.clear()

    def _stopped(self, need: Need, opened: Opened) -> float:
        """Report that a session no longer retries, or return the seconds until the next look."""
        late = SETTLE - abs(need.means.clock() - opened.since)
        if late <= 0 and opened.since:
            record = {"sessionId": opened.session_id, "restsSince": opened.since}
            self._report(need, opened, record, f"{opened.session_id} rests {opened.since}")
        return max(late, 0.0)

    def _report(self, need: Need, opened: Opened, record: dict[str, object], key: str) -> None:
        known = TraceLine(pid=opened.pid, agent=self._key, discovered=True, record=record)
        need.report(Evidence(known.line(need.means.clock(), "registry"), f"copilot {key}"))
