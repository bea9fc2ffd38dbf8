"""What programs of this machine ask of others in the fleet, and of the fleet itself."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.request import refusal
from ..storage import machines
from ..storage.machines import Mailbox
from ..system.watch import Watch

if TYPE_CHECKING:
    from ..fleet.service import Service


class Outgoing:
    """Passes on requests while a service runs."""

    def __init__(self, home: Path, watch: Watch, service: Service) -> None:
        self._home, self._watch, self._service = home, watch, service
        self._mailboxes: dict[str, Mailbox] = {}
        self._linked: Collection[str] = ()

    def listen(self, followed: Iterable[str]) -> None:
        """Watch for requests to machines that are followed now."""
        wanted = {machines.OURS, *followed}
        for machine in self._mailboxes.keys() - wanted:
            del self._mailboxes[machine]
        for machine in wanted - self._mailboxes.keys():
            with contextlib.suppress(OSError):
                mailbox = Mailbox(self._home, machine)
                self._watch.add(mailbox.asked, arrivals=True)
                self._mailboxes[machine] = mailbox
                self.send()  # including requests from before the watch started

    def send(self) -> None:
        """Pass on what waits, except to a machine that a link follows by now: that takes it."""
        own = self._service.joined.machine
        with contextlib.suppress(OSError):  # then it stays as it was
            self._linked = machines.stored(self._home).all
        for machine, mailbox in self._mailboxes.items():
            if machine in self._linked:
                continue
            for name, request in mailbox.take():
                do, _ = str(request.pop("do", "")), request.pop("id", None)
                to = own if machine == machines.OURS else machine
                asking = self._service.ask(to, do, request)
                asking.add_done_callback(partial(_reply, mailbox, name))


def _reply(mailbox: Mailbox, name: str, done: concurrent.futures.Future[Mapping[str, Any]]) -> None:
    if done.cancelled() or done.exception() is not None:
        mailbox.reply(name, refusal("the fleet was left before it replied"))
    else:
        mailbox.reply(name, done.result())
