"""Observe Claude Code: its session files and transcripts, and its processes that have neither."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from ...core.evidence import Evidence, TraceLine
from ...core.observing import Want
from ...core.session import Session, is_nameless, nameless
from ...system import processes
from ...system.deaths import Deaths
from ...system.files import is_path
from ...system.places import Place
from ...system.processes import PROC
from ...system.reach import Hangs, reach
from ...system.tmux import rows_of
from ..agent import DEPTH, Agent
from ..need import DIED, LEFT, PATHS, RESCAN, Need, Observing
from ..tailing import Logs
from .discovery import GRACE, PATIENCE, Attached, Discovery, FoundProcess, listed_by
from .screen import read_screen
from .session_files import (
    ODD,
    FileState,
    Registry,
    config_of,
    file_state,
    list_files,
    of_listing,
    path_of,
    transcripts_folder,
)

WRITTEN: Final = 1.0  # seconds for which a file that is written in place may be invalid
PAUSE: Final = 5.0  # seconds between two runs of the CLI
MOST_FOLDERS: Final = 100  # config directories; users have one or two
SOON: Final = (0.5, 1.5, GRACE + 1.0)  # seconds after an agent may have started
SEARCHING: Final = 5.0  # seconds for a search of all processes, which takes milliseconds

PROCESSES: Final = Want("claude processes", ())
FOLDER: Final = "claude folder"
UNNAMED: Final = "claude unnamed"
STARTS: Final = "starts"  # the news that an agent may have started


def start_files(config_dir: str) -> tuple[str, ...]:
    """Return the paths that a CLI writes at its start: in its directory, or next to the default.

    The last path is a folder, for a CLI that shows a background session.
    """
    return (
        *(f"{config_dir}/.claude.json", f"{config_dir}.json"),
        f"{config_dir}/daemon/attach-journal",
    )


class ClaudeSessions:
    """Observes session files, logs, and the processes that have neither."""

    def __init__(self, agent: Agent, environ: Mapping[str, str], brief: bool) -> None:
        self._environ = dict(environ)
        self._default = str(config_of(environ))
        self.registry = Registry([])
        self._logs = Logs(agent, brief, self._find)
        self._starting: Callable[[], object] = lambda: None  # called when an agent may have started
        self._own: dict[int, str] = {}  # process → its own config directory

    def observing(self) -> Observing:
        """Return the observers of each kind of need."""
        observe = {
            PROCESSES.kind: self._observe_processes,
            FOLDER: self._observe_folder,
            UNNAMED: self._observe_unnamed,
            self._logs.kind: self._logs.observe,
        }
        return Observing(observe, self._wanted, (PROCESSES,), self._logs.forget)

    def _wanted(self, s: Session, now: float) -> Iterator[Want]:
        yield PROCESSES
        if s.config_dir:
            yield Want(FOLDER, (s.config_dir,))
        if is_nameless(s.session_id) and s.cwd:
            yield Want(UNNAMED, (s.session_id, s.cwd))
        yield from self._logs.wanted(s, now)

    def _find(self, s: Session) -> tuple[str, partial[str]]:
        config = self._config_of(s)
        return f"{config}/projects", partial(path_of, config, s.session_id, s.cwd)

    def _config_of(self, s: Session) -> str:
        """Return the config directory of a session, as far as it is known."""
        if s.config_dir:
            return s.config_dir
        found = (self.registry.directory_of(pid) for pid in s.processes)
        named = (self._own.get(pid) for pid in s.processes)
        return next(filter(None, (*found, *named)), self._default)

    async def _observe_folder(self, need: Need) -> None:
        """Report news in the session files of a config directory."""
        [config_dir] = need.want.of
        topic = "config directories"
        while is_path(config_dir) and len(self.registry.paths()) >= MOST_FOLDERS:
            need.say(topic, f"more than {MOST_FOLDERS}: {config_dir} is ignored")
            await need.news(RESCAN)
        if is_path(config_dir):
            need.say(topic, "")
            await ConfigFolder(need, self.registry, self._environ, self._starting).observe()

    async def _observe_unnamed(self, need: Need) -> None:
        """Notice when a session without an id writes: it then has an id."""
        cwd = need.want.of[1]
        while is_path(cwd):
            folder = transcripts_folder(self._config_of(need.session), cwd)
            need.watch(folder)
            await need.news(PATHS, RESCAN)
            paths, need.paths = need.paths, set()
            if folder in paths:
                self._starting()

    # ------------------------------------------------------------ processes

    async def _observe_processes(self, need: Need) -> None:
        """Search for agents that nothing has reported, and for viewers of background sessions."""
        loop, discovery = asyncio.get_running_loop(), Discovery(need.means.environ)
        shown = Backgrounds(need)
        need.at_end, need.is_extra = shown.close, True
        self._starting = partial(need.stir, STARTS)
        due: dict[float, float] = {}  # delay after a possible start of an agent → time
        self._want_folders(need)
        news = {RESCAN}
        while True:
            for s in need.left:
                # The process may be about to begin another session.
                for pid in s.processes if s.config_dir else ():
                    if processes.is_alive(pid):
                        self._own[pid] = s.config_dir
            if STARTS in news:  # look soon, and again later: a prompt may come first
                due |= {after: loop.time() + after for after in SOON if after not in due}
            if need.left or STARTS in news:
                need.left.clear()
                self._want_folders(need)
            late = [after for after, at in due.items() if at <= loop.time()]
            if late or RESCAN in news:
                for after in late:
                    del due[after]
                    discovery.hasten()
                await self._search(need, discovery, shown)
            wait = min(due.values(), default=math.inf) - loop.time()
            within = max(wait, 0.0) if due else None
            news = await need.news(STARTS, RESCAN, LEFT, within=within)

    def _want_folders(self, need: Need) -> None:
        folders = {self._default, *self._own.values()}
        need.want_more(Want(FOLDER, (folder,)) for folder in sorted(folders))

    async def _search(self, need: Need, discovery: Discovery, shown: Backgrounds) -> None:
        named = [s for s in need.sessions.values() if not is_nameless(s.session_id)]
        known = {*self.registry.records, *(pid for s in named for pid in s.processes)}
        search = discovery.begin(need.means.clock(), known, [s.session_id for s in named])
        if search is None:
            return
        try:
            found_now = discovery.end(await reach(search, search.where, SEARCHING))
        except Hangs:
            return  # the next search passes the place where this one hangs
        self._own = {pid: x for pid, x in self._own.items() if processes.is_alive(pid)}
        shown.take([x for x in found_now if isinstance(x, Attached)])
        for found in (x for x in found_now if isinstance(x, FoundProcess)):
            if found.config:
                self._own[found.pid] = found.config
            is_known = not found.session_id and any(
                found.pid in s.processes for s in need.sessions.values()
            )
            if is_known or found.pid in self.registry.records:
                continue  # the session's own file says more
            if found.has_file and not self.registry.is_read(found.pid):
                need.stir(STARTS)
            elif not found.is_new:
                need.report(found.evidence(need.means.clock(), need.means.generation))
            else:
                need.stir(STARTS)  # unless it reports itself
                if found.tmux and found.pane:
                    key = f"screen {found.pane} of {found.tmux} at its start"
                    need.rounds.run(key, partial(_look_at_new, need, found))
        self._want_folders(need)


async def _look_at_new(need: Need, found: FoundProcess) -> None:
    """Report an agent that asks a question at its start, such as whether to trust a folder."""
    rows = await reach(partial(rows_of, found.tmux, found.pane, DEPTH), found.tmux, SEARCHING)
    seen = read_screen(rows)
    if seen is not None and seen.says == "waiting":
        need.report(found.evidence(need.means.clock(), need.means.generation))
        sid = found.session_id or nameless(found.pid, found.started)
        need.report(seen.evidence(need.means.clock(), sid, found.pid))


class ConfigFolder:
    """Reports news in the session files of a config directory."""

    def __init__(
        self,
        need: Need,
        registry: Registry,
        environ: Mapping[str, str],
        starting: Callable[[], object],
    ) -> None:
        [self._config_dir] = need.want.of
        self._directory = Path(self._config_dir, "sessions")
        self._need, self._registry, self._environ = need, registry, environ
        self._starting = starting
        self._odd: dict[int, bool] = {}  # pid of a file with an error → whether it was read again
        self._asked = -PAUSE  # when the CLI last listed its sessions for us

    async def observe(self) -> None:
        """Read the files that may have changed."""
        need, directory, starts = self._need, str(self._directory), start_files(self._config_dir)
        self._registry.renew(need.means.generation)
        self._registry.add(self._config_dir)
        need.at_end = partial(self._registry.remove, self._config_dir)
        need.watch(directory, *starts)
        need.wants_deaths = True
        news = {RESCAN}
        while True:
            paths, need.paths = need.paths, set()
            died, need.died = need.died, {}
            if not paths.isdisjoint(starts):
                self._starting()
            there = {self._registry.at(path) for path in paths if path.startswith(directory)}
            pids = {pid for _, pid in there if pid is not None} | died.keys()
            if RESCAN in news or (self._directory, None) in there:
                need.rounds.run(directory, self._list)
            for pid in pids:
                self._read(pid)
            news = await need.news(PATHS, DIED, RESCAN)

    async def _list(self) -> None:
        listing = await reach(partial(list_files, self._directory), str(self._directory))
        for pid in self._registry.listed(self._directory, listing):
            self._read(pid)
        self._note()

    def _read(self, pid: int) -> None:
        """Read the file of a process."""
        self._need.rounds.run(f"{self._directory}/{pid}.json", partial(self._read_now, pid))

    async def _read_now(self, pid: int) -> None:
        path = f"{self._directory}/{pid}.json"
        self._take(pid, await reach(partial(file_state, self._directory, pid), path))

    def _take(self, pid: int, state: FileState) -> None:
        if state.why != ODD:
            self._odd.pop(pid, None)
        else:
            path = f"{self._directory}/{pid}.json"
            if pid not in self._odd:
                self._odd[pid] = False
                self._need.rounds.run(f"odd {path}", partial(self._read_again, pid))
            if (key := f"claude agents in {self._config_dir}") not in self._need.rounds:
                self._need.rounds.run(key, partial(self._ask, pid))
            known = self._registry.notes.get(path, ODD)
            state = state._replace(why=known if self._odd[pid] else "")
        for evidence in self._registry.take(self._need.means.clock(), self._directory, pid, state):
            self._need.report(evidence)
        self._note()

    async def _read_again(self, pid: int) -> None:
        """Read a file again that could not be parsed, as it may have been half-written."""
        await asyncio.sleep(WRITTEN)
        if pid in self._odd:
            self._odd[pid] = True
            self._read(pid)

    async def _ask(self, pid: int) -> None:
        """Ask the CLI, at intervals, about files that cannot be parsed."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(WRITTEN, self._asked + PAUSE - loop.time()))
        if pid not in self._odd:
            return
        self._asked = loop.time()
        look = partial(listed_by, pid, self._config_dir, self._environ)
        rows = await reach(look, f"{PROC}/{pid}/exe", PATIENCE + 1.0)
        now = self._need.means.clock()
        for each, row in rows.items():
            if each in self._odd:
                state = of_listing(row, now)
                for evidence in self._registry.take(now, self._directory, each, state):
                    self._need.report(evidence)
        self._note()

    def _note(self) -> None:
        """Note the invalid files of this directory in health."""
        here = str(self._directory)
        notes = self._registry.notes.items()
        self._need.say_only({p: why for p, why in notes if p == here or p.startswith(f"{here}/")})


