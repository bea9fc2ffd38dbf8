"""What is around us: Claude Code and what it can tell, tmux, the limits of the system."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ..agents.claude_code.abilities import abilities
from ..agents.claude_code.installer.installed import script
from ..agents.claude_code.installer.settings import PLUGIN, Settings, user_file
from ..agents.claude_code.version import Version, version_in, version_of
from ..agents.claude_code.witnesses.registry import Record, Registry, config_of
from ..core import words
from ..core.version import VERSION
from ..system.inotify import usage
from ..system.tmux import Tmux, sockets
from .fact import Fact, error, info, ok, warn

#: Where an administrator's settings are, on Linux and on macOS.
MANAGED: Final = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
SILENT: Final = (2, 1, 76)  # the first with session files, in which it tells no version yet
SCARCE: Final = 0.9  # of what the system gives


def claude_code(environ: Mapping[str, str]) -> Iterator[Fact]:
    """Whether it is there, and what it says of its sessions."""
    folder = config_of(environ)
    if not folder.is_dir():
        yield warn(
            f"Claude Code is not installed: there is no {folder}",
            "install it, or set CLAUDE_CONFIG_DIR to where it keeps its settings",
        )
        return
    registry = _registry(folder)
    place, records = registry.paths()[0], registry.records
    if place.is_dir():
        yield ok(f"{place}: {words.amount(len(records), 'session')} running")
    else:
        yield info(f"no session files in {place}: Claude Code keeps them from 2.1.76 on")
    for path, why in sorted(registry.notes.items()):
        if "process" not in why:  # what a killed one left is removed at the next launch
            yield warn(f"{path}: {why}", "report this, with that file")
    at_hand, versions = version_of(None, environ), _versions(records)
    if at_hand:
        yield ok(f"version {_dotted(at_hand)} on PATH")
    elif program := shutil.which("claude", path=environ.get("PATH", "")):
        yield warn(f"{program} does not tell its version", f"see what {program} --version says")
    for version, running in versions.items():
        guessed = " or a little later" if version == SILENT else ""
        yield ok(f"version {_dotted(version)}{guessed}: {words.amount(running, 'session')}")


def abilities_seen(environ: Mapping[str, str]) -> Iterator[Fact]:
    """What each version that runs can tell; of the older ones only what differs."""
    newest: dict[str, object] = {}
    for version in _seen(environ):
        name = f"{_dotted(version)}: " if newest else ""
        for what, ability in abilities(version).items():
            if newest.get(what) != ability:
                way = f" ({ability.way})" if ability.way else ""
                yield info(f"{name}{what}: {ability.when}{way}")
        newest = newest or dict(abilities(version))


def _seen(environ: Mapping[str, str]) -> list[Version]:
    """Those that run, and the one that would."""
    at_hand = version_of(None, environ)
    running = _versions(_registry(config_of(environ)).records)
    return sorted({*running, *([at_hand] if at_hand else ())}, reverse=True)


def _registry(folder: Path) -> Registry:
    registry = Registry([folder])
    registry.look(time.time())
    return registry


def _versions(records: Mapping[int, Record]) -> dict[Version, int]:
    """How many sessions run each version, the newest first."""
    told = {pid: version_in(str(record.get("version"))) for pid, record in records.items()}
    silent = {pid: None if "status" in record else SILENT for pid, record in records.items()}
    known = [version for pid, said in told.items() if (version := said or silent[pid])]
    return {version: known.count(version) for version in sorted({*known}, reverse=True)}


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


# ---------------------------------------------------------------- hooks


def hooks(home: Path, environ: Mapping[str, str], folder: Path) -> Iterator[Fact]:
    """Where ours are, and whether Claude Code runs them."""
    settings, version = Settings(home, environ), next(iter(_seen(environ)), None)
    states = [settings.check(path, version) for path in settings.files(folder)]
    for state in states:
        text = f"{state.path}: {state.said()}"
        if state.problem:
            yield warn(text, "the hooks in it cannot be told")
        elif state.disabled:
            yield warn(text, "take disableAllHooks out of it")
        elif state.events and not state.is_complete:
            file = "" if state.path == user_file(environ) else f" --settings {state.path}"
            yield warn(text, f"bellboard hooks install{file}")
        elif state.events or state.plugin:
            yield ok(text)
    if not any(state.events or state.plugin for state in states):
        yield warn(
            f"there are none in {', '.join(str(s.path) for s in states)}: "
            "sessions show by their own files alone, without tools and detail",
            "bellboard hooks install",
        )
    runs = script(home)
    if any(state.events for state in states) and not runs.is_file():
        yield error(f"the script that they run is gone: {runs}", "bellboard hooks install")
    yield from _managed()
    yield from _plugin(config_of(environ))


def _managed() -> Iterator[Fact]:
    """What an administrator may have switched off for everybody."""
    for path in MANAGED:
        try:
            told = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        for name in ("disableAllHooks", "allowManagedHooksOnly"):
            if isinstance(told, dict) and told.get(name) is True:
                yield warn(f"{path} says {name}", "no hook of ours runs; ask who administers it")


def _plugin(config: Path) -> Iterator[Fact]:
    """Copies of the plugin that Claude Code made; one of another version tells other events."""
    pattern = f"plugins/cache/*/{PLUGIN}/*/.claude-plugin/plugin.json"
    for path in sorted(config.glob(pattern)):
        try:
            version = json.loads(path.read_bytes()).get("version")
        except (OSError, ValueError, AttributeError):
            continue
        place = path.parents[1]
        if version == VERSION:
            yield ok(f"plugin {version} in {place}")
        else:
            yield warn(
                f"plugin {version} in {place}, but this is {VERSION}",
                f"claude plugin update {PLUGIN}",
            )


# ---------------------------------------------------------------- the system


def system(home: Path, environ: Mapping[str, str]) -> Iterator[Fact]:
    """tmux, and what the kernel gives to watch files with."""
    yield from _tmux(environ)
    used = usage()
    if used is None:
        yield info("no inotify here: files are looked at several times a second")
        return
    for what, limit, setting in (
        (used.watches, used.most_watches, "max_user_watches"),
        (used.instances, used.most_instances, "max_user_instances"),
    ):
        text = f"inotify: {what} of {limit} {setting.removeprefix('max_user_')} used"
        if what >= limit * SCARCE:
            yield warn(
                f"{text}; without one, files are looked at once a second",
                f"sysctl fs.inotify.{setting}={limit * 4}",
            )
        else:
            yield ok(text)


def _tmux(environ: Mapping[str, str]) -> Iterator[Fact]:
    program = shutil.which("tmux", path=environ.get("PATH"))
    if program is None:
        yield info("no tmux: jumps reach the terminals of Neovims only")
        return
    here = environ.get("TMUX", "").rsplit(",", 2)[0]
    servers = [Tmux(socket) for socket in dict.fromkeys((*sockets(environ), here)) if socket]
    answers = [(server, server.panes()) for server in servers]
    told = [f"{s.socket} ({words.amount(len(panes), 'pane')})" for s, panes in answers if panes]
    yield ok(f"{program}: {', '.join(told) or 'no server runs'}")
    for server, panes in answers:
        if panes is None:
            yield warn(server.why, "no session in it can be jumped to; see what it does")
