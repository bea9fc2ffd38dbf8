"""Observe Claude Code: its session files and transcripts, and its processes that have neither."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from ....core.finding import Finding
from ....core.session import Session, is_nameless, nameless
from ....system import processes
from ....system.deaths import Deaths
from ....system.files import is_path
from ....system.tmux import rows_of
from ...cli import Means
from ...dialect import DEPTH
from ...following import LogWitness
from ..dialect.screens import read
from ..dialect.spoken import ClaudeDialect
from .discovery import GRACE, Attached, Discovery, Found
from .folders import STARTS, Folders
from .registry import config_of
from .transcript import folder_of, path_of

SOON: Final = (0.5, 1.5, GRACE + 1.0)  # seconds after an agent may have started
PATIENCE: Final = 5.0  # seconds for a search of all processes, which takes milliseconds


class ClaudeWitness(LogWitness):
    """See `Witness`."""

    def __init__(self, means: Means) -> None:
        super().__init__(means, ClaudeDialect())
        self._watched, self._report, self._clock = means.watched, means.report, means.clock
        self.folders = Folders(means)
        self._discovery = Discovery(means.environ)
        self._slow = means.reach.lane("slow", PATIENCE)
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
            self._expect_in(folder_of(config, s.cwd), sid)

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

    def _found(self, agents: list[Found | Attached]) -> None:
        for pid in [pid for pid in self._own if not processes.is_alive(pid)]:
            self._own.remove(pid)
            self.folders.leave(f"process {pid}")
        found_now = self._discovery.end(agents)
        self._show([x for x in found_now if isinstance(x, Attached)])
        for found in (x for x in found_now if isinstance(x, Found)):
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

    def _seen_new(self, found: Found, rows: list[str]) -> None:
        """Report an agent that asks something at its start, such as whether to trust a folder."""
        seen = read(rows)
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
        self._report(Finding({"t": self._clock(), "client": where}, key))


def _named(jobs: list[Session], named: str) -> Session | None:
    """Return the background session that the CLI finds by that id or part of a name."""
    by_id = [s for s in jobs if s.session_id.startswith(named)]
    by_name = [s for s in jobs if named.lower() in (s.name or s.title).lower()]
    found = by_id or by_name
    return found[0] if len(found) == 1 else None
