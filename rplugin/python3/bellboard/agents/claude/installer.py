"""Claude Code's settings files: their places, the events of a version, and disabled hooks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...core.untrusted import object_of
from ...system.packaged import Version
from ..installing import hook_record, hookline
from ..installing.installer import HookState, Installer, SettingsError
from ..installing.settings_file import MARK, HookHandler, SharedFile, hook_group
from .session_files import oldest_running
from .versions import LATER, cli_version, events_of

FILE: Final = "settings.json"
PLUGIN: Final = "bellboard"
#: Seconds until the CLI ends a hook that waits for an answer: its usual time is too short.
TIMEOUTS: Final = {"PermissionRequest": 86_400}


class Settings(Installer):
    """See `Installer`."""

    unplug = f"claude plugin uninstall {PLUGIN}"

    def project_file(self, folder: Path, local: bool) -> Path:
        return project_file(folder, local)

    def near_files(self, folder: Path) -> tuple[Path, ...]:
        return project_file(folder), project_file(folder, local=True)

    def version(self, given: str | None) -> Version | None:
        found = cli_version(given, self._environ)
        if found is None and given:
            raise SettingsError(f"--cli {given}: not a version such as 2.1.328, nor a Claude Code")
        return found or oldest_running(self._environ)

    def left_out(self, version: Version | None) -> str:
        if version is not None:
            return ""
        later = ", ".join(name for names in LATER.values() for name in names)
        return (
            f"no claude on PATH, so its version is unknown; left out {later}: "
            "run this again once claude is on PATH"
        )

    def printed(self, version: Version | None) -> str:
        """Return the settings for `claude --settings`, and install the script that they run."""
        self._prepare()
        hooks = {e: [hook_group(h)] for e, h in self.form(version).handlers.items()}
        return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)

    def form(self, version: Version | None, kept: Iterable[str] = ()) -> SharedFile:
        """Return the hooks of a version; without a version, those of core and `kept` events."""
        events = events_of(version)
        if version is None:
            events = tuple(dict.fromkeys((*events, *kept)))
        return SharedFile(handlers(events, self._line), self.is_ours)

    def state(self, state: HookState, text: str) -> HookState:
        try:
            settings = object_of(json.loads(text.removeprefix(MARK).strip() or "{}"))
        except (ValueError, RecursionError) as e:
            return HookState(state.path, problem=str(e))
        plugins = settings.get("enabledPlugins")
        disabled = settings.get("disableAllHooks") is True
        return replace(
            state,
            plugin=isinstance(plugins, dict)
            and any(on is True and p.partition("@")[0] == PLUGIN for p, on in plugins.items()),
            obstacles=("disabled by disableAllHooks",) if disabled else (),
        )

    def _line(self, event: str) -> str:
        return hookline.hook_line(str(hook_record.script(self.home)), event, self._user_home)


def project_file(folder: Path, local: bool = False) -> Path:
    """Return the settings file of a project: the shared one, or the `local` one."""
    return folder.absolute() / ".claude" / ("settings.local.json" if local else FILE)


def handlers(events: Iterable[str], line: Callable[[str], str]) -> dict[str, HookHandler]:
    """Return the handler of each event; `line` gives its command."""
    return {event: _handler(event, line(event)) for event in events}


def _handler(event: str, command: str) -> HookHandler:
    handler = {"type": "command", "command": command}
    return {**handler, "timeout": TIMEOUTS[event]} if event in TIMEOUTS else handler
