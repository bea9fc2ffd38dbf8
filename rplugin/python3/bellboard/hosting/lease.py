"""Who notifies in a fleet: a machine with a desktop, and otherwise the machine of the session.

This machine leaves notifications to another one with a screen, unless it has one itself.  Hosts
learn of that as they do when somebody reads the feed (`presence.py`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..system.deaths import Deaths
from .connection import Connection
from .notify import FOLLOWERS, SCREENS, note, present

if TYPE_CHECKING:
    from ..fleet.service import Service

WHY: Final = "fleet"


class Owner(Protocol):
    """The host that is in a fleet."""

    pid: int
    connection: Connection

    def report(self, line: Mapping[str, Any]) -> str: ...


class Lease:
    """Keeps the service and the hosts of this machine informed of each other's screens."""

    def __init__(self, host: Owner) -> None:
        self._host = host

    def update(self, service: Service, deaths: Deaths) -> None:
        """Report to the fleet whether somebody sits here, and to the hosts whether to be silent."""
        nobody: dict[int, str] = {}
        here = self._host.connection.use(lambda shared: present(shared.store, SCREENS), nobody)
        for pid, started in here.items():
            deaths.watch(pid, started)
        service.show_screen(bool(here))
        self._note(service.is_followed and not here)

    def end(self) -> None:
        """Note that this machine left the fleet, or that another host now takes part."""
        self._note(False)

    def _note(self, is_left: bool) -> None:
        host, now = self._host, time.time()
        if host.connection.use(
            lambda shared: note(shared.store, FOLLOWERS, host.pid, WHY, is_left, now), False
        ):
            with contextlib.suppress(ValueError):
                host.report({"tick": {}})  # makes the other hosts check again
