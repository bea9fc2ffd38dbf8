"""The time since this machine was started, and which machine and boot this is."""

from __future__ import annotations

import platform
import sys
import time
from functools import partial
from typing import Any, Final

from .files import read
from .processes import started_of

# A clock that also runs while this machine sleeps, as `time.monotonic` does not on Linux.
#
# Connections may be dead after that, which nobody reports.


clock: Final = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


# Identify a machine and its current boot, without revealing which machine it is.


NAMES: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
BOOT: Final = "/proc/sys/kernel/random/boot_id"
#: macOS: a value of `sysctl`.  (Its `kern.uuid` is that of the kernel, the same on many Macs.)
BOOT_OF_MAC: Final = b"kern.bootsessionuuid"
FIRST: Final = 1  # the process that everything else in a machine, or a container, descends from
LIMIT: Final = 4096
DIGITS: Final = 16


def machine_id() -> str:
    """Return an id that stays the same for a machine or container; it cannot be traced back."""
    if sys.platform == "darwin" and (mac := uuid_of_mac(_libc())):
        return _hash("machine", mac)  # without its name, which the network may change
    return _hash("machine", next(filter(None, map(_text, NAMES)), ""), platform.node())


def boot_id() -> str:
    """Return an id that changes when the machine or container restarts."""
    boot = boot_of_mac(_libc()) if sys.platform == "darwin" else _text(BOOT)
    return _hash("boot", boot, started_of(FIRST))


def uuid_of_mac(libc: Any) -> str:
    """Return the id of the hardware that macOS gives; "" if it gives none."""
    import ctypes

    uuid, second = ctypes.create_string_buffer(16), (ctypes.c_long * 2)(1, 0)
    try:
        failed = libc.gethostuuid(uuid, second)
    except AttributeError:
        return ""
    return "" if failed else uuid.raw.hex()


def boot_of_mac(libc: Any) -> str:
    """Return the id that macOS gives a boot; "" if it gives none."""
    import ctypes

    text = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(text))
    try:
        failed = libc.sysctlbyname(BOOT_OF_MAC, text, ctypes.byref(size), None, ctypes.c_size_t(0))
    except AttributeError:
        return ""
    return "" if failed else text.value.decode("ascii", "replace")


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None)


def _hash(*parts: str) -> str:
    import hashlib

    return hashlib.sha256("\0".join(("bellboard", *parts)).encode()).hexdigest()[:DIGITS]


def _text(path: str) -> str:
    try:
        return read(path, LIMIT, ours=False)[0].decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
