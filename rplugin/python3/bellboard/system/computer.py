"""Identify a machine and its current boot, without revealing which machine it is."""

from __future__ import annotations

import hashlib
import platform
from typing import Final

from .files import read
from .processes import started_of

NAMES: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
BOOT: Final = "/proc/sys/kernel/random/boot_id"
FIRST: Final = 1  # the process that everything else in a machine, or a container, descends from
LIMIT: Final = 4096
DIGITS: Final = 16


def machine_id() -> str:
    """Return an id that stays the same for a machine or container; it cannot be traced back."""
    return _hash("machine", next(filter(None, map(_text, NAMES)), ""), platform.node())


def boot_id() -> str:
    """Return an id that changes when the machine or container restarts."""
    return _hash("boot", _text(BOOT), started_of(FIRST))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(("bellboard", *parts)).encode()).hexdigest()[:DIGITS]


def _text(path: str) -> str:
    try:
        return read(path, LIMIT, ours=False)[0].decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
