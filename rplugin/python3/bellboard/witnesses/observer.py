"""Observe the needs of sessions: their processes, panes, screens, folders and files."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from ..agents.agent import Agent
from ..agents.need import CHANGED, DIED, JOINED, NEED, RESCAN, Means, Need, Observe, Observing
from ..agents.registry import WITNESSED, agent_of, is_known_agent
from ..core.board import Board
from ..core.clock import is_recent
from ..core.deadlines import NEVER, slow_tools
from ..core.evidence import Evidence, TraceLine, learned
from ..core.observing import Want, shows_on_screen, wanted
from ..core.options import Options
from ..core.restore import CLOSED, HOLDER, TOGETHER, WINDOW, held_by, holder_words, is_to_judge
from ..core.session import Process, Session, is_listed, status_of
from ..core.text import line
from ..core.untrusted import decimal
from ..system import processes
from ..system.deaths import Deaths
from ..system.failures import described
from ..system.notes import Notes
from ..system.places import place_of
from ..system.processes import FIRST, own_space
from ..system.reach import Rounds, reach
from ..system.tmux import DEAF, PANE, Pane, Tmux
from ..system.watch import Unwatched, Watch, Watched, Written
from .own_reports import OwnReports, Said
from .pull_requests import PullRequest, PullRequests
from .repository import observe_repository
from .terminals import Sent, observe_screen, observe_titles

# Report on the processes of sessions: terminal, children, end.


Clock = Callable[[], float]
Report = Callable[[], list[Evidence]]
CLOCK: Final = 1.0  # seconds; the system reports its boot time to the second


def gone(now: float, pid: int, started: str = "", found: bool = False) -> Evidence:
    """Report that a process is gone; if it was `found` so, nobody knows when it exited."""
    line = TraceLine(pid=pid, alive=False, started=started, found=found).line(now, "process")
    return Evidence(line, f"process gone {pid} {started}")


def found_gone(now: float, pid: int, started: str) -> list[Evidence]:
    return [gone(now, pid, started, found=True)]


def process_seen(now: float, pid: int, generation: str = "") -> Evidence:
    """Report the terminal and the start of a process, or that it is gone.

    The terminal is found by the environment of the process, as for hooks that it starts.
    """
    started = processes.started_of(pid)
    if not processes.is_alive(pid):
        return gone(now, pid, started, found=True)
    known = TraceLine(pid=pid, alive=True, started=started, **place_of(pid)._asdict())
    return Evidence(known.line(now, "process"), f"process {known.fields} {generation}")


def process_found(now: float, s: Session, pid: int, generation: str = "") -> list[Evidence]:
    """Report a process of a session, and the process that holds its terminal."""
    found, known = [process_seen(now, pid, generation)], s.facts.get(HOLDER)
    holds = 0 if pid != s.pid or s.processes[pid].shared else processes.holder_of(pid)
    value = holder_words(holds, processes.started_of(holds)) if holds else known
    return found if value == known else [*found, learned(now, s, {HOLDER: value})]


def outlived(now: float, s: Session) -> Evidence | None:
    """Report that the terminal of a session has gone on without it: its user has closed it."""
    held = held_by(s)
    is_late = now >= s.ended + TOGETHER
    if not (is_late and held and is_to_judge(s) and processes.runs(*held)):
        return None
    return learned(now, s, {CLOSED: s.ended})


def is_another(process: Process, heard: float) -> bool:
    """Return whether the pid belongs to a process that began after the last hook of the session.

    A process that began before that hook is the session's own, even if its start time differs.
    """
    if not process.started or processes.runs(process.pid, process.started):
        return False
    began = processes.began_at(process.pid)
    return began is not None and began > heard + CLOCK


def at_work(now: float, pid: int, since: float) -> Evidence:
    """Report how many children started since then: a running tool has a child.

    Older children prove nothing: an MCP server is a child for as long as the agent runs.
    """
    began = [processes.began_at(child) or 0.0 for child in processes.children_of(pid)]
    seen = TraceLine(pid=pid, alive=True, children=sum(t > since - CLOCK for t in began))
    return Evidence(seen.line(now, "process"), f"process {seen.fields} {since}")


def start_of(process: Process) -> str:
    """Return the proven start time of a session's process, or "".

    If we see all processes, the claim of a hook counts: a process in a sandbox was located first.
    """
    return process.started or (process.claimed if own_space() == FIRST else "")


def reports(s: Session, clock: Clock, generation: str) -> Iterator[tuple[int, Report | None]]:
    """Yield the processes of a session, each with its report, unless it runs as already known."""
    for pid, process in s.processes.items():
        started = start_of(process)
        if not (started or processes.is_alive(pid)):
            continue  # never seen alive from here, such as in a container: proves nothing
        if not processes.runs(pid, started):
            yield pid, partial(found_gone, clock(), pid, started)
        else:
            found = partial(process_found, clock(), s, pid, generation)
            yield pid, None if process.started else found


def watch_process(deaths: Deaths, dead: set[tuple[int, str]], pid: int, process: Process) -> None:
    """Watch for the end of a process at once: later, its life may no longer be provable.

    A process that has already ended is noted in `dead`.
    """
    started = start_of(process)
    if not (started or processes.is_alive(pid)):
        return  # never seen alive from here, such as in a container: proves nothing
    if pid not in deaths.watched and not processes.runs(pid, started):
        dead.add((pid, started))
    deaths.watch(pid, started)


async def observe_process(need: Need, dead: set[tuple[int, str]]) -> None:
    """Report the terminal and the start of a process, once for each start time, and its end."""
    pid = int(need.want.of[0])
    reported: set[str] = set()
    while True:
        for s in list(need.sessions.values()):
            process = s.processes[pid]
            if not (start_of(process) or processes.is_alive(pid)):
                continue
            if process.started not in reported and not is_another(process, s.hook_at):
                # Report once for hooks, which lack the start time, and once with the start time.
                reported |= {process.started, processes.started_of(pid)}
                seen = partial(process_found, need.means.clock(), s, pid, need.means.generation)
                for found in await reach(seen, f"{processes.PROC}/{pid}/environ"):
                    need.report(found)
        await need.news(CHANGED, DIED)
        died, need.died = need.died, {}
        for ended in died.values():
            was_dead = (pid, ended) in dead
            dead.discard((pid, ended))
            need.report(gone(need.means.clock(), pid, ended, was_dead))


# Report whether the tmux panes of sessions still exist, and in which windows they are.


EVERY: Final = 10.0  # seconds between two queries of a server


async def observe_panes(need: Need) -> None:
    """Report which panes of a server's sessions exist, and where they are.

    They are looked at when there is a new session, and each time that everything is checked.
    """
    [socket] = need.want.of
    reported: dict[str, str] = {}  # pane → tty; empty: gone
    topic, asked, every = f"tmux {socket}", -math.inf, EVERY
    while socket.startswith("/"):
        news = await need.news(JOINED, RESCAN)
        is_asked = JOINED in news and every == EVERY
        if is_recent(asked, need.means.clock(), every) and not is_asked:
            continue
        listed, why = await reach(partial(panes_of, socket), socket, PATIENCE)
        now = asked = need.means.clock()
        if listed is None:
            need.say(topic, why)
            every = DEAF
            continue
        need.say(topic, "")
        every = EVERY
        live = {p.id: p for p in listed if not p.dead}
        used = {s.pane for s in need.sessions.values()}
        reported = {pane: tty for pane, tty in reported.items() if pane in used}
        for pane in sorted(used):
            tty = live[pane].tty if pane in live else ""
            if reported.get(pane) == tty or not PANE.fullmatch(pane):
                continue
            before, reported[pane] = reported.get(pane, ""), tty
            seen = TraceLine(tmux=socket, pane=pane, alive=pane in live, tty=tty)
            # A restarted server numbers its panes from 0 again.
            once = f"{live[pane].pid if pane in live else before} {need.means.generation}"
            key = f"pane {socket} {pane} {tty or 'gone'} {once}"
            need.report(Evidence(seen.line(now, "pane"), key))
        for s in need.sessions.values():
            known = s.facts.get(WINDOW, [])
            if (window := window_of(s, live.get(s.pane), known)) != known:
                need.report(learned(now, s, {WINDOW: window}))


def window_of(s: Session, pane: Pane | None, known: object) -> object:
    """Return the window of a session, [] if its pane is that of a program around it.

    While its pane is not there, it is where it was `known` to be.
    """
    if pane is None:
        return known
    if s.tty != pane.tty if s.tty else s.nvim:
        return []
    session, _, index = pane.name.rpartition(".")[0].rpartition(":")
    return [s.tmux, session, int(index), pane.window_name]


def panes_of(socket: str) -> tuple[list[Pane] | None, str]:
    """Return the panes of a server, or None and the reason."""
    tmux = Tmux(socket)
    return tmux.panes(), tmux.why


# Observe everything besides the spool, for as long as a session needs it.
#
# The host passes in the sessions and the changed paths, and gets evidence back. Only needs are
# watched: session files always, a transcript while its session is at work, the HEAD of each
# repository in use, and the exit of each process.


SLICE: Final = 0.02  # seconds in a row for sessions, which block the event loop
LEAD: Final = 1.0  # seconds before a tool is overdue: evidence must be folded by then
PATIENCE: Final = 5.0  # seconds for programs, and for work that takes milliseconds
MOST_EARLY: Final = 50  # terminals to remember
OF_NEED: Final = "\0"  # start of the name of a holder that is a need


class Observer:
    """Observes the wants of sessions, each once, from `open` on; calls `report` with evidence.

    A `brief` observer looks once, and only at the files of agents, each of which is then added.
    Reports of the `board` itself are ignored.
    """

    def __init__(
        self,
        report: Callable[[Evidence], None],
        clock: Callable[[], float],
        environ: Mapping[str, str],
        pull_requests: bool = False,
        brief: bool = False,
        board: str = "",
    ) -> None:
        self.notes = Notes()
        self.needs: dict[Want, Need] = {}
        self.own_reports = OwnReports(report, clock, self.notes, board)
        self._clock, self._pull_requests = clock, pull_requests
        self.watched: Watched = Unwatched()
        self._means = Means(self.watched, report, clock, environ, brief=brief)
        self._sent = Sent(report, clock, clock())
        self._observe: dict[str, Observe] = {}
        self._agents: dict[str, Observing] = {}
        self._wants: dict[str, set[Want]] = {}  # by holder: a session, another need, an agent
        self._sessions: dict[str, Session] = {}  # listed
        self._unattended: set[str] = set()  # sessions that have changed since
        self._rounds = Rounds()
        self._stirred: dict[str, None] = {}  # sessions whose ports are to be checked
        self._early: dict[str, tuple[int, Sequence[str] | str]] = {}  # session → its terminal
        self._proven: dict[str, set[str]] = {}  # session → tools whose processes were checked
        self._reported: list[tuple[str, int, Sequence[Said], int]] = []  # not taken yet
        self._dead: set[tuple[int, str]] = set()  # processes that ended before they were watched
        self._ended: dict[str, asyncio.TimerHandle] = {}  # sessions to judge a moment later
        self._is_open = False

    def open(self, watch: Watch | None = None, generation: str = "") -> None:
        """Begin to observe; nothing is watched without a watch."""
        self.deaths, self._written, self._is_open = Deaths(self._died), Written(), True
        self._hand_on()
        if watch is not None:
            self.watched = Watched(watch)
        self._means = self._means._replace(
            watched=self.watched, generation=generation, since=self._clock()
        )
        if self._means.brief:
            return
        more = PullRequest().facts() if self._pull_requests else {}
        self._observe = {
            "process": partial(observe_process, dead=self._dead),
            "panes": observe_panes,
            "repository": partial(observe_repository, more=more),
            "screen": observe_screen,
            "spare screen": observe_screen,
            "titles": observe_titles,
        }
        if self._pull_requests:
            self._observe["pull request"] = PullRequests(self._means.environ).observe
        self._add_all()

    def add(self, agent: Agent) -> None:
        """Also observe the files and servers of an agent."""
        if agent.key in self._agents:
            return
        observing = agent.observing(self._means.environ, self._means.brief)
        if observing is not None:
            self._agents[agent.key] = observing
            self._observe |= observing.observe
            self._hold(f"agent {agent.key}", {*observing.always})

    def _add_all(self) -> None:
        """Add each agent that shows more than hooks, again if it could not be loaded."""
        for key in WITNESSED if not self._means.brief else ():
            with self._noting(f"agent {key}"):
                self.add(agent_of(key))

    def close(self) -> None:
        """Stop observing."""
        for need in self.needs.values():
            need.close()
        for timer in self._ended.values():
            timer.cancel()
        self._rounds.close()
        self.deaths.close()
        self._written.close()
        self.own_reports.close()

    def renew(self, generation: str) -> None:
        """Report everything again, after a time without hosts."""
        self._means = self._means._replace(generation=generation, since=self._clock())
        self._sent = Sent(self._means.report, self._clock, self._means.since)
        self.own_reports.renew()
        needs, self.needs = self.needs, {}
        for need in needs.values():
            need.close()
        wants, self._wants = self._wants, {}
        for holder, its in wants.items():
            if not holder.startswith(OF_NEED):  # a need asks for more again
                self._hold(holder, its, self._sessions.get(holder))
        self.rescan()

    def changed(self, paths: Collection[str]) -> None:
        """Take paths that a watch reported; ignore those that are not ours."""
        for path in paths:
            for whole in (path, os.path.dirname(path)):  # noqa: PTH120 - strings, as watched
                for need in self.watched.who(whole, NEED):
                    need.take_path(path)

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
                continue
            if self._sessions.pop(sid, None) is not None:
                self._leave(sid)
            if s is not None and is_to_judge(s):
                self._judge(s)

    def _judge(self, s: Session) -> None:
        """Report whether the terminal of a session goes on without it, a moment after its end."""
        if (timer := self._ended.pop(s.session_id, None)) is not None:
            timer.cancel()
        wait = s.ended + TOGETHER - self._clock()
        if 0 < wait <= TOGETHER:
            later = asyncio.get_running_loop().call_later(wait, self._judge, s)
            self._ended[s.session_id] = later
        elif (found := outlived(self._clock(), s)) is not None:
            self._means.report(found)

    def note_changed(self, sids: Iterable[str]) -> None:
        """Note sessions whose needs may have changed."""
        self._unattended.update(sids)

    def run(self, board: Board) -> float:
        """Attend to changed sessions, a few at a time; return the seconds until the next call.

        Otherwise a host that starts among hundreds of sessions would block for seconds.
        """
        until = time.monotonic() + SLICE
        for sid in list(self._unattended):
            if time.monotonic() > until:
                return 0.0
            self._unattended.discard(sid)
            with self._noting(f"session {line(sid, 40)}"):
                self.attend(board.sessions, (sid,))
        self.check_ports()
        return self.prove(board.options)

    @property
    def has_attended(self) -> bool:
        """Return whether all changed sessions were attended to."""
        return not self._unattended

    @property
    def is_at_rest(self) -> bool:
        """Return whether all news was looked at."""
        return all(need.is_at_rest for need in self.needs.values())

    def late(self) -> set[str]:
        """Return the sessions that are still being observed; "": any session, by shared files."""
        late: set[str] = set()
        for need in self.needs.values():
            if not (need.is_at_rest or need.is_extra):
                late |= need.sessions.keys()
                late |= {""} if need.holders - need.sessions.keys() else set()
        return late

    def hand_in(self, sid: str, pid: int, shown: Sequence[str] | str) -> None:
        """Take the contents or the title of the terminal of a session from its Neovim.

        The Neovim may know of a new session before us, and its report may never change again.
        """
        s = self._sessions.get(sid)
        if s is None:
            self._early = {**dict(list(self._early.items())[1 - MOST_EARLY :]), sid: (pid, shown)}
            return
        with self._noting(f"terminal of {line(sid, 40)}"):
            if isinstance(shown, str):
                self._sent.title(s, pid, shown)
            elif is_known_agent(s.agent):
                self._sent.rows(s, pid, shown)

    def take_reports(self, tty: str, job: int, said: Sequence[Said], dropped: int) -> None:
        """Take the own reports of programs in a terminal of our Neovim."""
        self._reported.append((tty, job, said, dropped))
        del self._reported[:-MOST_EARLY]
        if self._is_open:
            self._hand_on()

    def _hand_on(self) -> None:
        reported, self._reported = self._reported, []
        for tty, job, said, dropped in reported:
            there = [s for s in self._sessions.values() if s.tty == tty]
            self.own_reports.hand_in(tty, job, said, there, dropped)

    def rescan(self) -> None:
        """Check everything: no system promises to report every change."""
        self.notes.settle("deaths")
        if self.deaths.note:
            self.notes.say("deaths", self.deaths.note)
        self._add_all()
        for sid, s in list(self._sessions.items()):
            with self._noting(f"session {line(sid, 40)}"):
                self._attend(s)
        for need in self.needs.values():
            need.stir(RESCAN)
        at_work = (sid for sid, s in self._sessions.items() if _is_at_work(s) or "ports" in s.facts)
        self._stirred |= dict.fromkeys(at_work)

    def check_ports(self) -> None:
        """Check the ports of sessions that are new or at rest again."""
        stirred, self._stirred = self._stirred, {}
        for sid in stirred:
            s = self._sessions.get(sid)
            if s is not None and s.processes:
                self._rounds.run(f"ports of {sid}", partial(self._listen, sid, sorted(s.processes)))

    def prove(self, options: Options) -> float:
        """Check which tools run before they count as waiting for approval; return the next time."""
        now, again = self._clock(), NEVER
        for s in self._sessions.values() if options.approval else ():
            with self._noting(f"tools of {line(s.session_id, 40)}"):
                again = min(again, self._prove(s, options, now))
        return again

    @contextlib.contextmanager
    def _noting(self, topic: str) -> Iterator[None]:
        """Note a failure in health, so that it affects nothing else, and check everything again."""
        try:
            yield
        except Exception as e:
            self.notes.say(topic, described(e))
        else:
            self.notes.settle(topic)

    # ------------------------------------------------------------ each session

    def _attend(self, s: Session) -> None:
        sid, is_known, agent = s.session_id, is_known_agent(s.agent), agent_of(s.agent)
        wants = {*wanted(s, is_known, agent.has_titles)}
        if is_known and (its_own := self._agents.get(agent.key)) is not None:
            wants |= {*its_own.wanted(s, self._clock())}
        self._hold(sid, wants, s)
        if not self._means.brief:
            for pid, process in s.processes.items():
                watch_process(self.deaths, self._dead, pid, process)
        if not shows_on_screen(s):
            self._sent.forget_rows(sid)

    def _leave(self, sid: str) -> None:
        """Drop a session that has ended."""
        self._hold(sid, set())
        for observing in self._agents.values():
            observing.forget(sid)
        self._sent.forget(sid)
        self._proven.pop(sid, None)
        self._stirred.pop(sid, None)

    def _hold(self, holder: str, wants: set[Want], s: Session | None = None) -> None:
        """Observe the wants of a holder, each once, and end those that nobody holds any more."""
        before = self._wants.pop(holder, set())
        if wants:
            self._wants[holder] = wants
        for want in before - wants:
            if (need := self.needs.get(want)) is not None:
                need.leave(holder)
                if not need.holders:
                    del self.needs[want]
                    need.close()
                    self._forget(want)
                    self._hold(f"{OF_NEED}{want}", set())
        for want in wants:
            need = self.needs.get(want)
            if need is None and (observe := self._observe.get(want.kind)) is not None:
                need = Need(want, self._means, self._written, self.notes, self._want_more)
                self.needs[want] = need
                need.start(observe)
            if need is not None:
                need.take(holder, s)

    def _forget(self, want: Want) -> None:
        """Watch no longer for the end of a process that nobody needs."""
        if want.kind == "process" and (pid := decimal(want.of[0])) is not None:
            self.deaths.leave(pid)

    def _want_more(self, need: Need, wants: Iterable[Want]) -> None:
        if self.needs.get(need.want) is need:
            self._hold(f"{OF_NEED}{need.want}", {*wants})

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
                self._rounds.run(f"tools of {pid}", partial(self._count_children, pid, since))
        return again

    async def _count_children(self, pid: int, since: float) -> None:
        work = partial(at_work, self._clock(), pid, since)
        self._means.report(await reach(work, f"{processes.PROC}/{pid}/task"))

    async def _listen(self, sid: str, pids: list[int]) -> None:
        path = f"{processes.PROC}/{pids[0]}/fd"
        ports = await reach(partial(processes.listening, pids), path, PATIENCE)
        s = self._sessions.get(sid)
        if s is not None and ports != s.facts.get("ports", []):
            self._means.report(learned(self._clock(), s, {"ports": ports}))

    def _died(self, pid: int, started: str) -> None:
        self.own_reports.died(pid)
        of_it = Want("process", (str(pid),))
        for need in list(self.needs.values()):
            if need.want == of_it or need.wants_deaths:
                need.take_death(pid, started)


def _is_at_work(s: Session) -> bool:
    return status_of(s) in ("working", "background")
