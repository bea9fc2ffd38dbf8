"""Observe what sessions need watched: their processes, panes, screens, folders and files."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from ..agents.agent import Means
from ..agents.registry import agent_of, all_agents, is_known_agent
from ..core.clock import is_recent
from ..core.deadlines import NEVER, slow_tools
from ..core.finding import Finding, learned
from ..core.options import Options
from ..core.session import Process, Session, is_listed, status_of
from ..core.text import line
from ..system import processes
from ..system.deaths import Deaths
from ..system.failures import described
from ..system.places import place_of
from ..system.processes import FIRST, own_space
from ..system.reach import Doer
from ..system.tmux import DEAF, PANE, Pane, Tmux
from ..system.watch import Watch, Watched
from .own_reports import OwnReports, Said
from .repository import Directories
from .terminals import Screens, Titled

# Report what a process shows about its session: its terminal, its children, its end.


Clock = Callable[[], float]
Report = Callable[[], Finding]
CLOCK: Final = 1.0  # seconds; the system reports its boot time to the second


def gone(now: float, pid: int, started: str = "", found: bool = False) -> Finding:
    """Report that a process is gone; `found`: nobody saw it exit, so the time is unknown."""
    facts = {"pid": pid, "alive": False, "started": started} | ({"found": True} if found else {})
    return Finding({"t": now, "process": facts}, f"process gone {pid} {started}")


def process_seen(now: float, pid: int, generation: str = "") -> Finding:
    """Report where and since when a process runs, or that it is gone.

    Its environment says where its terminal may be, as it does for the hooks that it starts.
    """
    started = processes.started_of(pid)
    if not processes.is_alive(pid):
        return gone(now, pid, started, found=True)
    known = {"pid": pid, "alive": True, **({"started": started} if started else {})}
    known |= place_of(pid)
    return Finding({"t": now, "process": known}, f"process {known} {generation}")


def is_another(process: Process, heard: float) -> bool:
    """Return whether its pid belongs to a process that began after the last hook of the session.

    A process that began before that hook is the session's own, restarted, whatever was known of it.
    """
    if not process.started or processes.runs(process.pid, process.started):
        return False
    began = processes.began_at(process.pid)
    return began is not None and began > heard + CLOCK


def at_work(now: float, pid: int, since: float) -> Finding:
    """Report how many children started since then: a running tool has one.

    Older ones prove nothing: an MCP server is a child for as long as the agent runs.
    """
    began = [processes.began_at(child) or 0.0 for child in processes.children_of(pid)]
    facts = {"pid": pid, "alive": True, "children": sum(t > since - CLOCK for t in began)}
    return Finding({"t": now, "process": facts}, f"process {facts} {since}")


def start_of(process: Process) -> str:
    """Return when a process of a session started, if that is proven: "" proves nothing.

    Whoever sees all processes can believe a hook: one that is in a sandbox was found there.
    """
    return process.started or (process.claimed if own_space() == FIRST else "")


def reports(s: Session, clock: Clock, generation: str) -> Iterator[tuple[int, Report | None]]:
    """Yield the processes of a session, each with what reports it, unless it runs as is known."""
    for pid, process in s.processes.items():
        started = start_of(process)
        if not (started or processes.is_alive(pid)):
            continue  # never seen alive from here, such as in a container: proves nothing
        if not processes.runs(pid, started):
            yield pid, partial(gone, clock(), pid, started, found=True)
        else:
            yield pid, None if process.started else partial(process_seen, clock(), pid, generation)


# Report whether the tmux panes of sessions still exist.


EVERY: Final = 10.0  # seconds between two queries of a server


class Panes:
    """Reports which panes of sessions exist; queries a server at most every 10 s."""

    def __init__(self, generation: str = "") -> None:
        self._generation = generation
        self._asked: dict[str, float] = {}
        self._reported: dict[tuple[str, str], str] = {}  # socket, pane → tty; empty: gone
        self.notes: dict[str, str] = {}  # for health: which servers do not respond

    def renew(self, generation: str) -> None:
        """Report everything again at the next check, and check at once."""
        if generation != self._generation:
            self._generation = generation
            self._reported.clear()
            self._asked.clear()

    def is_due(self, now: float, socket: str) -> bool:
        """Return whether the server is due for a query."""
        asked, pause = self._asked.get(socket, -math.inf), DEAF if self.is_deaf(socket) else EVERY
        return socket.startswith("/") and not is_recent(asked, now, pause)

    def is_deaf(self, socket: str) -> bool:
        """Return whether the server did not respond last time."""
        return f"tmux {socket}" in self.notes

    def take(
        self,
        now: float,
        socket: str,
        panes: Collection[str],
        listed: list[Pane] | None,
        why: str = "",
    ) -> list[Finding]:
        """Process a server's answer about these panes, or the reason why there is none."""
        self._asked[socket] = now
        if listed is None:
            self.notes[f"tmux {socket}"] = why
            return []
        self.notes.pop(f"tmux {socket}", None)
        live = {p.id: p for p in listed if not p.dead}
        found = []
        for pane in sorted(panes):
            tty = live[pane].tty if pane in live else ""
            if self._reported.get((socket, pane)) == tty or not PANE.fullmatch(pane):
                continue
            before, self._reported[socket, pane] = self._reported.get((socket, pane), ""), tty
            facts = {"tmux": socket, "pane": pane, "alive": pane in live, "tty": tty}
            # A restarted server numbers its panes from 0 again.
            once = f"{live[pane].pid if pane in live else before} {self._generation}"
            key = f"pane {socket} {pane} {tty or 'gone'} {once}"
            found.append(Finding({"t": now, "pane": facts}, key))
        return found

    def keep(self, used: Mapping[str, Collection[str]]) -> None:
        """Forget panes that no session uses."""
        self._reported = {
            (socket, pane): tty
            for (socket, pane), tty in self._reported.items()
            if pane in used.get(socket, ())
        }
        for socket in self._asked.keys() - used.keys():
            del self._asked[socket]
        self.notes = {n: why for n, why in self.notes.items() if n.partition(" ")[2] in used}


