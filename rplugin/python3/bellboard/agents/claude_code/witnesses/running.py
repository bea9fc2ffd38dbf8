"""Which versions are running, as far as their session files say."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ....system.packaged import Version, version_in
from .registry import Record, Registry, config_of

SILENT: Final = (2, 1, 76)  # the first with session files, which do not yet name the version


def oldest_running(environ: Mapping[str, str]) -> Version | None:
    """Return the oldest version that is running: all others know its hook events, too."""
    return min(versions_of(registry_of(config_of(environ)).records), default=None)


def registry_of(folder: Path) -> Registry:
    """Return the session files of a config directory, read once."""
    registry = Registry([folder])
    registry.check(time.time())
    return registry


def versions_of(records: Mapping[int, Record]) -> dict[Version, int]:
    """Count the sessions of each version, newest first."""
    named = {pid: version_in(str(record.get("version"))) for pid, record in records.items()}
    silent = {pid: None if "status" in record else SILENT for pid, record in records.items()}
    known = [version for pid, named_ in named.items() if (version := named_ or silent[pid])]
    return {version: known.count(version) for version in sorted({*known}, reverse=True)}
