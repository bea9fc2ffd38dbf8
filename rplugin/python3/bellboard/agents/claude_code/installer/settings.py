"""Install, check and remove our hooks in Claude Code's settings files.

Every write starts as a `Change`, whose diff can be shown, and happens only if the file has not
changed since.  Before writing, the state folder records what to restore, and a dated backup is
made next to the file.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ....storage.spool import Spool
from ....system import atomic
from ..version import Version, events_of
from ..witnesses.registry import config_of
from . import hookline, installed, settings_text
from .backups import backup_of, backups
from .change import Change
from .jsontext import Broken

FILE: Final = "settings.json"
PLUGIN: Final = "bellboard"
BACKUPS: Final = 3  # copies to keep of one file


class SettingsError(Exception):
    """Nothing was written; the text says which file, why, and what to do."""


@dataclass(frozen=True)
class State:
    """The state of our hooks in one settings file."""

    path: Path
    problem: str = ""  # why the file cannot be read or edited
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # events that this CLI knows
    outdated: tuple[str, ...] = ()  # events that run another script than the kept one
    short: tuple[str, ...] = ()  # events that the CLI ends before an answer may come
    plugin: bool = False  # whether the file enables the plugin
    disabled: bool = False  # whether it disables all hooks

    @property
    def is_complete(self) -> bool:
        """Return whether every event runs the right script."""
        incomplete = self.missing or self.outdated or self.short
        return not (self.problem or incomplete or self.disabled)

    def summary(self) -> str:
        """Describe the state in one line."""
        if self.problem:
            return self.problem
        known = len(self.events) + len(self.missing)
        notes = [f"{len(self.events)} of {known} events" if self.events else "no hooks"]
        if self.events and self.missing:
            notes.append(f"missing {', '.join(self.missing)}")
        if self.outdated:
            notes.append(f"from another installation: {', '.join(self.outdated)}")
        if self.short:
            notes.append(
                f"an older version, which waits less for an answer: {', '.join(self.short)}"
            )
        if self.plugin:
            notes.append("plugin enabled")
        if self.disabled:
            notes.append("disabled by disableAllHooks")
        return "; ".join(notes)


def user_file(environ: Mapping[str, str]) -> Path:
    """Return the settings file for all sessions."""
    return Path(os.path.abspath(config_of(environ) / FILE))  # noqa: PTH100 - links stay


def project_file(folder: Path, local: bool = False) -> Path:
    """Return the settings file of a project: the shared one, or the `local` one."""
    return folder.absolute() / ".claude" / ("settings.local.json" if local else FILE)


class Settings:
    """Settings files, for one state folder and one environment."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self.home = home
        self._user_home = environ.get("HOME", "")
        self._environ = environ

    def commands(self, version: Version | None, kept: Iterable[str] = ()) -> dict[str, str]:
        """Return the command of each event; for an unknown version, core events and `kept` ones."""
        events = events_of(version)
        if version is None:
            events = tuple(dict.fromkeys((*events, *kept)))
        script = str(installed.script(self.home))
        self._recordable(self.home)
        return {e: hookline.hook_line(script, e, self._user_home) for e in events}

    def printed(self, version: Version | None) -> dict[str, Any]:
        """Return the settings for `claude --settings`, and install the script that they run."""
        self._prepare()
        group = settings_text.group_of
        return {"hooks": {e: [group(e, c)] for e, c in self.commands(version).items()}}

    def reporting(self, agent: str) -> str:
        """Return the file that lets another CLI report, and install the script that it runs."""
        from ...clis import cli_of

        self._prepare()
        script = str(installed.script(self.home))
        return cli_of(agent).reporting(
            lambda event: hookline.hook_line(script, event, self._user_home, agent)
        )

    def is_ours(self, command: str) -> bool:
        """Return whether a command runs our script."""
        script = hookline.script_of(command, self._user_home)
        return script is not None and installed.is_script(script, self.home)

    def put_in(self, path: Path, version: Version | None) -> Change:
        """Plan how to add our hooks."""
        self._recordable(path)
        self._may_write(path)
        old, known = (
            self._read(path),
            installed.hooked_files(self.home).get(str(path), installed.HookedFile()),
        )
        text = None if old is None else self._text(path, old)
        commands = self.commands(version, known.events)
        new, before = self._refusing(
            path, lambda: settings_text.put_in(text, commands, self.is_ours, known.before)
        )
        self._prove(path, text, new)
        return Change(path, old, new.encode(), tuple(commands), before)

    def take_out(self, path: Path) -> Change:
        """Plan how to remove our hooks."""
        old = self._read(path)
        if old is None:
            return Change(path, None, None, (), {})
        text, known = self._text(path, old), installed.hooked_files(self.home)
        before = known[str(path)].before if str(path) in known else None
        new = self._refusing(path, lambda: settings_text.take_out(text, self.is_ours, before))
        self._prove(path, text, new)
        if new != text:
            self._may_write(path)
        return Change(path, old, None if new is None else new.encode(), (), {})

    def apply(self, change: Change) -> Path | None:
        """Write a change; return the backup, if one was made."""
        path = change.path
        backup = None
        if (
            change.is_none
            and not change.events
            and str(path) not in installed.hooked_files(self.home)
        ):
            return None
        if change.events:
            self._prepare()
        with installed.changing(self.home) as hooked_files:
            made = not path.parent.exists()
            hooked = hooked_files.setdefault(str(path), installed.HookedFile(made_folder=made))
            hooked.events = []  # not to be reported missing meanwhile
            if change.events:
                hooked.before = change.before
        if not change.is_none:
            atomic.target_of(path).parent.mkdir(parents=True, exist_ok=True)
            if change.old is not None and change.new is not None:  # otherwise it was all ours
                backup = backup_of(path)
                atomic.copy(path, backup)
            if not atomic.replace(path, change.new, change.old):
                raise SettingsError(f"{path} has changed since; nothing was written: try again")
            for old in backups(path)[:-BACKUPS]:
                with contextlib.suppress(OSError):
                    old.unlink()
        with installed.changing(self.home) as hooked_files:
            if change.events:
                hooked_files[str(path)].events = list(change.events)
                hooked_files[str(path)].reported = False
            else:
                hooked = hooked_files.pop(str(path), hooked)
                if change.new is None and hooked.made_folder:
                    with contextlib.suppress(OSError):  # no longer empty
                        path.parent.rmdir()
        return backup

    def check(self, path: Path, version: Version | None = None) -> State:
        """Check one file."""
        try:
            raw = self._read(path)
            text = "" if raw is None else self._text(path, raw)
            entries = settings_text.entries(text, self.is_ours)
            settings = json.loads(text.removeprefix("\ufeff") or "{}")
        except (SettingsError, ValueError, RecursionError) as e:
            return State(path, problem=str(e))
        wanted = self.commands(version)
        whole = {entry.event: entry.command for entry in entries if entry.whole}
        timeouts = {entry.event: entry.timeout for entry in entries if entry.whole}
        settings = settings if isinstance(settings, dict) else {}
        plugins = settings.get("enabledPlugins")
        return State(
            path,
            events=tuple(whole),
            missing=tuple(event for event in wanted if event not in whole),
            outdated=tuple(e for e, c in whole.items() if e in wanted and c != wanted[e]),
            short=tuple(
                e for e, t in settings_text.TIMEOUTS.items() if e in whole and timeouts[e] != t
            ),
            plugin=isinstance(plugins, dict)
            and any(on is True and p.partition("@")[0] == PLUGIN for p, on in plugins.items()),
            disabled=settings.get("disableAllHooks") is True,
        )

    def files(self, folder: Path) -> list[Path]:
        """Return the files that apply in a folder, and all others with hooks of ours."""
        near = (project_file(folder), project_file(folder, local=True))
        known = (Path(path) for path in installed.hooked_files(self.home))
        return list(dict.fromkeys((user_file(self._environ), *near, *known)))

    # ------------------------------------------------------------ checks

    def _prepare(self) -> None:
        Spool(self.home).prepare()
        installed.keep_script(self.home)

    def _recordable(self, path: Path) -> None:
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise SettingsError(f"{path!r} is not UTF-8: use another folder") from None

    def _read(self, path: Path) -> bytes | None:
        try:
            return atomic.content(path)
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
            why = atomic.obstacle(path)
        except OSError as e:
            raise SettingsError(f"cannot write {path}: {e.strerror}") from None
        if why:
            raise SettingsError(f"{path} {why}; nothing was written")

    def _refusing(self, path: Path, work: Any) -> Any:
        try:
            return work()
        except (Broken, settings_text.Malformed) as e:
            raise SettingsError(f"{path}, {e}; nothing was written") from None

    def _prove(self, path: Path, old: str | None, new: str | None) -> None:
        """Check that everything that is not ours stays the same."""
        try:
            same = self._others(old) == self._others(new)
        except (ValueError, RecursionError) as e:
            raise SettingsError(f"{path}: {e}; nothing was written") from None
        if not same:
            raise SettingsError(
                f"{path}: the edit would change other settings; nothing was written: "
                "please report this"
            )

    def _others(self, text: str | None) -> Any:
        settings = json.loads((text or "").removeprefix("\ufeff").strip() or "{}")
        return settings_text.without(settings, self.is_ours)
