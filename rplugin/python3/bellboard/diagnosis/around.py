"""Check the surroundings: Claude Code and what it reports, tmux, system limits."""

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
from .fact import Fact, error, info, ok, program, warn

#: An administrator's settings, on Linux and on macOS.
MANAGED: Final = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
SILENT: Final = (2, 1, 76)  # the first with session files, which do not yet name the version
SCARCE: Final = 0.9  # share of a system limit in use


def claude_code(environ: Mapping[str, str]) -> Iterator[Fact]:
    """Check that Claude Code is installed and its session files can be read."""
    folder = config_of(environ)
    if not folder.is_dir():
        yield warn(
            f"Claude Code is not installed: there is no {folder}",
            "install it, or set CLAUDE_CONFIG_DIR to its settings folder",
        )
        return
    registry = _registry(folder)
    place, records = registry.paths()[0], registry.records
    if place.is_dir():
        yield ok(f"{place}: {words.amount(len(records), 'session')} running")
    else:
        yield info(f"no session files in {place}: Claude Code writes them from 2.1.76 on")
    for path, why in sorted(registry.notes.items()):
        if "process" not in why:  # the next launch removes the file of a killed process
            yield warn(f"{path}: {why}", "please report this, and attach the file")
    at_hand, versions = version_of(None, environ), _versions(records)
    if at_hand:
        yield ok(f"version {_dotted(at_hand)} on PATH")
    elif found := shutil.which("claude", path=environ.get("PATH", "")):
        yield warn(f"{found} does not report its version", f"run {found} --version")
    else:
        yield info("no claude on PATH: `install` then adds what every version knows")
    for version, running in versions.items():
        guessed = " or a little later" if version == SILENT else ""
        yield ok(f"version {_dotted(version)}{guessed}: {words.amount(running, 'session')}")


def abilities_seen(environ: Mapping[str, str]) -> Iterator[Fact]:
    """List what each version in use reports; for older versions only the differences."""
    newest: dict[str, object] = {}
    for version in _seen(environ):
        name = f"{_dotted(version)}: " if newest else ""
        for what, ability in abilities(version).items():
            if newest.get(what) != ability:
                source = f" ({ability.source})" if ability.source else ""
                yield info(f"{name}{what}: {ability.when}{source}")
        newest = newest or dict(abilities(version))


def _seen(environ: Mapping[str, str]) -> list[Version]:
    """Return the versions that are running, and the one on PATH, newest first."""
    at_hand = version_of(None, environ)
    running = _versions(_registry(config_of(environ)).records)
    return sorted({*running, *([at_hand] if at_hand else ())}, reverse=True)


def oldest_running(environ: Mapping[str, str]) -> Version | None:
    """Return the oldest version that is running: all others know its hook events, too."""
    return min(_versions(_registry(config_of(environ)).records), default=None)


def _registry(folder: Path) -> Registry:
    registry = Registry([folder])
    registry.check(time.time())
    return registry


def _versions(records: Mapping[int, Record]) -> dict[Version, int]:
    """Count the sessions of each version, newest first."""
    named = {pid: version_in(str(record.get("version"))) for pid, record in records.items()}
    silent = {pid: None if "status" in record else SILENT for pid, record in records.items()}
    known = [version for pid, named_ in named.items() if (version := named_ or silent[pid])]
    return {version: known.count(version) for version in sorted({*known}, reverse=True)}


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


# ---------------------------------------------------------------- hooks


def hooks(home: Path, environ: Mapping[str, str], folder: Path) -> Iterator[Fact]:
    """Check that the hooks are installed and that Claude Code runs them."""
    settings, version = Settings(home, environ), next(iter(_seen(environ)), None)
    states = [settings.check(path, version) for path in settings.files(folder)]
    install = f"{program(environ)} hooks install"
    for state in states:
        text = f"{state.path}: {state.summary()}"
        if state.problem:
            yield warn(text, "repair the file: its hooks cannot be read")
        elif state.disabled:
            yield warn(text, "remove disableAllHooks from it")
        elif state.events and not state.is_complete:
            file = "" if state.path == user_file(environ) else f" --settings {state.path}"
            yield warn(text, f"{install}{file}")
        elif state.events or state.plugin:
            yield ok(text)
    is_there = version is not None or config_of(environ).is_dir()
    if is_there and not any(state.events or state.plugin for state in states):
        yield info(
            "no hooks: sessions are known from their files and screens; "
            "hooks add the tool in use, agents and progress",
            install,
        )
    runs = script(home)
    if any(state.events for state in states) and not runs.is_file():
        yield error(f"the script that the hooks run is missing: {runs}", install)
    yield from _managed()
    yield from _plugin(config_of(environ))


def _managed() -> Iterator[Fact]:
    """Check whether an administrator has disabled hooks."""
    for path in MANAGED:
        try:
            settings = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        for name in ("disableAllHooks", "allowManagedHooksOnly"):
            if isinstance(settings, dict) and settings.get(name) is True:
                yield warn(f"{path} sets {name}", "our hooks do not run; ask your administrator")


def _plugin(config: Path) -> Iterator[Fact]:
    """Check the copies of the plugin that Claude Code keeps: each must have this version."""
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
    """Check tmux and the kernel's limits on watching files."""
    yield from _tmux(environ)
    used = usage()
    if used is None:
        yield info("no inotify here: files are polled several times a second")
        return
    for what, limit, setting in (
        (used.watches, used.most_watches, "max_user_watches"),
        (used.instances, used.most_instances, "max_user_instances"),
    ):
        text = f"inotify: {what} of {limit} {setting.removeprefix('max_user_')} used"
        if what >= limit * SCARCE:
            yield warn(
                f"{text}; when none is left, files are polled once a second",
                f"sysctl fs.inotify.{setting}={limit * 4}",
            )
        else:
            yield ok(text)


def _tmux(environ: Mapping[str, str]) -> Iterator[Fact]:
    tmux = shutil.which("tmux", path=environ.get("PATH"))
    if tmux is None:
        yield info("no tmux: only sessions in Neovim terminals can be jumped to")
        return
    here = environ.get("TMUX", "").rsplit(",", 2)[0]
    servers = [Tmux(socket) for socket in dict.fromkeys((*sockets(environ), here)) if socket]
    answers = [(server, server.panes()) for server in servers]
    running = [f"{s.socket} ({words.amount(len(panes), 'pane')})" for s, panes in answers if panes]
    yield ok(f"{tmux}: {', '.join(running) or 'no server is running'}")
    for server, panes in answers:
        if panes is None:
            yield warn(server.why, "jumps to its sessions fail; check that server")
