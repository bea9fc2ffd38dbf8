"""Observe Claude Code: its session files and transcripts, and its processes that have neither."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...core.evidence import Evidence
from ...core.session import Session, is_nameless, nameless
from ...system import processes
from ...system.deaths import Deaths
from ...system.files import is_path
from ...system.processes import PROC
from ...system.tmux import rows_of
from ..agent import DEPTH, Agent, Means
from ..tailing import LogWitness
from .discovery import GRACE, PATIENCE, Attached, Discovery, FoundProcess, listed_by
from .screen import read_screen
from .session_files import (
    ODD,
    FileState,
    Listing,
    Registry,
    config_of,
    file_state,
    list_files,
    of_listing,
    path_of,
    transcripts_folder,
)

# Follow the CLI's config directories that are in use, and the session files in them.


WRITTEN: Final = 1.0  # seconds; a file that is written in place is invalid for a moment
PAUSE: Final = 5.0  # seconds between two runs of the CLI
MOST_FOLDERS: Final = 100  # config directories; users have one or two
WATCHES: Final = "sessions"
STARTS: Final = "starts"


def start_files(config_dir: str) -> tuple[str, ...]:
    """Return what a CLI writes at its start: in its directory, or next to the default.

    The last is a folder, for a CLI that shows a background session.
    """
    return (
        *(f"{config_dir}/.claude.json", f"{config_dir}.json"),
        f"{config_dir}/daemon/attach-journal",
    )


class ConfigFolders:
    """Calls `report` with what is new in the session files."""

    def __init__(self, means: Means) -> None:
        self.registry = Registry([], means.generation)
        self._environ = dict(means.environ)
        self._slow = means.reach.lane("cli", PATIENCE + 1.0)
        self._loop = asyncio.get_running_loop()
        self._odd: dict[str, bool] = {}  # file that cannot be parsed → whether it was read again
        self._asked: dict[Path, float] = {}  # directory → when the CLI was run
        self._asking: dict[Path, asyncio.TimerHandle] = {}
        self._reach, self._watched = means.reach, means.watched
        self._report, self._clock = means.report, means.clock
        self._needed: dict[str, set[str]] = {}  # config directory → who needs it
        self._of: dict[str, str] = {}  # who needs it → config directory
        self._refused = ""

    @property
    def notes(self) -> dict[str, str]:
        """Return what is wrong, for health."""
        more = {"config directories": self._refused} if self._refused else {}
        return {**self.registry.notes, **more}

    def of(self, s: Session) -> str:
        """Return the config directory of a session, if it is known."""
        if s.config_dir:
            return s.config_dir
        found = (self.registry.directory_of(pid) for pid in s.processes)
        named = (self._of.get(f"process {pid}") for pid in s.processes)
        return next(filter(None, (*found, *named)), self._of.get("", ""))

    def is_read(self, pid: int) -> bool:
        """Return whether the session file of a process was read, valid or not."""
        notes, directories = self.registry.notes, self.registry.paths()
        noted = any(f"{directory}/{pid}.json" in notes for directory in directories)
        return noted or pid in self.registry.records

    def need(self, config_dir: str, by: str) -> None:
        """Follow a directory for `by`, a session or a process."""
        if self._of.get(by) == config_dir or not is_path(config_dir):
            return
        self.leave(by)
        if config_dir not in self._needed and len(self._needed) >= MOST_FOLDERS:
            self._refused = f"more than {MOST_FOLDERS}: {config_dir} is ignored"
            return
        self._of[by] = config_dir
        self._needed.setdefault(config_dir, set()).add(by)
        if self.registry.add(config_dir):
            directory = self.registry.paths()[-1]
            self._watched.need(str(directory), WATCHES, config_dir)
            for path in start_files(config_dir):
                self._watched.need(path, STARTS, config_dir)
            self._list(directory)

    def leave(self, by: str) -> None:
        """Drop the directory that `by` needed."""
        config_dir = self._of.pop(by, "")
        needed = self._needed.get(config_dir, set())
        needed.discard(by)
        if config_dir and not needed:
            del self._needed[config_dir]
            self.registry.remove(config_dir)
            self._asked.pop(Path(config_dir) / "sessions", None)
            self._watched.leave(str(Path(config_dir) / "sessions"), WATCHES, config_dir)
            for path in start_files(config_dir):
                self._watched.leave(path, STARTS, config_dir)
            self._refused = ""

    def changed(self, paths: Collection[str]) -> None:
        """Read what changed among these paths."""
        for path in paths:
            if path.endswith((".json", "/sessions")):
                directory, pid = self.registry.at(path)
                if directory is not None and pid is None:
                    self._list(directory)
                elif directory is not None and pid is not None:
                    self.read(directory, pid)

    def rescan(self) -> None:
        """Read everything again."""
        for directory in self.registry.paths():
            self._list(directory)

    def close(self) -> None:
        """Cancel pending runs of the CLI."""
        for timer in self._asking.values():
            timer.cancel()

    def died(self, pid: int) -> None:
        """Read the session files of a process that has ended."""
        for directory in self.registry.paths():
            self.read(directory, pid)

    def read(self, directory: Path, pid: int) -> None:
        """Read the file of one process."""
        then = partial(self._took, directory, pid)
        self._reach.do(f"{directory}/{pid}.json", partial(file_state, directory, pid), then)

    def _list(self, directory: Path) -> None:
        then = partial(self._listed, directory)
        self._reach.do(str(directory), partial(list_files, directory), then)

    def _listed(self, directory: Path, listing: Listing) -> None:
        for pid in self.registry.listed(directory, listing):
            self.read(directory, pid)

    def _took(self, directory: Path, pid: int, state: FileState) -> None:
        path = f"{directory}/{pid}.json"
        if state.why != ODD:
            self._odd.pop(path, None)
        else:
            self._ask_cli(directory, pid)
            if path not in self._odd:
                self._odd[path] = False
                self._loop.call_later(WRITTEN, self._read_again, directory, pid)
            known = self.registry.notes.get(path, ODD)
            state = state._replace(why=known if self._odd[path] else "")
        for finding in self.registry.take(self._clock(), directory, pid, state):
            self._report(finding)

    def _read_again(self, directory: Path, pid: int) -> None:
        """Read a file that could not be parsed: it may have been half-written."""
        path = f"{directory}/{pid}.json"
        if path in self._odd:
            self._odd[path] = True
            self.read(directory, pid)

    def _ask_cli(self, directory: Path, pid: int) -> None:
        """Ask the CLI, at intervals, about files that cannot be parsed."""
        if directory in self._asking:
            return
        due = self._asked.get(directory, -PAUSE) + PAUSE
        early = max(WRITTEN, due - self._loop.time())
        self._asking[directory] = self._loop.call_later(early, self._ask_now, directory, pid)

    def _ask_now(self, directory: Path, pid: int) -> None:
        del self._asking[directory]
        if not self._is_odd(directory, pid):
            return
        self._asked[directory] = self._loop.time()
        config_dir = str(directory.parent)
        work, then = (
            partial(listed_by, pid, config_dir, self._environ),
            partial(self._answered, directory),
        )
        self._slow.do(f"{PROC}/{pid}/exe", work, then, key=f"claude agents in {config_dir}")

    def _is_odd(self, directory: Path, pid: int) -> bool:
        return f"{directory}/{pid}.json" in self._odd

    def _answered(self, directory: Path, rows: dict[int, dict[str, Any]]) -> None:
        now = self._clock()
        for pid, row in rows.items():
            if self._is_odd(directory, pid):
                for finding in self.registry.take(now, directory, pid, of_listing(row, now)):
                    self._report(finding)


# Observe Claude Code: its session files and transcripts, and its processes that have neither.


SOON: Final = (0.5, 1.5, GRACE + 1.0)  # seconds after an agent may have started
SEARCHING: Final = 5.0  # seconds for a search of all processes, which takes milliseconds


class ClaudeWitness(LogWitness):
    """See `Witness`."""

    def __init__(self, means: Means, agent: Agent) -> None:
        super().__init__(means, agent)
        self._watched, self._report, self._clock = means.watched, means.report, means.clock
        self.folders = ConfigFolders(means)
        self._discovery = Discovery(means.environ)
        self._slow = means.reach.lane("slow", SEARCHING)
        self._generation = means.generation
        self._sessions: dict[str, Session] = {}
        self._own: set[int] = set()  # processes with their own config directory
        self._loop = asyncio.get_running_loop()
        self._timers: dict[float, asyncio.TimerHandle] = {}  # of searches for agents
        self._unnamed: dict[str, str] = {}  # session without an id → where it will write
        self._attached: dict[str, Attached] = {}  # background session → what shows it
        self._deaths: Deaths | None = None  # of these
        self.folders.need(str(config_of(means.environ)), "")

    @property
    def notes(self) -> dict[str, str]:
        return {**self.folders.notes, **super().notes}

    def attend(self, s: Session) -> None:
        sid = s.session_id
        self._sessions[sid] = s
        if s.config_dir:
            self.folders.need(s.config_dir, sid)
        config = self.folders.of(s)
        find = partial(path_of, config, sid, s.cwd)
        self.following.attend(s, f"{config}/projects" if config else "", find)
        if is_nameless(sid) and is_path(s.cwd) and config:
            self._expect_in(transcripts_folder(config, s.cwd), sid)

    def leave(self, sid: str) -> None:
        s = self._sessions.pop(sid, None)
        for pid in s.processes if s is not None else ():
            if s is not None and s.config_dir and processes.is_alive(pid):
                self._follow(pid, s.config_dir)  # it may be about to begin another session
        self.folders.leave(sid)
        super().leave(sid)
        self._expect_in("", sid)

    def died(self, pid: int) -> None:
        self.folders.died(pid)

    def changed(self, paths: Collection[str]) -> None:
        if any(self._watched.who(path, STARTS) for path in paths):
            self._expect_agents()
        self.folders.changed(paths)
        super().changed(paths)

    def rescan(self) -> None:
        self.folders.rescan()
        super().rescan()
        self._search_agents()

    def renew(self, generation: str) -> None:
        self._generation = generation
        self.folders.registry.renew(generation)

    def close(self) -> None:
        self.folders.close()
        if self._deaths is not None:
            self._deaths.close()
        for timer in self._timers.values():
            timer.cancel()

    def _expect_in(self, folder: str, sid: str) -> None:
        """Watch the folder where a session without an id will write; "" to stop."""
        before = self._unnamed.pop(sid, "")
        if folder:
            self._unnamed[sid] = folder
            self._watched.need(folder, STARTS, sid)
        if before and before != folder:
            self._watched.leave(before, STARTS, sid)

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

    def _follow(self, pid: int, config_dir: str) -> None:
        """Follow the config directory of a process until it has ended."""
        self._own.add(pid)
        self.folders.need(config_dir, f"process {pid}")

    def _found(self, agents: list[FoundProcess | Attached]) -> None:
        for pid in [pid for pid in self._own if not processes.is_alive(pid)]:
            self._own.remove(pid)
            self.folders.leave(f"process {pid}")
        found_now = self._discovery.end(agents)
        self._show([x for x in found_now if isinstance(x, Attached)])
        for found in (x for x in found_now if isinstance(x, FoundProcess)):
            if found.config:
                self._follow(found.pid, found.config)
            is_known = not found.session_id and any(
                found.pid in s.processes for s in self._sessions.values()
            )
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
                work = partial(rows_of, found.tmux, found.pane, DEPTH)
                then = partial(self._seen_new, found)
                key = f"screen {found.pane} of {found.tmux} at its start"
                self._slow.do(found.tmux, work, then, key=key)

    def _seen_new(self, found: FoundProcess, rows: list[str]) -> None:
        """Report an agent that asks something at its start, such as whether to trust a folder."""
        seen = read_screen(rows)
        if seen is not None and seen.says == "waiting":
            self._report(found.finding(self._clock(), self._generation))
            sid = found.session_id or nameless(found.pid, found.started)
            self._report(seen.finding(self._clock(), sid, found.pid))

    def _show(self, attached: list[Attached]) -> None:
        """Report in which terminals background sessions are shown, or that they no longer are."""
        jobs = [s for s in self._sessions.values() if s.job and s.processes]
        by_session = {s.session_id: a for a in attached if (s := _named(jobs, a.named)) is not None}
        for s in jobs:
            known, now = self._attached.get(s.session_id), by_session.get(s.session_id)
            if now is not None and (now != known or now.place.get("tty", "") != s.tty):
                self._attached[s.session_id] = now
                if self._deaths is None:
                    self._deaths = Deaths(self._detached)
                self._deaths.watch(now.pid, now.started)
                self._place(s, now.place, f"in {now.pid} {now.started}")
            elif now is None and (s.tty or s.pane):
                self._attached.pop(s.session_id, None)
                self._place(s, {}, f"left {s.tty} {s.hook_at}")

    def _detached(self, pid: int, started: str) -> None:
        for sid in [sid for sid, known in self._attached.items() if known.pid == pid]:
            del self._attached[sid]
            if (s := self._sessions.get(sid)) is not None:
                self._place(s, {}, f"left {pid} {started}")

    def _place(self, s: Session, place: Mapping[str, str], how: str) -> None:
        where = {"session_id": s.session_id, "pid": next(iter(s.processes)), **place}
        key = f"client {s.session_id} {how} {self._generation}"
        self._report(Evidence({"t": self._clock(), "client": where}, key))


def _named(jobs: list[Session], named: str) -> Session | None:
    """Return the background session that the CLI finds by that id or part of a name."""
    by_id = [s for s in jobs if s.session_id.startswith(named)]
    by_name = [s for s in jobs if named.lower() in (s.name or s.title).lower()]
    found = by_id or by_name
    return found[0] if len(found) == 1 else None
