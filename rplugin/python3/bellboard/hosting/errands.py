"""Carry out what a user wants of one session: stop it, show it, go there, or answer it.

Nothing is guessed.  A process is identified by its id and start time, and must be proven to be the
session's.  The reply says what happened.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from ..core.published import publish
from ..core.request import Given, Reply, refusal
from ..core.session import is_far
from ..core.untrusted import list_of
from ..system.failures import Declined
from ..system.processes import is_alive, runs
from ..system.reach import reach, sleep
from ..witnesses.proof import objection
from .answering import Answering
from .asked import RequestReader

EXIT_PATIENCE: Final = 5.0  # seconds for a process to exit: the CLI still writes its last lines
POLL: Final = 0.05
MOST_CLIENTS: Final = 200  # terminals of another machine to look for


class Errands:
    """Carries out what is wanted of sessions; for `report` and `by`, see `Answering`."""

    def __init__(
        self, requests: RequestReader, report: Callable[[Mapping[str, Any]], str], by: str = ""
    ) -> None:
        self._requests, answering = requests, Answering(requests, report, by)
        self._known: dict[str, Callable[[Given], Awaitable[Reply]]] = {
            "request": answering.show,
            "answer": answering.answer,
            "stop": self._stop,
            "show": self._show,
            "goto": self._goto,
        }

    async def do(self, what: str, given: Given) -> Reply:
        """Carry out a request; return `ok`, and `why` if it failed."""
        return await in_reply(self._do(what, given))

    async def _do(self, what: str, given: Given) -> Reply:
        sid = str(given.get("session_id"))
        s = self._requests.session(sid) if is_far(sid) else None
        if s is not None and s.machine:
            from .other_machine import OtherMachines

            return await OtherMachines(self._requests.spool.home).do(what, s, given)
        if what not in self._known:
            raise Declined(f"unknown request: {what}")
        return await self._known[what](given)

    async def _stop(self, given: Given) -> Reply:
        """Stop the process that the user was shown, if it is proven to be the session's."""
        s, pid = self._requests.named(given), given.get("pid")
        process = s.processes.get(pid) if type(pid) is int else None
        if process is None:
            raise Declined(f"it no longer runs as process {pid}")
        with _hold(process.pid) as send:
            if not is_alive(process.pid):
                raise Declined(f"process {pid} has already ended")
            if why := await reach(partial(objection, s, process, self._requests.environ)):
                raise Declined(why)
            try:
                send(signal.SIGTERM)
            except OSError as error:
                raise Declined(f"cannot stop process {pid}: {error.strerror}") from None
        until = time.monotonic() + EXIT_PATIENCE
        while runs(process.pid, process.started) and is_alive(process.pid):
            if time.monotonic() > until:
                raise Declined(f"process {pid} has not stopped yet; to force it: kill -9 {pid}")
            await sleep(POLL)
        return {"text": f"process {pid} has ended"}

    async def _show(self, given: Given) -> Reply:
        """Show the window of its terminal program that it runs in."""
        from ..system import kitty

        s = self._requests.named(given)
        if not (s.kitty and s.tty):
            raise Declined("its terminal cannot be reached from here")
        try:
            await reach(partial(kitty.show, s.kitty, s.tty))
        except kitty.KittyFailed as reason:
            raise Declined(str(reason)) from None
        return {}

    async def _goto(self, given: Given) -> Reply:
        """Show it on the terminal here that a user of another machine sits at, if there is one.

        `clients` are the ssh connections that have a terminal on that machine.
        """
        from . import jump

        s, clients = self._requests.named(given), list_of(given.get("clients"))
        ends = [end for end in clients[:MOST_CLIENTS] if isinstance(end, str)]
        try:
            end = await reach(partial(jump.arrive, publish(s), ends))
        except jump.JumpFailed as reason:
            raise Declined(str(reason)) from None
        return {"client": end}


async def in_reply(errand: Awaitable[Reply]) -> Reply:
    """Return the reply of an errand with `ok`, and `why` if it was declined."""
    try:
        return {"ok": True, **await errand}
    except Declined as reason:
        return refusal(str(reason))


@contextmanager
def _hold(pid: int) -> Any:
    """Yield a function that signals a process, safe against id reuse where the system allows."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield lambda number: os.kill(pid, number)
        return
    try:
        yield lambda number: signal.pidfd_send_signal(fd, number)
    finally:
        os.close(fd)
