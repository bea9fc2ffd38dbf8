"""Follow the CLI's config directories that are in use, and the session files in them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any, Final

from ....core.session import Session
from ....system.files import is_path
from ....system.processes import PROC
from ...cli import Means
from .agents_json import PATIENCE, listed_by
from .registry import ODD, FileState, Listing, Registry, list_files, of_listing, state_of

WRITTEN: Final = 1.0  # seconds; a file that is written in place is invalid for a moment
PAUSE: Final = 5.0  # seconds between two runs of the CLI
MOST: Final = 100  # config directories; users have one or two
WATCHES: Final = "sessions"
STARTS: Final = "starts"


def settings_of(config_dir: str) -> tuple[str, ...]:
    """Return what a CLI writes at its start: in its directory, or next to the default.

    The last is a folder, for a CLI that shows a background session.
    """
    return (
        *(f"{config_dir}/.claude.json", f"{config_dir}.json"),
        f"{config_dir}/daemon/attach-journal",
    )


class Folders:
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
        if config_dir not in self._needed and len(self._needed) >= MOST:
            self._refused = f"more than {MOST}: {config_dir} is ignored"
            return
        self._of[by] = config_dir
        self._needed.setdefault(config_dir, set()).add(by)
        if self.registry.add(config_dir):
            directory = self.registry.paths()[-1]
            self._watched.need(str(directory), WATCHES, config_dir)
            for path in settings_of(config_dir):
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
            for path in settings_of(config_dir):
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
        self._reach.do(f"{directory}/{pid}.json", partial(state_of, directory, pid), then)

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
