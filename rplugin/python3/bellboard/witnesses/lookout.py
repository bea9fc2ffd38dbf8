"""What a host looks at beside the spool, for as long as a session needs it.

The host tells it which sessions there are and which paths have changed; it tells findings back,
and keeps what is watched to what is needed: the session files always, a transcript while its
session is at work, the HEAD of each repository in use, the death of each process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from ..core.machine import slow_tools
from ..core.options import Options
from ..core.rules.steps import is_alone
from ..core.session import Session, is_listed, status_of
from ..panes.tmux import Panes
from . import processes
from .deaths import Deaths
from .discovery import Discovery
from .pull_requests import Branch, PullRequest, PullRequests
from .registry import Registry, config_of
from .repository import Repositories
from .transcript import Transcripts, is_needed, place_of
from .watch import Watch
from .witness import Finding

LONGEST_LOOK: Final = 0.02  # seconds in which the event loop stands still
LEAD: Final = 1.0  # seconds before a tool is overdue: what is found has to be folded by then
NEVER: Final = float("inf")
REPEAT: Final = 60.0  # seconds after which the same ports may be told again


class Lookout:
    """Looks, in the loop that runs, and calls `tell` with what it finds."""

    def __init__(
        self,
        watch: Watch,
        tell: Callable[[Finding], None],
        clock: Callable[[], float],
        environ: Mapping[str, str],
        generation: str = "",
        pull_requests: bool = False,
    ) -> None:
        self.registry = Registry([], generation)
        self.transcripts = Transcripts()
        self.repositories = Repositories()
        self.panes = Panes(generation)
        self.deaths = Deaths(self._died)
        self._requests = PullRequests(self._answered, environ) if pull_requests else None
        self._discovery = Discovery(environ)
        self._watch, self._tell, self._clock = watch, tell, clock
        self._generation = generation
        self._sessions: dict[str, Session] = {}  # listed
        self._paths: dict[str, set[str]] = {}  # watched → the sessions that need it
        self._awaited: dict[str, str] = {}  # session → its transcript, whose folder is not there
        self._places: dict[str, str] = {}  # session → the directory that its facts are about
        self._facts: dict[str, str] = {}  # session → the key of what was told
        self._seen: set[tuple[int, str]] = set()  # processes told of
        self._stirred: dict[str, None] = {}  # sessions whose ports are to be looked at
        self._proven: set[tuple[str, str]] = set()  # tools whose processes were looked at
        self.look_into(config_of(environ))

    def close(self) -> None:
        """End it."""
        self.deaths.close()
        if self._requests is not None:
            self._requests.close()

    def renew(self, generation: str) -> None:
        """After a time without hosts: what was told before is told again."""
        self._generation = generation
        self.registry.renew(generation)
        self.panes.renew(generation)
        self._facts.clear()
        self._seen.clear()
        self.rescan()

    def look_into(self, config_dir: str | Path) -> None:
        """Watch another config directory of the CLI."""
        if self.registry.add(config_dir):
            directory = self.registry.paths()[-1]
            self._watch.add(directory)
            self._tell_all(self.registry.look(self._clock(), directory))

    def changed(self, paths: Collection[str]) -> None:
        """A watch named these paths; those that are not ours are ignored."""
        now = self._clock()
        for path in paths:
            if path.endswith((".json", "/sessions")):  # not the thousands of a busy spool
                self._tell_all(self.registry.look(now, path))
        self._tell_all(self.transcripts.look(now, paths))
        self._arrived()
        for path in self._paths.keys() & set(paths):
            for sid in sorted(self._paths[path] & self._places.keys()):
                self._tell_facts(sid)

    def attend(self, sessions: Mapping[str, Session], changed: Iterable[str]) -> None:
        """Of all sessions these have changed: look at what they need, and no more at what not."""
        for sid in changed:
            s = sessions.get(sid)
            if s is not None and is_listed(s):
                before = self._sessions.get(sid)
                if before is None or (_is_at_work(before) and not _is_at_work(s)):
                    self._stirred[sid] = None
                self._sessions[sid] = s
                self._attend(s)
            elif self._sessions.pop(sid, None) is not None:
                self._leave(sid)

    @property
    def notes(self) -> dict[str, str]:
        """For health: what is not as it should be."""
        deaths = {"deaths": note} if (note := self.deaths.note) else {}
        return {**self.registry.notes, **self.transcripts.notes, **deaths}

    def rescan(self) -> None:
        """Look at everything: no watch sees all, and no system promises to report it."""
        now = self._clock()
        self._tell_all(self.registry.look(now))
        self._tell_all(self.transcripts.look(now))
        for s in list(self._sessions.values()):
            self._attend(s)
        for sid in list(self._places):
            self._tell_facts(sid)
        at_work = (sid for sid, s in self._sessions.items() if _is_at_work(s) or "ports" in s.facts)
        self._stirred |= dict.fromkeys(at_work)
        by_socket: dict[str, set[str]] = {}
        for s in self._sessions.values():
            if s.tmux and s.pane:
                by_socket.setdefault(s.tmux, set()).add(s.pane)
        for socket, panes in by_socket.items():
            self._tell_all(self.panes.look(now, socket, panes))
        if self._discovery.is_due(now):
            for found in self._discovery.look(now, {*self.registry.records, *self.deaths.watched}):
                if found.config:
                    self.look_into(found.config)
                if found.pid not in self.registry.records:  # whose own file would tell more
                    self._tell(found.finding(now, self._generation))

    def look_at_ports(self) -> bool:
        """Of sessions that are new or at rest again; False if there are more, at 2 ms each."""
        until, now = time.monotonic() + LONGEST_LOOK, self._clock()
        while self._stirred and time.monotonic() < until:
            s = self._sessions.get(self._stirred.popitem()[0])
            if s is not None and s.processes:
                found = processes.listening(s.processes)
                if found != s.facts.get("ports", []):
                    facts = {"session_id": s.session_id, "ports": found}
                    key = f"facts {facts} {now // REPEAT}"
                    self._tell(Finding({"t": now, "facts": facts}, key))
        return not self._stirred

    def prove(self, options: Options) -> float:
        """See which tools run, before one is taken to wait for an approval; when to come again."""
        now, again = self._clock(), NEVER
        for s in self._sessions.values() if options.approval else ():
            for slot, since, due in slow_tools(s, options):
                if (s.session_id, slot) in self._proven:
                    continue
                if due - now > LEAD:
                    again = min(again, due - now - LEAD)
                    continue
                self._proven.add((s.session_id, slot))
                self._tell_all(processes.at_work(now, pid, since) for pid in s.processes)
        return again

    def _attend(self, s: Session) -> None:
        sid, now = s.session_id, self._clock()
        for pid, process in s.processes.items():
            if not (process.started or processes.is_alive(pid)):
                continue  # never seen alive from here, as in a container: it proves nothing
            self.deaths.watch(pid, process.started)
            if (pid, process.started) not in self._seen:
                # Told once for hooks, which know no start, and once for the start itself.
                self._seen |= {(pid, process.started), (pid, processes.started_of(pid))}
                self._tell(processes.seen(now, pid, self._generation))
        if s.config_dir:
            self.look_into(s.config_dir)
        path = ""
        if is_needed(status_of(s), s.since, now, is_alone(s)):
            path = s.transcript or self._transcript_of(s)
        before = self.transcripts.followed.get(sid, "")
        if path != before:
            self.transcripts.leave(sid)
            self._unwatch(before, sid)
            self._stop_waiting(sid)
        if path and path != before:
            self.transcripts.follow(sid, path, s.last)
            self._watch_for(path, sid)
            self._await(path, sid)
            self._tell_all(self.transcripts.look(now, {path}))
        if s.cwd and self._places.get(sid) != s.cwd:
            self._leave_place(sid)
            self._places[sid] = s.cwd
            for head in self.repositories.paths(s.cwd):
                self._watch_for(head, sid)
            self._tell_facts(sid)

    def _leave(self, sid: str) -> None:
        """It has ended."""
        self._unwatch(self.transcripts.followed.get(sid, ""), sid)
        self.transcripts.forget(sid)
        self._stop_waiting(sid)
        self._leave_place(sid)
        self._facts.pop(sid, None)
        needed = {pid for s in self._sessions.values() for pid in s.processes}
        for pid in self.deaths.watched - needed:
            self.deaths.leave(pid)
        self._seen = {(pid, started) for pid, started in self._seen if pid in needed}
        self._proven = {(of, slot) for of, slot in self._proven if of in self._sessions}

    def _leave_place(self, sid: str) -> None:
        place = self._places.pop(sid, "")
        for head in self.repositories.paths(place):
            self._unwatch(head, sid)

    def _transcript_of(self, s: Session) -> str:
        """Of a session that no hook told of: where there is one, else where it will be."""
        folders = [directory.parent for directory in self.registry.paths()]
        places = [place_of(folder, s.session_id, s.cwd) for folder in folders]
        return next((p for p in places if Path(p).is_file()), next(filter(None, places), ""))

    def _await(self, path: str, sid: str) -> None:
        """The first session in a directory: not even the folder of its transcript is there yet."""
        folder = Path(path).parent
        if path and not folder.is_dir():
            self._awaited[sid] = path
            self._watch_for(str(folder.parent), sid)

    def _arrived(self) -> None:
        for sid, path in list(self._awaited.items()):
            if Path(path).parent.is_dir():
                self._stop_waiting(sid)
                if path in self._paths:
                    self._watch.remove(path)
                    self._watch.add(path)
                    self._tell_all(self.transcripts.look(self._clock(), {path}))

    def _stop_waiting(self, sid: str) -> None:
        path = self._awaited.pop(sid, "")
        self._unwatch(str(Path(path).parent.parent), sid)

    def _tell_facts(self, sid: str) -> None:
        finding = self.repositories.facts(self._clock(), sid, self._places[sid])
        request = self._request_of(self._places[sid])
        key = f"{finding.key} {request}"
        if self._facts.get(sid) != key:
            self._facts[sid] = key
            self._tell(finding)
            if request is not None:
                now, facts = self._clock(), {"session_id": sid, **request.facts()}
                self._tell(Finding({"t": now, "facts": facts}, f"facts {facts} {now // REPEAT}"))

    def _request_of(self, place: str) -> PullRequest | None:
        """The pull request of what is checked out there; None unless that is wanted."""
        found = self.repositories.of(place) if self._requests is not None else None
        if self._requests is None or found is None:
            return None
        return self._requests.of(Branch(found.remote, found.branch), self._clock())

    def _answered(self, branch: Branch) -> None:
        """The pull request of a branch is another one now."""
        for sid, place in list(self._places.items()):
            found = self.repositories.of(place)
            if found is not None and branch == (found.remote, found.branch):
                self._tell_facts(sid)

    def _died(self, pid: int, started: str) -> None:
        now = self._clock()
        self._tell(processes.gone(now, pid, started))
        for directory in self.registry.paths():
            self._tell_all(self.registry.look(now, directory / f"{pid}.json"))

    def _watch_for(self, path: str, sid: str) -> None:
        self._paths.setdefault(path, set()).add(sid)
        self._watch.add(path)

    def _unwatch(self, path: str, sid: str) -> None:
        needed = self._paths.get(path)
        if needed is not None:
            needed.discard(sid)
            if not needed:
                del self._paths[path]
                self._watch.remove(path)

    def _tell_all(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._tell(finding)


def _is_at_work(s: Session) -> bool:
    return status_of(s) in ("working", "background")
