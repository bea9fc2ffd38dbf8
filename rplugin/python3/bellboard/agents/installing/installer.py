"""Install, check and remove our hooks in the files of a CLI.

Every write starts as a `FileChange`, whose diff can be shown, and happens only if the file has not
changed since.  Before writing, the state folder records what to restore, and a dated backup is
made next to the file.
"""

from __future__ import annotations

import contextlib
import difflib
import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from ...core.words import plain
from ...storage.spool import Spool
from ...system import files
from ...system.packaged import Version
from . import hook_record, hookline
from .hookline import GlobalHooks, Hooked, HooksFile
from .settings_file import (
    MARK,
    WHOLE,
    Before,
    Form,
    Malformed,
    NotJson,
    OwnFile,
    SharedFile,
    without_comments,
)

# ---------------------------------------------------------------- the dated copies

KEPT: Final = 3  # copies of one file


def backup_of(path: Path) -> Path:
    """Return a new name for a backup, which sorts after all existing ones."""
    stamp = f"{path.name}.bellboard-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    last = next((copy.name for copy in reversed(backups(path)) if copy.name.startswith(stamp)), "")
    count = int(last[len(stamp) + 1 :] or 0) + 1 if last else 0
    while os.path.lexists(backup := path.with_name(f"{stamp}.{count}" if count else stamp)):
        count += 1
    return backup


def backups(path: Path) -> list[Path]:
    """Return the backups of a file, oldest first."""
    stamp = r"\.bellboard-(\d{8}-\d{6})(?:\.(\d{1,9}))?"
    dated = re.compile(re.escape(path.name) + stamp, re.ASCII)
    copies = path.parent.glob(f"{glob.escape(path.name)}.bellboard-*")
    found = {  # a folder that changes may list a name twice
        (named[1], int(named[2] or 0), copy)
        for copy in copies
        if (named := dated.fullmatch(copy.name)) and copy.is_file() and not copy.is_symlink()
    }
    return [copy for _, _, copy in sorted(found)]


def prune(path: Path) -> None:
    """Remove all backups of a file but the newest."""
    for old in backups(path)[:-KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()


# ---------------------------------------------------------------- a change, planned

CONTEXT: Final = 3  # lines around a change in a diff


@dataclass(frozen=True)
class FileChange:
    """The old and the new content of a file."""

    path: Path
    old: bytes | None  # None: no such file
    new: bytes | None
    events: tuple[str, ...]  # events of our hooks in the new content
    before: Before
    is_altered: bool = False  # whether our own file, to be removed, has text that we did not write

    @property
    def is_none(self) -> bool:
        """Return whether there is nothing to do."""
        return self.old == self.new

    @property
    def needs_backup(self) -> bool:
        """Return whether the old content is worth keeping; otherwise all of it was ours."""
        return self.old is not None and (self.new is not None or self.is_altered)

    def diff(self) -> str:
        """Return the change in the format of `diff -u`."""
        return _diff(self.old or b"", self.new or b"", str(self.path))


def _diff(old: bytes, new: bytes, name: str) -> str:
    """Compare only the lines from the first difference to the last: a file may be large."""
    before, after = (_lines(raw) for raw in (old, new))
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    skipped, kept = max(0, head - CONTEXT), max(0, tail - CONTEXT)
    lines = difflib.unified_diff(
        before[skipped : len(before) - kept],
        after[skipped : len(after) - kept],
        name,
        name,
        n=CONTEXT,
    )
    return "".join(_moved(line, skipped) for line in lines)


def _lines(raw: bytes) -> list[str]:
    text = raw.decode("utf-8", "replace")
    return [line.rstrip("\r\n") + "\n" for line in text.splitlines(keepends=True)]


def _common(one: Iterable[str], other: Iterable[str]) -> int:
    count = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        count += 1
    return count


def _moved(line: str, by: int) -> str:
    if not line.startswith("@@") or not by:
        return line
    return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number.group()) + by), line)


# ---------------------------------------------------------------- the state of a file


@dataclass(frozen=True)
class HookState:
    """The state of our hooks in a file."""

    path: Path
    problem: str = ""  # why the file cannot be read or edited
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # events that the CLI has, and the file lacks
    outdated: tuple[str, ...] = ()  # events that run another script than the kept one
    other: tuple[str, ...] = ()  # events with other limits than this version writes
    plugin: bool = False  # whether the file enables a plugin with the same hooks
    obstacles: tuple[str, ...] = ()  # reasons why no hook runs
    remarks: tuple[str, ...] = ()  # other faults of the hooks

    @property
    def is_whole(self) -> bool:
        """Return whether every event runs the right script."""
        return not (self.problem or self.missing or self.outdated or self.other)

    @property
    def is_complete(self) -> bool:
        """Return whether all hooks are there and the CLI runs them, as far as known."""
        return self.is_whole and not self.obstacles

    def summary(self) -> str:
        """Describe the state in one line, safe to print: anybody may have written the file."""
        return plain(self.problem or self._found())

    def _found(self) -> str:
        notes = [self._present()]
        if self.outdated:
            other = "version" if WHOLE in self.outdated else "installation"
            notes.append(f"from another {other}{_named(self.outdated)}")
        if self.other:
            notes.append("with limits set by an older version" + _named(self.other))
        if self.plugin:
            notes.append("plugin enabled")
        return "; ".join((*notes, *self.obstacles, *self.remarks))

    def _present(self) -> str:
        if not self.events:
            return "no hooks"
        if WHOLE in self.events:
            return "installed"
        known = len(self.events) + len(self.missing)
        missing = f"; missing {', '.join(self.missing)}" if self.missing else ""
        return f"{len(self.events)} of {known} events{missing}"