def panes_of(socket: str) -> tuple[list[Pane] | None, str]:
    """Return the panes of a server, or None and why."""
    tmux = Tmux(socket)
    return tmux.panes(), tmux.why


# Observe everything besides the spool, for as long as a session needs it.
#
# The host passes in the sessions and the changed paths, and gets findings back. Only what is
# needed is watched: session files always, a transcript while its session is at work, the HEAD
# of each repository in use, and the exit of each process.
#
# Everything that may hang runs in `reach`. Each source (a file, a repository, a server, a
# process) is a job of its own, so that none blocks the others.


LEAD: Final = 1.0  # seconds before a tool is overdue: findings must be folded by then
PATIENCE: Final = 5.0  # seconds for programs, and for work that takes milliseconds
FEW: Final = 5  # sessions to name in health
MOST_EARLY: Final = 50  # terminals to remember

T = TypeVar("T")


class Lookout:
    """Observes outside the event loop, and calls `report` in it with each finding."""

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
        means = Means(reach, self.watched, report, clock, environ, generation)
        found = {cli.key: cli.witness(means) for cli in all_agents()}
        self.witnesses = {key: witness for key, witness in found.items() if witness is not None}
        self.directories = Directories(means, pull_requests)
        self.panes = Panes(generation)
        self.deaths = Deaths(self._died)
        self._reach, self._report, self._clock = reach, report, clock
        self._slow, self._deaf = reach.lane("slow", PATIENCE), reach.lane("deaf", PATIENCE)
        self.screens = Screens(reach.lane("screens", PATIENCE), report, clock)
        self.own_reports = OwnReports(reach.lane("reports", PATIENCE), report, clock)
        self.titled = Titled(reach.lane("titles", PATIENCE), report, clock)
        self._generation = generation
        self._sessions: dict[str, Session] = {}  # listed
        self._runs: dict[str, set[int]] = {}  # session → its processes
        self._needed: dict[int, set[str]] = {}  # process → its sessions
        self._seen: dict[int, set[str]] = {}  # process → start times already reported
        self._dead: set[int] = set()  # processes that exited before they were watched
        self._stirred: dict[str, None] = {}  # sessions whose ports are to be checked
        self._early: dict[str, tuple[int, Sequence[str] | str]] = {}  # session → its terminal
        self._odd: dict[str, str] = {}  # session → why it could not be attended to
        self._proven: dict[str, set[str]] = {}  # session → tools whose processes were checked

    def close(self) -> None:
        """Stop observing."""
        self.deaths.close()
        self.screens.close()
        self.titled.close()
        self.own_reports.close()
        for witness in self.witnesses.values():
            witness.close()

    def renew(self, generation: str) -> None:
        """Report everything again, after a time without hosts."""
        self._generation = generation
        for witness in self.witnesses.values():
            witness.renew(generation)
        self.panes.renew(generation)
        self.directories.renew()
        self.screens.renew()
        self.titled.renew()
        self.own_reports.renew()
        self._seen.clear()
        self.rescan()

    def changed(self, paths: Collection[str]) -> None:
        """Take paths that a watch reported; ignore those that are not ours."""
        for witness in self.witnesses.values():
            witness.changed(paths)
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
                if early := self._early.pop(sid, None):
                    self.hand_in(sid, *early)
            elif self._sessions.pop(sid, None) is not None:
                self._leave(sid)

    def hand_in(self, sid: str, pid: int, shown: Sequence[str] | str) -> None:
        """Take the contents or the title of the terminal of a session from its Neovim.

        That Neovim may know of a new session first, and what it reports may never change again.
        """
        s = self._sessions.get(sid)
        if s is None:
            self._early = {**dict(list(self._early.items())[1 - MOST_EARLY :]), sid: (pid, shown)}
        elif isinstance(shown, str):
            self.titled.hand_in(s, pid, shown)
        elif is_known_agent(s.agent):
            self.screens.hand_in(s, pid, shown)

    def take_reports(self, tty: str, job: int, said: Sequence[Said], dropped: int) -> None:
        """Take what programs report of themselves in a terminal of our Neovim."""
        there = [s for s in self._sessions.values() if s.tty == tty]
        self.own_reports.hand_in(tty, job, said, there, dropped)

    @property
    def notes(self) -> dict[str, str]:
        """Return what is wrong, for health."""
        deaths = {"deaths": note} if (note := self.deaths.note) else {}
        odd = {f"session {line(sid, 40)}": why for sid, why in list(self._odd.items())[:FEW]}
        found = {k: v for w in self.witnesses.values() for k, v in w.notes.items()}
        reports = self.own_reports.notes
        return {**found, **self.panes.notes, **deaths, **odd, **reports}

    def rescan(self) -> None:
        """Check everything: no system promises to report every change."""
        for sid, s in list(self._sessions.items()):
            self._guarded(sid, partial(self._attend, s))
        self.directories.rescan()
        at_work = (sid for sid, s in self._sessions.items() if _is_at_work(s) or "ports" in s.facts)
        self._stirred |= dict.fromkeys(at_work)
        self._check_panes()
        for witness in self.witnesses.values():
            witness.rescan()

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
            self._odd[sid] = described(e)
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
                work, key = partial(at_work, now, pid, since), f"tools of {pid}"
                self._reach.do(f"{processes.PROC}/{pid}/task", work, self._report, key=key)
        return again

    def _attend(self, s: Session) -> None:
        sid = s.session_id
        runs = set()
        for pid, process in s.processes.items():
            started = start_of(process)
            if not (started or processes.is_alive(pid)):
                continue  # never seen alive from here, such as in a container: proves nothing
            runs.add(pid)
            if pid not in self.deaths.watched and not processes.runs(pid, started):
                self._dead.add(pid)
            self.deaths.watch(pid, started)
            seen = self._seen.setdefault(pid, set())
            if process.started not in seen and not is_another(process, s.hook_at):
                # Reported once for hooks, which lack the start time, and once with it.
                seen |= {process.started, processes.started_of(pid)}
                work = partial(process_seen, self._clock(), pid, self._generation)
                path, key = f"{processes.PROC}/{pid}/environ", f"process {pid} {process.started}"
                self._reach.do(path, work, self._report, key=key)
        self._hold(sid, runs)
        if is_known_agent(s.agent):
            if (witness := self.witnesses.get(agent_of(s.agent).key)) is not None:
                witness.attend(s)
            self.screens.attend(s)
        self.titled.attend(s)
        if s.cwd:
            self.directories.attend(s)

    def _leave(self, sid: str) -> None:
        """Drop a session that has ended."""
        self._hold(sid, set())
        for witness in self.witnesses.values():
            witness.leave(sid)
        self.directories.leave(sid)
        self.screens.leave(sid)
        self.titled.leave(sid)
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

    def _listen(self, sid: str, ports: list[int]) -> None:
        s = self._sessions.get(sid)
        if s is not None and ports != s.facts.get("ports", []):
            self._report(learned(self._clock(), s, {"ports": ports}))

    def _died(self, pid: int, started: str) -> None:
        found = pid in self._dead
        self._dead.discard(pid)
        self._report(gone(self._clock(), pid, started, found))
        self.own_reports.died(pid)
        for witness in self.witnesses.values():
            witness.died(pid)


def _is_at_work(s: Session) -> bool:
    return status_of(s) in ("working", "background")
