"""The first line of a feed: facts about this machine."""

from __future__ import annotations

import contextlib
import getpass
import os
import time
from pathlib import Path

from ..agents.installing.hook_record import hooked_files
from ..agents.registry import installable
from ..core.feed import Hello
from ..core.text import line
from ..core.version import VERSION
from ..storage.spool import Spool
from ..system.clock import boot_id, machine_id


def hello(home: Path) -> Hello:
    """Return the first message for a reader; this reads the settings of all CLIs."""
    user, hooks, hosts = "", False, 0
    with contextlib.suppress(KeyError, OSError, ImportError):  # a user without a name
        user = line(getpass.getuser())
    with contextlib.suppress(OSError, ValueError):
        hooks = bool(hooked_files(home))
        hosts = len(Spool(home).hosts.alive())
    agents = tuple(x.key for x in installable() if x.is_used(os.environ))
    return Hello(VERSION, machine_id(), boot_id(), time.time(), hooks, agents, hosts, user)