def _named(events: tuple[str, ...]) -> str:
    return "" if WHOLE in events else f": {', '.join(events)}"


# ---------------------------------------------------------------- the installer


class SettingsError(Exception):
    """A file was not written; the text says which file, why, and what to do."""


class Installer:
    """The files of one CLI, for one state folder and one environment."""

    unplug = ""  # the command that removes a plugin with the same hooks

    def __init__(self, home: Path, environ: Mapping[str, str], cli: Hooked) -> None:
        self.home, self.cli = home, cli
        self._environ = environ
        self._user_home = environ.get("HOME", "")

    # ------------------------------------------------------------ methods that a CLI may override

    @property
    def hooks(self) -> HooksFile:
        """Return the CLI's file of hooks."""
        assert self.cli.hooks is not None
        return self.cli.hooks

    def user_file(self) -> Path:
        """Return the file for all sessions, which is neither read nor written if relative."""
        return Path(os.path.normpath(self.hooks.path(self._environ)))  # links stay

    def project_file(self, folder: Path, local: bool) -> Path:
        """Return the file of a project: the shared one, or the `local` one."""
        name = self.cli.name
        raise SettingsError(f"{name} has no hooks for one project: leave out --project and --local")

    def near_files(self, folder: Path) -> tuple[Path, ...]:
        """Return the files that apply in a folder only."""
        return ()

    def version(self, given: str | None) -> Version | None:
        """Return the version to install for, if the hooks depend on it.

        The version may be given, as a number or by a program; otherwise it is the one in use.
        """
        return None

    def left_out(self, version: Version | None) -> str:
        """Return in words which events are not registered because the version is unknown."""
        return ""

    def printed(self, version: Version | None) -> str:
        """Return the hooks for the user to put in place, and install their script."""
        self._prepare()
        return self.cli.reporting(self._line).rstrip()

    def form(self, version: Version | None, kept: Iterable[str] = ()) -> Form:
        """Return the form of the file; events that are already in it may be `kept`."""
        content = self.cli.reporting(self._line)
        if self.hooks.own:
            return OwnFile(content.rstrip() + "\n", self.is_ours, self.hooks.mark)
        listed = json.loads(content)["hooks"]
        handlers = {event: groups[0]["hooks"][0] for event, groups in listed.items()}
        return SharedFile(handlers, self.is_ours, self.hooks.comments)

    def state(self, state: HookState, text: str) -> HookState:
        """Return the state of a file, completed with obstacles and remarks from its text."""
        if not state.events or state.path != self.user_file():
            return state
        plain = without_comments(text)[0] if self.hooks.comments else text
        looked = GlobalHooks(state.path, plain.removeprefix(MARK), self.is_ours)
        try:
            obstacles, remarks = self.hooks.obstacles(looked), self.hooks.remarks(looked)
            return replace(state, obstacles=tuple(obstacles), remarks=tuple(remarks))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return state  # the CLI would not read such a text either

    # ------------------------------------------------------------ the work

    def is_ours(self, command: str) -> bool:
        """Return whether a command runs our script."""
        script = hookline.script_of(command, self._user_home)
        return script is not None and hook_record.is_script(script, self.home)

    def put_in(self, path: Path, version: Version | None = None) -> FileChange:
        """Plan how to add our hooks."""
        self._recordable(path)
        self._may_write(path)
        old = self._read(path)
        known = self.recorded().get(str(path), hook_record.HookedFile())
        text = None if old is None else self._text(path, old)
        form = self._form(version, known.events)
        with _refusing(path):
            new, before = form.put_in(text, known.before)
            _prove(form, text, new)
        return FileChange(path, old, new.encode(), form.events, before)

    def take_out(self, path: Path) -> FileChange:
        """Plan how to remove our hooks."""
        old = self._read(path)
        if old is None:
            return FileChange(path, None, None, (), {})
        text, known = self._text(path, old), self.recorded()
        before = known[str(path)].before if str(path) in known else None
        form = self._form(None)
        with _refusing(path):
            new = form.take_out(text, before)
            _prove(form, text, new)
        if new != text:
            self._may_write(path)
        is_altered = new is None and form.is_altered(text)
        return FileChange(path, old, None if new is None else new.encode(), (), {}, is_altered)

    def apply(self, change: FileChange) -> Path | None:
        """Write a change; return the backup, if one was made."""
        path = change.path
        if change.is_none and not change.events and str(path) not in self.recorded():
            return None
        if change.events:
            self._prepare()
        with hook_record.changing(self.home) as hooked_files:
            before = copy(hooked_files.get(str(path)))
            folders = files.missing_folders(files.target_of(path))
            made = hook_record.HookedFile(made=folders, agent=self.cli.key)
            hooked = hooked_files.setdefault(str(path), made)
            hooked.events = []  # the guard must not miss hooks meanwhile
            if change.events:
                hooked.before = change.before
        try:
            backup = None if change.is_none else self._write(change)
        except BaseException:
            files.remove_empty(folders)
            with contextlib.suppress(OSError):
                self._note(path, before, instead_of=hooked)
            raise
        if change.events:
            hooked.events, hooked.reported = list(change.events), False
        elif change.new is None:
            files.remove_empty(hooked.folders(path))
        try:
            self._note(path, hooked if change.events else None)
        except OSError as e:
            record = hook_record.record(self.home)
            raise SettingsError(
                f"{path} is as it should be, but {record} does not say so: {e.strerror or e}; "
                "run this again"
            ) from None
        return backup

    def _write(self, change: FileChange) -> Path | None:
        """Write the file and, if needed, a backup; return the backup."""
        path, backup = change.path, None
        files.target_of(path).parent.mkdir(parents=True, exist_ok=True)
        if change.needs_backup:
            backup = backup_of(path)
            files.copy(path, backup)
        try:
            if not files.replace(path, change.new, change.old):
                raise SettingsError(f"{path} has changed since; nothing was written: try again")
        except (OSError, SettingsError):
            if backup is not None:  # copies of the same text would push out older ones
                backup.unlink(missing_ok=True)
            raise
        prune(path)
        return backup

    def _note(
        self,
        path: Path,
        hooked: hook_record.HookedFile | None,
        instead_of: hook_record.HookedFile | None = None,
    ) -> None:
        """Record the hooks in a file (None: no hooks); with `instead_of`, only if that is recorded.

        Another process may have installed and recorded its hooks since.
        """
        with hook_record.changing(self.home) as hooked_files:
            if instead_of is not None and hooked_files.get(str(path)) != instead_of:
                return
            hooked_files.pop(str(path), None)
            if hooked is not None:
                hooked_files[str(path)] = hooked

    def check(self, path: Path, version: Version | None = None) -> HookState:
        """Check one file."""
        form = self._form(version)
        try:
            raw = self._read(path)
            text = "" if raw is None else self._text(path, raw)
            seen = form.look(text)
        except (SettingsError, NotJson, Malformed, RecursionError) as e:
            return HookState(path, problem=str(e))
        state = HookState(path, "", seen.there, seen.missing, seen.outdated, seen.other)
        return self.state(state, text)

    def recorded(self) -> hook_record.HookedFiles:
        """Return the files with hooks; raise `SettingsError` if the record cannot be read."""
        try:
            return hook_record.stored(self.home)
        except OSError as e:
            raise SettingsError(hook_record.unread(self.home, e)) from None

    def files(self, folder: Path) -> list[Path]:
        """Return the files that apply in a folder, and all others with our hooks."""
        known = (
            Path(path)
            for path, hooked in hook_record.hooked_files(self.home).items()
            if hooked.agent == self.cli.key
        )
        return list(dict.fromkeys((self.user_file(), *self.near_files(folder), *known)))

    # ------------------------------------------------------------ checks

    def _line(self, event: str) -> str:
        script = str(hook_record.script(self.home))
        return hookline.hook_line(script, event, self._user_home, self.cli.key)

    def _form(self, version: Version | None, kept: Iterable[str] = ()) -> Form:
        self._recordable(self.home)
        return self.form(version, kept)

    def _prepare(self) -> None:
        Spool(self.home).prepare()
        hook_record.keep_script(self.home)

    def _recordable(self, path: Path) -> None:
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise SettingsError(f"{path!r} is not UTF-8: use another folder") from None

    def _read(self, path: Path) -> bytes | None:
        if not path.is_absolute():  # each program would find another file
            raise SettingsError(
                f"it is not known where {self.cli.name} keeps its settings: {path.parent} is no "
                "absolute path; set HOME, or the variable that names this folder, to one"
            )
        try:
            return files.content(path)
        except OSError as e:
            raise SettingsError(f"cannot read {path}: {e.strerror or e}") from None

    def _text(self, path: Path, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as e:
            line = raw.count(b"\n", 0, e.start) + 1
            raise SettingsError(f"{path}, line {line}: not UTF-8; nothing was written") from None

    def _may_write(self, path: Path) -> None:
        try:
            why = files.obstacle(path)
        except OSError as e:
            raise SettingsError(f"cannot write {path}: {e.strerror}") from None
        if why:
            raise SettingsError(f"{path} {why}; nothing was written")


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Name the file whose text is refused."""
    try:
        yield
    except (ValueError, RecursionError) as e:
        comma = ", " if isinstance(e, (NotJson, Malformed)) else ": "  # these begin with a place
        raise SettingsError(f"{path}{comma}{e}; nothing was written") from None


def _prove(form: Form, old: str | None, new: str | None) -> None:
    """Check that everything except our hooks stays the same."""
    if not form.is_kept(old, new):
        raise ValueError("the edit would change other settings; please report this")
