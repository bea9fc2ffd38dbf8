"""Carry out what a user wants of one session: answer, prompt, stop, show or read it.

Nothing is guessed.  A process is identified by its id and start time, and must be proven to be the
session's.  The reply says what happened.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from ..core.evidence import TraceLine
from ..core.published import Published, publish
from ..core.request import Given, Reply, refusal, with_keys
from ..core.session import is_far
from ..core.untrusted import list_of, object_of, text_of
from ..system.failures import Declined
from ..system.processes import is_alive, runs
from ..system.reach import reach, sleep
from ..witnesses.proof import objection
from .answering import Answering
from .asked import RequestReader

EXIT_PATIENCE: Final = 5.0  # seconds for a process to exit: the CLI still writes its last lines
POLL: Final = 0.05
GIT_PATIENCE: Final = 12.0  # seconds to compare a large working tree; a usual one takes 50 ms


class Errands:
    """Carries out what is wanted of sessions; for `report`, `by` and `agent`, see `Answering`."""

    def __init__(
        self,
        requests: RequestReader,
        report: Callable[[Mapping[str, Any]], str],
        by: str = "",
        agent: Callable[[], str] | None = None,
    ) -> None:
        self._requests, self._report, self._by = requests, report, by
        self._answering = answering = Answering(requests, report, by, agent)
        self._known: dict[str, Callable[[Given], Awaitable[Reply]]] = {
            "request": answering.show,
            "answer": answering.answer,
            "send": self._send,
            "interrupt": self._interrupt,
            "stop": self._stop,
            "goto": self._goto,
            "pane": self._pane,
            "names": self._names,
            "preview": self._preview,
            "turn": self._turn,
            "diff": self._diff,
        }

    async def do(self, what: str, given: Given) -> Reply:
        """Carry out a request; return `ok`, and `why` if it failed."""
        reply = await in_reply(self._do(what, given))
        return with_keys(reply) if what == "request" else reply

    async def _do(self, what: str, given: Given) -> Reply:
        if what == "answer":
            await self._answering.admit(given)
        sid = str(given.get("session_id"))
        s = self._requests.session(sid) if is_far(sid) else None
        if s is not None and s.machine:
            from .other_machine import OtherMachines

            reply = await OtherMachines(self._requests.spool.home).do(what, s, given)
            if what != "goto" or "place" not in reply:
                return reply
            return await self._shown({"session_id": sid, **reply["place"]}, given)
        if what not in self._known:
            raise Declined(f"unknown request: {what}")
        return await self._known[what](given)

    async def _send(self, given: Given) -> Reply:
        from .sending import Sending

        return await Sending(self._requests).send(given, self._submits)

    def _submits(self, session_id: str) -> None:
        """Report that a prompt is about to be submitted, so that the rest before it is old."""
        said = TraceLine(session_id=session_id, by=self._by)
        with suppress(ValueError, OSError):  # it is sent, whatever can be written here
            self._report(said.line(time.time(), "submit"))

    async def _interrupt(self, given: Given) -> Reply:
        from .sending import Sending

        return await Sending(self._requests).interrupt(given)

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

    async def _goto(self, given: Given) -> Reply:
        return await self._shown(publish(self._requests.named(given)), given)

    async def _shown(self, p: Published, given: Given) -> Reply:
        from . import jump

        return await reach(partial(jump.show, p, jump.asker_of(given, self._requests.environ)))

    async def _pane(self, given: Given) -> Reply:
        """Go back to the pane that a jump from another Neovim began in."""
        from ..system.tmux import has_pane
        from . import jump

        place = {key: text_of(object_of(given), key) for key in ("tmux", "pane")}
        if not has_pane(place):
            raise Declined("it is not known where the jump began")
        asker = jump.asker_of(given, self._requests.environ)
        return await reach(partial(jump.to_pane, place, asker))

    async def _names(self, given: Given) -> Reply:
        """Return what people call the panes of sessions."""
        from ..system.tmux import names_of

        found = (self._requests.session(str(sid)) for sid in list_of(given.get("sessions")))
        places = {s.session_id: {"tmux": s.tmux, "pane": s.pane} for s in found if s is not None}
        return {"names": await reach(partial(names_of, places))}

    async def _preview(self, given: Given) -> Reply:
        from .preview import preview

        return await reach(partial(preview, publish(self._requests.named(given))))

    async def _turn(self, given: Given) -> Reply:
        from .last_turn import show

        s, environ = self._requests.named(given), self._requests.environ
        return await reach(partial(show, s, environ), within=GIT_PATIENCE)

    async def _diff(self, given: Given) -> Reply:
        from .last_turn import diff

        s, path = self._requests.named(given), text_of(object_of(given), "path")
        return await reach(partial(diff, s, path, self._requests.environ), within=GIT_PATIENCE)


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
