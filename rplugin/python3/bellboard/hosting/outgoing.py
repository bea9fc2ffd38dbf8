"""What programs of this machine ask of others in the fleet, and of the fleet itself."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..storage import machines
from ..storage.asks import Asks
from ..system.watch import Watch

if TYPE_CHECKING:
    from ..fleet.service import Service


class Outgoing:
    """Passes on requests while a service runs."""

    def __init__(self, home: Path, watch: Watch, service: Service) -> None:
        self._home, self._watch, self._service = home, watch, service
        self._asks: dict[str, Asks] = {}

    def listen(self, followed: Iterable[str]) -> None:
        """Watch for requests to machines that are followed now."""
        for machine in {machines.OURS, *followed} - self._asks.keys():
            with contextlib.suppress(OSError):
                asks = Asks(self._home, machine)
                self._watch.add(asks.asked, arrivals=True)
                self._asks[machine] = asks
                asks.sweep()
                self.send()  # also what came before the watch

    def send(self) -> None:
        """Pass on what waits."""
        own = self._service.joined.machine
        for machine, asks in self._asks.items():
            for name, request in asks.take():
                do, _ = str(request.pop("do", "")), request.pop("id", None)
                to = own if machine == machines.OURS else machine
                asking = self._service.ask(to, do, request)
                asking.add_done_callback(partial(_reply, asks, name))


def _reply(asks: Asks, name: str, done: concurrent.futures.Future[Mapping[str, Any]]) -> None:
    if done.cancelled() or done.exception() is not None:
        asks.reply(name, {"ok": False, "why": "the fleet was left before it replied"})
    else:
        asks.reply(name, done.result())
