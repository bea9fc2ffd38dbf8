"""Observe everything besides the spool, for as long as a session needs it.

The host passes in the sessions and the changed paths, and gets findings back.  Only what is needed
is watched: session files always, a transcript while its session is at work, the HEAD of each
repository in use, and the exit of each process.

Everything that may hang runs in `reach`.  Each source (a file, a repository, a server, a process)
is a job of its own, so that none blocks the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

from ..agents.claude_code.dialect.screens import read
from ..agents.claude_code.witnesses.discovery import GRACE, Discovery, Found
from ..agents.claude_code.witnesses.folders import STARTS, Folders
from ..agents.claude_code.witnesses.following import Following
from ..agents.claude_code.witnesses.registry import config_of
from ..agents.claude_code.witnesses.transcript import Transcripts, folder_of
from ..core.deadlines import NEVER, slow_tools
from ..core.detail import line
from ..core.finding import Finding
from ..core.options import Options
from ..core.session import Session, is_listed, is_nameless, nameless, status_of
from ..system import processes
from ..system.deaths import Deaths
from ..system.doer import Doer
from ..system.files import is_path
from ..system.tmux import Pane
from ..system.watch import Watch
from ..system.watched import Watched
from . import running
from .directories import REPEAT, Directories
from .panes import Panes, panes_of
from .pull_requests import Branch, PullRequests
from .screens import Screens, rows_of
from .screens import finding as screen_finding

LEAD: Final = 1.0  # seconds before a tool is overdue: findings must be folded by then
SOON: Final = (0.5, 1.5, GRACE + 1.0)  # seconds after an agent may have started
PATIENCE: Final = 5.0  # seconds for programs, and for work that takes milliseconds
FEW: Final = 5  # sessions to name in health

T = TypeVar("T")


class Lookout:
    """Observes beside the event loop, and calls `report` in it with each finding."""

    def __init__(
        self,
        watch: Watch,
        reach: Doer,
        report: Callable[[Finding], None],
        clock: Callable[[], float],
        environ: Mapping[str, str],
        generation: str = "",
        pull_requests: bool = False,
    ) -> None:
        self.watched = Watched(watch)
        shared = reach, self.watched, report, clock
        asks = PullRequests(self._answered, environ, reach) if pull_requests else None
        self.folders = Folders(*shared, environ, generation)
        self.following = Following(*shared)
        self.directories = Directories(*shared, asks)
        self.panes = Panes(generation)
        self.deaths = Deaths(self._died)
        self._discovery = Discovery(environ)
        self._reach, self._report, self._clock = reach, report, clock
        self._slow, self._deaf = reach.lane("slow", PATIENCE), reach.lane("deaf", PATIENCE)
        self.screens = Screens(reach.lane("screens", PATIENCE), report, clock)
        self._generation = generation
        self._sessions: dict[str, Session] = {}  # listed
        self._runs: dict[str, set[int]] = {}  # session → its processes
        self._needed: dict[int, set[str]] = {}  # process → its sessions
        self._seen: dict[int, set[str]] = {}  # process → start times already reported
        self._dead: set[int] = set()  # processes that exited before they were watched
        self._stirred: dict[str, None] = {}  # sessions whose ports are to be checked
        self._odd: dict[str, str] = {}  # session → why it could not be attended to
        self._found_in: set[int] = set()  # processes found with their own config directory
        self._loop = asyncio.get_running_loop()
        self._timers: dict[float, asyncio.TimerHandle] = {}  # of searches for agents
        self._unnamed: dict[str, str] = {}  # session without an id → where it will write
        self._proven: dict[str, set[str]] = {}  # session → tools whose processes were checked
        self.folders.need(str(config_of(environ)), "")

    @property
    def transcripts(self) -> Transcripts:
        """Return the followed transcripts."""
        return self.following.transcripts

    def close(self) -> None:
        """Stop observing."""
        self.deaths.close()
        self.folders.close()
        self.screens.close()
        for timer in self._timers.values():
            timer.cancel()

    def renew(self, generation: str) -> None:
        """Report everything again, after a time without hosts."""
        self._generation = generation
        self.folders.registry.renew(generation)
        self.panes.renew(generation)
        self.directories.renew()
        self.screens.renew()
        self._seen.clear()
        self.rescan()

    def changed(self, paths: Collection[str]) -> None:
        """Take paths that a watch reported; ignore those that are not ours."""
        if any(self.watched.who(path, STARTS) for path in paths):
            self._expect_agents()
        self.folders.changed(paths)
        self.following.changed(paths)
        self.directories.changed(paths)

    def attend(self, sessions: Mapping[str, Session], changed: Iterable[str]) -> None:
        """Adapt what is observed to the sessions that changed."""
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
        """Return what is wrong, for health."""
        deaths = {"deaths": note} if (note := self.deaths.note) else {}
        odd = {f"session {line(sid, 40)}": why for sid, why in list(self._odd.items())[:FEW]}
        found = {**self.folders.notes, **self.transcripts.notes, **self.panes.notes}
        return {**found, **deaths, **odd}

    def rescan(self) -> None:
        """Check everything: no system promises to report every change."""
        self.folders.rescan()
        self.following.rescan()
        for sid, s in list(self._sessions.items()):
            self._guarded(sid, partial(self._attend, s))
        self.directories.rescan()
        at_work = (sid for sid, s in self._sessions.items() if _is_at_work(s) or "ports" in s.facts)
        self._stirred |= dict.fromkeys(at_work)
        self._check_panes()
        self._search_agents()

    def check_ports(self) -> None:
        """Check the ports of sessions that are new or at rest again."""
        stirred, self._stirred = self._stirred, {}
        for sid in stirred:
            s = self._sessions.get(sid)
            if s is not None and s.processes:
                pids, then = sorted(s.processes), partial(self._listen, sid)
                path, key = f"{processes.PROC}/{pids[0]}/fd", f"ports of {sid}"
                self._slow.do(path, partial(processes.listening, pids), then, key=key)

    def prove(self, options: Options) -> float:
        """Check which tools run before they count as waiting for approval; return the next time."""
        now, again = self._clock(), NEVER
        for sid, s in self._sessions.items() if options.approval else ():
            again = min(again, self._guarded(sid, partial(self._prove, s, options, now)) or NEVER)
        return again

    # ------------------------------------------------------------ each session

    def _guarded(self, sid: str, work: Callable[[], T]) -> T | None:
        """Run `work` for a session; a failure is noted and affects no other session."""
        try:
            result = work()
        except Exception as e:
            self._odd[sid] = line(f"{type(e).__name__}: {e}", 200)
            return None
        self._odd.pop(sid, None)
        return result

    def _prove(self, s: Session, options: Options, now: float) -> float:
        again, proven = NEVER, self._proven.setdefault(s.session_id, set())
        for slot, since, due in slow_tools(s, options):
            if slot in proven:
                continue
            if due - now > LEAD:
                again = min(again, due - now - LEAD)
                continue
            proven.add(slot)
            for pid in s.processes:
                work, key = partial(running.at_work, now, pid, since), f"tools of {pid}"
                self._reach.do(f"{processes.PROC}/{pid}/task", work, self._report, key=key)
        return again

    def _attend(self, s: Session) -> None:
        sid = s.session_id
        runs = set()
        for pid, process in s.processes.items():
            if not (process.started or processes.is_alive(pid)):
                continue  # never seen alive from here, such as in a container: proves nothing
            runs.add(pid)
            if pid not in self.deaths.watched and not processes.runs(pid, process.started):
                self._dead.add(pid)
            self.deaths.watch(pid, process.started)
            seen = self._seen.setdefault(pid, set())
            if process.started not in seen:
                # Reported once for hooks, which lack the start time, and once with it.
                seen |= {process.started, processes.started_of(pid)}
                work = partial(running.seen, self._clock(), pid, self._generation)
                path, key = f"{processes.PROC}/{pid}/environ", f"process {pid} {process.started}"
                self._reach.do(path, work, self._report, key=key)
        self._hold(sid, runs)
        if s.config_dir:
            self.folders.need(s.config_dir, sid)
        self.following.attend(s, self.folders.of(s))
        self.screens.attend(s)
        if is_nameless(sid) and is_path(s.cwd) and (config := self.folders.of(s)):
            self._expect_in(folder_of(config, s.cwd), sid)
        if s.cwd:
            self.directories.move(sid, s.cwd)

    def _leave(self, sid: str) -> None:
        """Drop a session that has ended."""
        self._hold(sid, set())
        self.folders.leave(sid)
        self.following.forget(sid)
        self.directories.leave(sid)
        self.screens.leave(sid)
        self._expect_in("", sid)
        self._proven.pop(sid, None)
        self._odd.pop(sid, None)
        self._stirred.pop(sid, None)

    def _hold(self, sid: str, pids: set[int]) -> None:
        """Set the processes of a session; stop watching those that no session has."""
        before = self._runs.pop(sid, set())
        if pids:
            self._runs[sid] = pids
        for pid in pids:
            self._needed.setdefault(pid, set()).add(sid)
        for pid in before - pids:
            self._needed[pid].discard(sid)
            if not self._needed[pid]:
                del self._needed[pid]
                self._seen.pop(pid, None)
                self.deaths.leave(pid)

    # ------------------------------------------------------------ findings

    def _check_panes(self) -> None:
        by_socket: dict[str, set[str]] = {}
        for s in self._sessions.values():
            if s.tmux and s.pane:
                by_socket.setdefault(s.tmux, set()).add(s.pane)
        self.panes.keep(by_socket)
        for socket in by_socket:
            if self.panes.is_due(self._clock(), socket):
                work, then = partial(panes_of, socket), partial(self._took_panes, socket)
                lane = self._deaf if self.panes.is_deaf(socket) else self._slow
                lane.do(socket, work, then, key=f"panes of {socket}")

    def _took_panes(self, socket: str, answer: tuple[list[Pane] | None, str]) -> None:
        panes = {s.pane for s in self._sessions.values() if s.tmux == socket and s.pane}
        for finding in self.panes.take(self._clock(), socket, panes, *answer):
            self._report(finding)

    def _expect_in(self, folder: str, sid: str) -> None:
        """Watch the folder where a session without an id will write; "" to stop."""
        before = self._unnamed.pop(sid, "")
        if folder:
            self._unnamed[sid] = folder
            self.watched.need(folder, STARTS, sid)
        if before and before != folder:
            self.watched.leave(before, STARTS, sid)

    def _expect_agents(self) -> None:
        """Search for agents soon, and again later: one may have started or been used first."""
        for after in SOON:
            if after not in self._timers:
                self._timers[after] = self._loop.call_later(after, self._search_again, after)

    def _search_again(self, after: float) -> None:
        del self._timers[after]
        self._discovery.hasten()
        self._search_agents()

    def _search_agents(self) -> None:
        named = [s for s in self._sessions.values() if not is_nameless(s.session_id)]
        known = {*self.folders.registry.records, *(pid for s in named for pid in s.processes)}
        search = self._discovery.begin(self._clock(), known, [s.session_id for s in named])
        if search is not None:
            key = f"search {self._clock()}"
            self._slow.do("", search, self._found, key=key, where=search.where)

    def _found(self, agents: list[Found]) -> None:
        for pid in [pid for pid in self._found_in if not processes.is_alive(pid)]:
            self._found_in.remove(pid)
            self.folders.leave(f"process {pid}")
        for found in self._discovery.end(agents):
            if found.config:
                self._found_in.add(found.pid)
                self.folders.need(found.config, f"process {found.pid}")
            is_known = found.pid in self._needed and not found.session_id
            if is_known or found.pid in self.folders.registry.records:
                continue  # its own file says more
            if found.has_file and not self.folders.is_read(found.pid):
                self._expect_agents()
                continue
            if not found.is_new:
                self._report(found.finding(self._clock(), self._generation))
                continue
            self._expect_agents()  # if it does not report itself
            if found.tmux and found.pane:
                work, then = (
                    partial(rows_of, found.tmux, found.pane),
                    partial(self._seen_new, found),
                )
                self._slow.do(found.tmux, work, then, key=f"screen {found.pane} at its start")

    def _seen_new(self, found: Found, rows: list[str]) -> None:
        """Report an agent that asks something at its start, such as whether to trust a folder."""
        seen = read(rows)
        if seen is not None and seen.says == "waiting":
            self._report(found.finding(self._clock(), self._generation))
            sid = found.session_id or nameless(found.pid, found.started)
            self._report(screen_finding(self._clock(), sid, found.pid, seen))

    def _listen(self, sid: str, ports: list[int]) -> None:
        s = self._sessions.get(sid)
        if s is not None and ports != s.facts.get("ports", []):
            now, facts = self._clock(), {"session_id": sid, "ports": ports}
            self._report(Finding({"t": now, "facts": facts}, f"facts {facts} {now // REPEAT}"))

    def _answered(self, branch: Branch) -> None:
        self.directories.answered(branch)

    def _died(self, pid: int, started: str) -> None:
        found = pid in self._dead
        self._dead.discard(pid)
        self._report(running.gone(self._clock(), pid, started, found))
        self.folders.died(pid)


def _is_at_work(s: Session) -> bool:
    return status_of(s) in ("working", "background")
