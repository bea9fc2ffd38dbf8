"""Notice when the hooks disappear from a file that they were installed in, or are outdated there.

Other programs write these files too, and some write back what they read long ago.  Hooks that were
uninstalled with bellboard are not missed: nothing records them as installed any longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ...core import words
from ...core.events import AGENT
from ...system.reach import Doer
from ...system.watch import Watch
from . import hook_record
from .settings_file import WHOLE

SETTLE: Final = 1.0  # seconds after a change: many programs write twice, or empty the file first
RETRY: Final = 5.0  # seconds after a failure
SCRIPT: Final = "script"
RECORD: Final = "record"
PATIENCE: Final = 5.0  # seconds, including the wait for the lock


class Guard:
    """Checks the files in worker threads, and calls `changed` in the event loop on any change.

    With `reports`, it claims the right to report missing hooks, which one editor per machine has.
    """

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        watch: Watch,
        reach: Doer,
        changed: Callable[[], None],
        reports: bool,
    ) -> None:
        self.vanished = ""  # missing hooks that this guard is to report
        self._home, self._environ, self._watch = home, dict(environ), watch
        self._reach = reach.lane("hooks", PATIENCE)
        self._changed, self._reports = changed, reports
        self._loop = asyncio.get_running_loop()
        self._hooked: hook_record.HookedFiles = {}
        self._missing: dict[str, str] = {}  # settings file → what is wrong with it
        self._checked: dict[str, Checked] = {}  # settings file → what was seen of it
        self._watched: set[str] = set()
        self._notes: dict[str, str] = {}  # task → why it failed
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(SETTLE, self._begin)

    @property
    def notes(self) -> dict[str, str]:
        """Return what is wrong, for health."""
        notes = [*self._missing.values()]
        if notes:
            commands = dict.fromkeys(f"bellboard hooks install{self._of(p)}" for p in self._missing)
            what = "` and `".join(commands)
            notes.append(f"another program rewrote or deleted it: run `{what}`")
        for path, checked in self._checked.items():
            if checked.outdated:
                where = words.plain(words.tilde(path, self._environ.get("HOME", "")))
                notes.append(f"{where} is from another version: run `bellboard hooks install`")
        notes += self._notes.values()
        return {"hooks": "; ".join(notes)} if notes else {}

    @property
    def repair(self) -> str:
        """Return the arguments of `install` for the file that `vanished` is about."""
        return next((self._of(p) for p, why in self._missing.items() if why == self.vanished), "")

    def _of(self, path: str) -> str:
        return self._checked[path].named if path in self._checked else ""

    def changed(self, paths: Collection[str]) -> None:
        """Check again if one of the watched files changed."""
        if self._timer is None and not self._watched.isdisjoint(paths):
            self._timer = self._loop.call_later(SETTLE, self._settled)

    def check(self) -> None:
        """Check what has changed since the last time; cheap if nothing has."""
        if self._timer is None:  # otherwise a check is due soon
            if SCRIPT in self._notes:
                self._keep_script()
            path = str(hook_record.record(self._home))
            self._reach.do(path, partial(stored_or_why, self._home), self._listed)

    def close(self) -> None:
        """Cancel the next check."""
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        self._keep_script()
        self._settled()

    def _keep_script(self) -> None:
        path = str(hook_record.script(self._home))
        self._reach.do(path, partial(script_or_why, self._home), partial(self._note, SCRIPT))

    def _settled(self) -> None:
        self._timer = None
        self.check()

    def _listed(self, hooked_files: hook_record.HookedFiles | str) -> None:
        self._note(RECORD, hooked_files if isinstance(hooked_files, str) else "")
        if isinstance(hooked_files, str):
            return  # what was recorded is guarded on
        self._hooked = hooked_files
        for known in (self._missing, self._checked):
            for path in known.keys() - hooked_files.keys():
                del known[path]
                self._notes.pop(path, None)
        self._attend()
        for path, hooked in hooked_files.items():
            work = partial(
                check_file, self._home, self._environ, path, hooked, self._checked.get(path)
            )
            self._reach.do(path, work, partial(self._took, path))
        self._update(self.notes, self.vanished if self._missing else "")

    def _attend(self) -> None:
        paths = {str(hook_record.record(self._home)), *self._hooked}
        paths |= {checked.real for checked in self._checked.values()}
        for path in self._watched - paths:
            self._watch.remove(path)
        for path in paths - self._watched:
            self._watch.add(path)
        self._watched = paths

    def _took(self, path: str, checked: Checked) -> None:
        hooked = self._hooked.get(path)
        if hooked is None:
            return
        before, self._checked[path] = self.notes, checked
        self._attend()
        if checked.gone is None:
            return  # half written or broken: says nothing about the hooks
        if checked.gone:
            every = len(checked.gone) == len(hooked.events)
            what = "hooks" if every else f"{len(checked.gone)} hooks"
            where = words.tilde(path, self._environ.get("HOME", ""))
            self._missing[path] = words.plain(f"{what} gone from {where}")
        else:
            self._missing.pop(path, None)
        self._update(before, self.vanished if self._missing else "")
        if hooked.reported != bool(checked.gone) and (self._reports or hooked.reported):
            record, gone = str(hook_record.record(self._home)), bool(checked.gone)
            work = partial(note_reported, self._home, path, gone)
            then = partial(self._reported, path, gone)
            self._reach.do(record, work, then, key=f"report {path}")
        else:
            self._note(path, "")  # what could not be recorded need not be any more

    def _reported(self, path: str, gone: bool, result: bool | str) -> None:
        """Report the missing hooks if this guard was the first to record that."""
        before = self.notes
        self._note(path, result if isinstance(result, str) else "")
        if result is True and path in self._hooked:
            self._hooked[path].reported = gone
        is_news = result is True and gone and path in self._missing
        self._update(before, self._missing[path] if is_news else self.vanished)

    def _note(self, what: str, why: str) -> None:
        before = self.notes
        self._notes.pop(what, None)
        if why:
            self._notes[what] = why
            self._timer = self._timer or self._loop.call_later(RETRY, self._settled)
        self._update(before, self.vanished)

    def _update(self, before: Mapping[str, str], vanished: str) -> None:
        if (before, self.vanished) != (self.notes, vanished):
            self.vanished = vanished
            self._changed()


class Checked(NamedTuple):
    """The last known state of a settings file."""

    stamp: tuple[int, int, int] | None
    events: list[str]  # that should be in it
    real: str  # its path with links resolved
    gone: list[str] | None  # events that are missing; None if that is unknown
    outdated: bool = False  # it is a file of our own, as another version writes it
    named: str = ""  # arguments of `install`, unless it changes this file without any


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
    if cli.key != hooked.agent:  # of a newer version, for an agent that is unknown here
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


def stored_or_why(home: Path) -> hook_record.HookedFiles | str:
    """Return where hooks are installed, or why that is not known."""
    try:
        return hook_record.stored(home)
    except OSError as e:
        return hook_record.unread(home, e)


def script_or_why(home: Path) -> str:
    """Install or update the script that the hooks run; return why that failed, if it did."""
    try:
        hook_record.keep_script(home)
    except OSError as e:
        return f"cannot write the hook script to {home}: {e.strerror}"
    return ""


def note_reported(home: Path, path: str, reported: bool) -> bool | str:
    """Record whether missing hooks were reported; return False if it already was, or the error."""
    try:
        with hook_record.changing(home) as hooked_files:
            if path not in hooked_files or hooked_files[path].reported == reported:
                return False
            hooked_files[path].reported = reported
            return True
    except OSError as e:
        return f"cannot write {hook_record.record(home)}: {e.strerror or e}"
