"""Notice when hooks disappear from a file in which they were installed, or are outdated there.

Other programs write these files too, and some write back an old copy.  Hooks that were uninstalled
with bellboard are not missed: nothing records them as installed any longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ...core import words
from ...core.events import AGENT
from ...system.notes import Notes
from ...system.reach import Rounds, reach
from ...system.watch import Watch
from . import hook_record
from .settings_file import WHOLE

SETTLE: Final = 1.0  # seconds after a change: many programs write twice, or empty the file first
RETRY: Final = 5.0  # seconds after a failure
SCRIPT: Final = "script"
RECORD: Final = "record"
PATIENCE: Final = 5.0  # seconds, including the wait for the lock


class Guard:
    """Checks the files outside the event loop, and calls `changed` in it on any change.

    With `reports`, it claims the right to report missing hooks, which one editor per machine has.
    """

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        changed: Callable[[], None],
        reports: bool,
    ) -> None:
        self.vanished = ""  # missing hooks that this guard is to report
        self.notes = Notes()
        self._home, self._environ = home, dict(environ)
        self._changed, self._reports = changed, reports
        self._record = str(hook_record.record(home))
        self._rounds = Rounds()
        self._hooked: hook_record.HookedFiles = {}
        self._missing: dict[str, str] = {}  # settings file → its problem
        self._checked: dict[str, Checked] = {}  # settings file → its last known state
        self._watched: set[str] = set()
        self._notes = {SCRIPT: ""}  # task → why it failed, or has to be done
        self._said: tuple[dict[str, str], str] = ({}, "")  # at the last call of `changed`
        self._timer: asyncio.TimerHandle | None = None

    def open(self, watch: Watch) -> None:
        """Begin to guard the files."""
        self._watch, self._loop = watch, asyncio.get_running_loop()
        self._check_in(SETTLE)

    def _all_notes(self) -> dict[str, str]:
        notes = [*self._missing.values()]
        if notes:
            commands = dict.fromkeys(f"bellboard hooks install{self._of(p)}" for p in self._missing)
            what = "` and `".join(commands)
            notes.append(f"another program rewrote or deleted it: run `{what}`")
        for path, checked in self._checked.items():
            if checked.outdated:
                where = words.plain(words.tilde(path, self._environ.get("HOME", "")))
                notes.append(f"{where} is from another version: run `bellboard hooks install`")
        notes += filter(None, self._notes.values())
        return {"hooks": "; ".join(notes)} if notes else {}

    @property
    def repair(self) -> str:
        """Return the arguments of `install` for the file in `vanished`."""
        return next((self._of(p) for p, why in self._missing.items() if why == self.vanished), "")

    def changed(self, paths: Collection[str]) -> None:
        """Check again if one of the watched files changed."""
        if not self._watched.isdisjoint(paths):
            self._check_in(SETTLE)

    def check(self) -> None:
        """Check the files that have changed since the last time; cheap if none has."""
        if self._timer is None:  # otherwise a check is due soon
            self._rounds.run(self._record, self._check_all)

    def close(self) -> None:
        """Stop checking."""
        self._rounds.close()
        if self._timer is not None:
            self._timer.cancel()

    def _of(self, path: str) -> str:
        return self._checked[path].named if path in self._checked else ""

    def _check_in(self, seconds: float) -> None:
        def due() -> None:
            self._timer = None
            self.check()

        self._timer = self._timer or self._loop.call_later(seconds, due)

    async def _check_all(self) -> None:
        """Keep the script, and check every file in the record."""
        if SCRIPT in self._notes:
            with self._noting(SCRIPT, f"cannot write the hook script to {self._home}"):
                work = partial(hook_record.keep_script, self._home)
                await reach(work, str(hook_record.script(self._home)), PATIENCE)
        hooked_files = self._hooked  # files in the last record stay guarded
        with self._noting(RECORD, f"cannot read {self._record}"):
            hooked_files = await reach(
                partial(hook_record.stored, self._home), self._record, PATIENCE
            )
        if RECORD in self._notes:
            return
        self._hooked = hooked_files
        for known in (self._missing, self._checked):
            for path in known.keys() - hooked_files.keys():
                del known[path]
                self._notes.pop(path, None)
        self._attend()
        self._tell()
        for path in hooked_files:
            self._rounds.run(path, partial(self._check_one, path))

    async def _check_one(self, path: str) -> None:
        """Check a file, and report its hooks if they are missing and nobody has done so."""
        if (hooked := self._hooked.get(path)) is None:
            return
        before = self._checked.get(path)
        work = partial(check_file, self._home, self._environ, path, hooked, before)
        checked = await reach(work, path, PATIENCE)
        if path not in self._hooked:
            return
        self._checked[path] = checked
        self._attend()
        if checked.gone is None:  # half written or broken: the hooks may be there
            self._tell()
            return
        if checked.gone:
            every = len(checked.gone) == len(hooked.events)
            what = "hooks" if every else f"{len(checked.gone)} hooks"
            where = words.tilde(path, self._environ.get("HOME", ""))
            self._missing[path] = words.plain(f"{what} gone from {where}")
        else:
            self._missing.pop(path, None)
        self._tell()
        gone, is_first = bool(checked.gone), False
        with self._noting(path, f"cannot write {self._record}"):
            if hooked.reported != gone and (self._reports or hooked.reported):
                noted = partial(note_reported, self._home, path, gone)
                is_first = await reach(noted, self._record, PATIENCE)
        if is_first and path in self._hooked:
            self._hooked[path].reported = gone
            if gone and path in self._missing:
                self.vanished = self._missing[path]
        self._tell()

    def _attend(self) -> None:
        paths = {self._record, *self._hooked}
        paths |= {checked.real for checked in self._checked.values()}
        for path in self._watched - paths:
            self._watch.remove(path)
        for path in paths - self._watched:
            self._watch.add(path)
        self._watched = paths

    @contextlib.contextmanager
    def _noting(self, task: str, what: str) -> Iterator[None]:
        """Note why a task fails, and try again soon."""
        try:
            yield
        except OSError as e:
            where = f"{e.filename}: " if e.filename and str(e.filename) not in what else ""
            self._notes[task] = f"{what}: {where}{e.strerror or e}"
            self._check_in(RETRY)
        else:
            self._notes.pop(task, None)
        self._tell()

    def _tell(self) -> None:
        """Note problems in health, and call `changed` if they are new."""
        if not self._missing:
            self.vanished = ""
        before, said = self._said, (self._all_notes(), self.vanished)
        if before != said:
            self._said = said
            self.notes.replace(said[0])
            self._changed()


class Checked(NamedTuple):
    """The last known state of a settings file."""

    stamp: tuple[int, int, int] | None
    events: list[str]  # events that should be in the file
    real: str  # the path with links resolved
    gone: list[str] | None  # events that are missing; None if unknown
    outdated: bool = False  # whether it is a file of our own, written by another version
    named: str = ""  # arguments with which `install` changes this file, if it needs any


def check_file(
    home: Path,
    environ: Mapping[str, str],
    path: str,
    hooked: hook_record.HookedFile,
    before: Checked | None,
) -> Checked:
    """Check whether our hooks are in a settings file, unless it is unchanged."""
    from ..registry import agent_of

    stamp, real = None, path
    with contextlib.suppress(OSError):
        real = os.path.realpath(path)
        status = os.stat(path)  # noqa: PTH116 - a string, from a record
        stamp = status.st_ino, status.st_mtime_ns, status.st_size
    if before is not None and before[:3] == (stamp, hooked.events, real):
        return before
    cli = agent_of(hooked.agent)
    if cli.key != hooked.agent:  # a newer version's hooks of an agent that is unknown here
        return Checked(stamp, hooked.events, real, None, False)
    installer = cli.installer(home, environ)
    state = installer.check(Path(path))
    gone = [event for event in hooked.events if event not in state.events]
    is_outdated = WHOLE in state.outdated
    is_default = Path(path) == installer.user_file()
    agent = "" if cli.key == AGENT else f" --agent {cli.key}"
    named = "" if is_default else f"{agent} --settings {shlex.quote(path)}"
    known = None if state.problem else gone
    return Checked(stamp, hooked.events, real, known, is_outdated, named)


def note_reported(home: Path, path: str, reported: bool) -> bool:
    """Record whether missing hooks were reported; return False if that was recorded already."""
    with hook_record.changing(home) as hooked_files:
        if path not in hooked_files or hooked_files[path].reported == reported:
            return False
        hooked_files[path].reported = reported
        return True
