"""Observe the sessions of GitHub Copilot CLI: which are open and work, and what their logs say.

`open-sessions-state.json` names those that are open and says whether each works, and since when;
`inuse.PID.lock` in the folder of a session names its process.  Both may be left by a crash, so a
process has to be alive, and older than its lock.

Only that list shows that Esc stopped a session between two tries of a failed call: it no longer
works then.  That counts only after a while, as its log may still say how the turn ended.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ...core.evidence import Evidence
from ...core.rules.steps import is_alone
from ...core.session import Session
from ...core.untrusted import object_of, time_of
from ...system import processes
from ...system.files import decoded, names_in, read, status_of
from ..agent import Agent, Means
from ..tailing import LogWitness

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


def state_folder(environ: dict[str, str]) -> str:
    """Return where the CLI keeps its state."""
    given = environ.get("COPILOT_HOME", "")
    return given or f"{environ.get('HOME', '')}/.copilot"


def session_log(folder: str, session_id: str) -> str:
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


WATCHES: Final = "copilot"
SETTLE: Final = 0.25  # seconds; its log is written up to that late


class CopilotWitness(LogWitness):
    """See `Witness`."""

    def __init__(self, means: Means, agent: Agent) -> None:
        super().__init__(means, agent)
        self._key = agent.key
        self._means, self._generation = means, means.generation
        self._folder = state_folder(dict(means.environ))
        self._list = f"{self._folder}/{LIST}"
        self._sessions: dict[str, Session] = {}
        self._left = ""  # the session that ended last
        self._working: set[str] = set()  # sessions of which the list says that they work
        self._timer: asyncio.TimerHandle | None = None
        means.watched.need(self._list, WATCHES, "")

    def attend(self, s: Session) -> None:
        """Follow its log, unless neither a hook nor the list says that it does anything."""
        sid = s.session_id
        self._sessions[sid] = s
        if is_alone(s) and sid not in self._working:
            return
        self.following.attend(s, self._folder, partial(session_log, self._folder, sid))

    def leave(self, sid: str) -> None:
        self._working.discard(sid)
        super().leave(sid)
        if self._sessions.pop(sid, None) is not None:
            self._left = sid
            self._look()  # after /clear, its process has another one

    def changed(self, paths: Collection[str]) -> None:
        super().changed(paths)
        if self._list in paths:
            self._look()

    def rescan(self) -> None:
        super().rescan()
        self._look()

    def renew(self, generation: str) -> None:
        self._generation = generation

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._means.reach.do(self._list, partial(opened_in, self._folder), self._saw)

    def _saw(self, found: list[Opened]) -> None:
        began = {each.session_id for each in found if each.works} - self._working
        self._working = {each.session_id for each in found if each.works}
        for each in found:
            if each.session_id not in self._sessions:
                key = f"{each.session_id} {each.pid} {self._generation} {self._left}"
                self._report(each, {"sessionId": each.session_id}, key)
            elif self._sessions[each.session_id].retrying and not each.works:
                self._stopped(each)
        for sid in began & self._sessions.keys():
            self.attend(self._sessions[sid])

    def _stopped(self, opened: Opened) -> None:
        """Report that it no longer tries again, or look later."""
        late = SETTLE - abs(self._means.clock() - opened.since)
        if late > 0:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(late, self._look)
        elif opened.since:
            record = {"sessionId": opened.session_id, "restsSince": opened.since}
            self._report(opened, record, f"{opened.session_id} rests {opened.since}")

    def _report(self, opened: Opened, record: dict[str, object], key: str) -> None:
        given = {"pid": opened.pid, "agent": self._key, "discovered": True}
        line = {"t": self._means.clock(), "registry": {**given, "record": record}}
        self._means.report(Evidence(line, f"copilot {key}"))
