"""Observe everything besides the spool, for as long as a session needs it.

The host passes in the sessions and the changed paths, and gets findings back.  Only what is needed
is watched: session files always, a transcript while its session is at work, the HEAD of each
repository in use, and the exit of each process.

Everything that may hang runs in `reach`.  Each source (a file, a repository, a server, a process)
is a job of its own, so that none blocks the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from ..agents.cli import Means
from ..agents.clis import cli_of, clis
from ..agents.dialects import is_known
from ..core.deadlines import NEVER, slow_tools
from ..core.detail import line
from ..core.finding import Finding, learned
from ..core.options import Options
from ..core.session import Session, is_listed, status_of
from ..system import processes
from ..system.deaths import Deaths
from ..system.doer import Doer
from ..system.failures import described
from ..system.tmux import Pane
from ..system.watch import Watch
from ..system.watched import Watched
from . import running
from .directories import Directories
from .own_reports import OwnReports, Said
from .panes import Panes, panes_of
from .screens import Screens
from .titled import Titled

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
        found = {cli.key: cli.witness(means) for cli in clis()}
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
        elif is_known(s.agent):
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
                work, key = partial(running.at_work, now, pid, since), f"tools of {pid}"
                self._reach.do(f"{processes.PROC}/{pid}/task", work, self._report, key=key)
        return again

    def _attend(self, s: Session) -> None:
        sid = s.session_id
        runs = set()
        for pid, process in s.processes.items():
            started = running.start_of(process)
            if not (started or processes.is_alive(pid)):
                continue  # never seen alive from here, such as in a container: proves nothing
            runs.add(pid)
            if pid not in self.deaths.watched and not processes.runs(pid, started):
                self._dead.add(pid)
            self.deaths.watch(pid, started)
            seen = self._seen.setdefault(pid, set())
            if process.started not in seen and not running.is_another(process, s.hook_at):
                # Reported once for hooks, which lack the start time, and once with it.
                seen |= {process.started, processes.started_of(pid)}
                work = partial(running.seen, self._clock(), pid, self._generation)
                path, key = f"{processes.PROC}/{pid}/environ", f"process {pid} {process.started}"
                self._reach.do(path, work, self._report, key=key)
        self._hold(sid, runs)
        if is_known(s.agent):
            if (witness := self.witnesses.get(cli_of(s.agent).key)) is not None:
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
        self._report(running.gone(self._clock(), pid, started, found))
        self.own_reports.died(pid)
        for witness in self.witnesses.values():
            witness.died(pid)


def _is_at_work(s: Session) -> bool:
    return status_of(s) in ("working", "background")
