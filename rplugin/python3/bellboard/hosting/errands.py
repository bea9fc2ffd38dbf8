"""Carry out what a user wants of one session: stop it, show it, or answer it (`answering.py`).

Nothing is guessed.  A process is identified by its id and start time, and must be proven to be the
session's.  The reply says what happened.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from ..core.published import publish
from ..core.session import Session
from ..system.processes import is_alive, runs
from ..witnesses.proof import objection
from .answering import Answering, Desk
from .beside import Declined, beside, pause

PATIENCE: Final = 5.0  # seconds for a process to exit: the CLI still writes its last lines
POLL: Final = 0.05
DEADLINE: Final = 3.0  # seconds; a check takes 1 ms, or 200 ms in another process
MOST_CLIENTS: Final = 200  # terminals of another machine to look for

T = TypeVar("T")

Request = Mapping[str, Any]
Reply = dict[str, Any]


class Errands:
    """Carries out the errands of an editor; `by` names it."""

    def __init__(self, desk: Desk, by: str = "", environ: Mapping[str, str] = os.environ) -> None:
        self._desk = desk
        self._environ = environ
        self._answering = Answering(desk, by, environ)

    async def do(self, what: str, request: Request) -> Reply:
        """Carry out a request; return `ok`, and `why` if it failed."""
        answering = self._answering
        sid = str(request.get("session_id"))
        s = self._desk.session(sid) if "/" in sid else None
        if s is not None and s.machine:
            return await self._elsewhere(what, s, request)
        errands = {"stop": self.stop, "show": self.show, "goto": self.arrive}
        errands |= {"request": answering.request, "answer": answering.answer}
        try:
            if what not in errands:
                raise Declined(f"unknown request: {what}")
            return {"ok": True, **await errands[what](request)}
        except Declined as reason:
            return {"ok": False, "why": str(reason)}

    async def _elsewhere(self, what: str, s: Session, request: Request) -> Reply:
        from .elsewhere import Elsewhere

        try:
            return {"ok": True, **await Elsewhere(self._desk.spool.home).do(what, s, request)}
        except Declined as reason:
            return {"ok": False, "why": str(reason)}

    def _known(self, request: Request) -> Session:
        s = self._desk.session(str(request.get("session_id")))
        if s is None:
            raise Declined("the session no longer exists")
        return s

    # ------------------------------------------------------------ stop

    async def stop(self, request: Request) -> Reply:
        """Stop the process that the user was shown, if it is proven to be the session's."""
        s, pid = self._known(request), request.get("pid")
        process = s.processes.get(pid) if type(pid) is int else None
        if process is None:
            raise Declined(f"it no longer runs as process {pid}")
        with _hold(process.pid) as send:
            if not is_alive(process.pid):
                raise Declined(f"process {pid} has already ended")
            if why := await beside(partial(objection, s, process, self._environ)):
                raise Declined(why)
            try:
                send(signal.SIGTERM)
            except OSError as error:
                raise Declined(f"cannot stop process {pid}: {error.strerror}") from None
        until = time.monotonic() + PATIENCE
        while runs(process.pid, process.started) and is_alive(process.pid):
            if time.monotonic() > until:
                raise Declined(f"process {pid} was asked to stop but is still running")
            await pause(POLL)
        return {"text": f"process {pid} has ended"}

    # ------------------------------------------------------------ show

    async def show(self, told: Request) -> Reply:
        """Show the window of its terminal program that it runs in."""
        from ..system import kitty

        s = self._known(told)
        if not (s.kitty and s.tty):
            raise Declined("its terminal cannot be reached from here")
        try:
            await beside(partial(kitty.show, s.kitty, s.tty))
        except kitty.Failed as reason:
            raise Declined(str(reason)) from None
        return {}

    # ------------------------------------------------------------ goto

    async def arrive(self, told: Request) -> Reply:
        """Show it on the terminal here that a user of another machine sits at, if there is one.

        `clients` are the ssh connections that have a terminal on that machine.
        """
        from . import jump

        s, given = self._known(told), told.get("clients")
        listed = given[:MOST_CLIENTS] if isinstance(given, list) else []
        ends = [end for end in listed if isinstance(end, str)]
        try:
            end = await beside(partial(jump.arrive, publish(s), ends))
        except jump.JumpFailed as reason:
            raise Declined(str(reason)) from None
        return {"client": end}


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