class Backgrounds:
    """Reports the terminals that show background sessions, and the ends of that."""

    def __init__(self, need: Need) -> None:
        self._need = need
        self._attached: dict[str, Attached] = {}  # session → the process that shows it
        self._deaths: Deaths | None = None  # of these processes

    def close(self) -> None:
        """Stop observing."""
        if self._deaths is not None:
            self._deaths.close()

    def take(self, attached: list[Attached]) -> None:
        """Take the processes that show a background session."""
        jobs = [s for s in self._need.sessions.values() if s.job and s.processes]
        by_session = {s.session_id: a for a in attached if (s := _named(jobs, a.named)) is not None}
        for s in jobs:
            known, now = self._attached.get(s.session_id), by_session.get(s.session_id)
            if now is not None and (now != known or now.place.tty != s.tty):
                self._attached[s.session_id] = now
                if self._deaths is None:
                    self._deaths = Deaths(self._detached)
                self._deaths.watch(now.pid, now.started)
                self._place(s, now.place, f"in {now.pid} {now.started}")
            elif now is None and (s.tty or s.pane):
                self._attached.pop(s.session_id, None)
                self._place(s, Place(), f"left {s.tty} {s.hook_at}")

    def _detached(self, pid: int, started: str) -> None:
        for sid in [sid for sid, known in self._attached.items() if known.pid == pid]:
            del self._attached[sid]
            if (s := self._need.sessions.get(sid)) is not None:
                self._place(s, Place(), f"left {pid} {started}")

    def _place(self, s: Session, place: Place, how: str) -> None:
        pid = next(iter(s.processes))
        shown = TraceLine(session_id=s.session_id, pid=pid, **place._asdict())
        key = f"client {s.session_id} {how} {self._need.means.generation}"
        self._need.report(Evidence(shown.line(self._need.means.clock(), "client"), key))


def _named(jobs: list[Session], named: str) -> Session | None:
    """Return the background session that the CLI finds by an id or a part of a name."""
    by_id = [s for s in jobs if s.session_id.startswith(named)]
    by_name = [s for s in jobs if named.lower() in (s.name or s.title).lower()]
    found = by_id or by_name
    return found[0] if len(found) == 1 else None
