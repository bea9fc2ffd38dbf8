"""Check Claude Code: its installation, our hooks in it, and the abilities of its versions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ..agents.claude.agent import ClaudeCode
from ..agents.claude.installer import PLUGIN
from ..agents.claude.session_files import SILENT, config_of, registry_of, versions_of
from ..agents.claude.versions import abilities, cli_version
from ..agents.registry import all_agents
from ..core import words
from ..core.version import VERSION
from ..system.files import decoded, read
from ..system.packaged import Version, dotted
from .fact import Fact, info, ok, warn
from .surroundings import newer

#: An administrator's settings, on Linux and on macOS.
MANAGED: Final = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
ORPHANED: Final = ".orphaned_at"  # in a copy that Claude Code will remove, 7 days after an update
LARGEST: Final = 1 << 20  # bytes of a file


def installed(environ: Mapping[str, str]) -> Iterator[Fact]:
    """Check that Claude Code is installed and its session files can be read."""
    folder = config_of(environ)
    if not folder.is_absolute():
        yield warn(
            f"CLAUDE_CONFIG_DIR is not an absolute path: {folder}",
            "each program would take it for another folder; give the whole path",
        )
        return
    if not folder.is_dir():
        text = f"Claude Code is not installed: there is no {folder}"
        others = [cli for cli in all_agents() if cli.is_used(environ)]
        if others and not environ.get("CLAUDE_CONFIG_DIR"):
            yield info(text)
        else:
            yield warn(text, "install it, or set CLAUDE_CONFIG_DIR to its settings folder")
        return
    registry = registry_of(folder)
    place, records = registry.paths()[0], registry.records
    if place.is_dir():
        yield ok(f"{place}: {words.amount(len(records), 'session')} running")
    else:
        yield info(f"no session files in {place}: Claude Code writes them from 2.1.76 on")
    for path, why in sorted(registry.notes.items()):
        if "process" not in why:  # the next launch removes the file of a killed process
            yield warn(f"{path}: {why}", "please report this, and attach the file")
    at_hand, versions = cli_version(None, environ), versions_of(records)
    if at_hand:
        yield ok(f"version {dotted(at_hand)} on PATH")
    elif found := shutil.which("claude", path=environ.get("PATH", "")):
        yield warn(f"{found} does not report its version", f"run {found} --version")
    else:
        yield info("no claude on PATH, so `install` adds only the events that all versions know")
    yield from newer(ClaudeCode(), max(filter(None, (at_hand, *versions)), default=None))
    for version, running in versions.items():
        guessed = " or a little later" if version == SILENT else ""
        yield ok(f"version {dotted(version)}{guessed}: {words.amount(running, 'session')}")


def abilities_seen(environ: Mapping[str, str]) -> Iterator[Fact]:
    """List the abilities of each version in use; for older versions only the differences."""
    newest: dict[str, object] = {}
    for version in _seen(environ):
        name = f"{dotted(version)}: " if newest else ""
        for what, ability in abilities(version).items():
            if newest.get(what) != ability:
                source = f" ({ability.source})" if ability.source else ""
                yield info(f"{name}{what}: {ability.when}{source}")
        newest = newest or dict(abilities(version))


def hooks(environ: Mapping[str, str]) -> Iterator[Fact]:
    """Check for other reasons why hooks do not run as they should."""
    yield from _managed()
    yield from _plugin(config_of(environ))


def _seen(environ: Mapping[str, str]) -> list[Version]:
    """Return the versions that are running, and the one on PATH, newest first."""
    at_hand = cli_version(None, environ)
    running = versions_of(registry_of(config_of(environ)).records)
    return sorted({*running, *([at_hand] if at_hand else ())}, reverse=True)


def _object_in(path: Path, ours: bool = True) -> dict[str, object]:
    """Return the object in a JSON file; empty if it cannot be read."""
    try:
        return decoded(read(path, LARGEST, ours)[0]) or {}
    except OSError:
        return {}


def _managed() -> Iterator[Fact]:
    """Check whether an administrator has disabled hooks."""
    for path in MANAGED:
        settings = _object_in(path, ours=False)
        for name in ("disableAllHooks", "allowManagedHooksOnly"):
            if settings.get(name) is True:
                yield warn(f"{path} sets {name}", "our hooks do not run; ask your administrator")


def _plugin(config: Path) -> Iterator[Fact]:
    """Check the copies of the plugin that Claude Code keeps: each must have this version."""
    pattern = f"plugins/cache/*/{PLUGIN}/*/.claude-plugin/plugin.json"
    for path in sorted(config.glob(pattern)):
        version = _object_in(path).get("version")
        place = path.parents[1]
        if version is None or (place / ORPHANED).exists():
            continue
        if version == VERSION:
            yield ok(f"plugin {version} in {place}")
        else:
            yield warn(
                f"plugin {version} in {place}, but this is {VERSION}",
                f"claude plugin update {PLUGIN}",
            )
