"""Carry out a user's request about one session: stop it, answer its question, or show it.

Nothing is guessed.  A process is identified by its id and start time, and must be proven to be the
session's; a terminal is the device of that process.  Before anything is sent, the session file and
the screen are checked again, and a request that the user could not see in full is never answered.
The reply says what happened.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from ..agents.claude_code.dialect.dialog import READY, Dialog, dialog_of
from ..agents.claude_code.witnesses.registry import LIMIT, config_of
from ..core.events import AGENT
from ..core.session import Block, Session, question_of
from ..core.shellwords import HIDDEN
from ..system import kitty
from ..system.far import Far
from ..system.files import Elsewhere, decoded, read, stay_near
from ..system.mounts import Mounts
from ..system.processes import is_alive, runs
from ..system.tmux import Tmux
from ..witnesses.proof import objection

PATIENCE: Final = 5.0  # seconds for a process to exit: the CLI still writes its last lines
POLL: Final = 0.05
DEADLINE: Final = 3.0  # seconds; a check takes 1 ms, or 200 ms in another process

T = TypeVar("T")

Request = Mapping[str, Any]
Reply = dict[str, Any]


class Declined(Exception):
    """The request is not carried out; the text says why."""


class Errands:
    """Carries out requests; `session` folds pending events and returns a session."""

    def __init__(
        self,
        session: Callable[[str], Session | None],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._session = session
        self._environ = environ

    async def do(self, what: str, request: Request) -> Reply:
        """Carry out a request; return `ok`, and `why` if it failed."""
        errands = {"stop": self.stop, "answer": self.answer, "show": self.show}
        try:
            if what not in errands:
                raise Declined(f"unknown request: {what}")
            return {"ok": True, **await errands[what](request)}
        except Declined as reason:
            return {"ok": False, "why": str(reason)}

    def _known(self, request: Request) -> Session:
        s = self._session(str(request.get("session_id")))
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
        configs = (config_of(self._environ),)
        with _hold(process.pid) as send:
            if not is_alive(process.pid):
                raise Declined(f"process {pid} has already ended")
            if why := await beside(partial(objection, s.session_id, s.agent, process, configs)):
                raise Declined(why)
            try:
                send(signal.SIGTERM)
            except OSError as error:
                raise Declined(f"cannot stop process {pid}: {error.strerror}") from None
        until = time.monotonic() + PATIENCE
        while runs(process.pid, process.started) and is_alive(process.pid):
            if time.monotonic() > until:
                raise Declined(f"process {pid} was asked to stop but is still running")
            await asyncio.sleep(POLL)
        return {"text": f"process {pid} has ended"}

    # ------------------------------------------------------------ answer

    async def answer(self, request: Request) -> Reply:
        """Type yes or no into a tmux pane, or let the editor that sent the screen type it.

        The editor gets the key, and the rows that its terminal must still show.
        """
        s, block = await self._asked(request)
        screen, yes = request.get("screen"), bool(request.get("yes"))
        if isinstance(screen, list):
            dialog = _dialog([str(row) for row in screen], s, block)
            return {"key": dialog.key(yes), "rows": dialog.whole}
        tmux = await self._pane(s)
        s, block = await self._asked(request)
        dialog = _dialog(await asyncio.to_thread(tmux.capture, s.pane), s, block)
        if not await asyncio.to_thread(tmux.type, s.pane, dialog.key(yes)):
            raise Declined(f"tmux did not take the key: {tmux.why}")
        return {}

    async def _asked(self, request: Request) -> tuple[Session, Block]:
        """Return the question that the user saw, if it is the only one still open."""
        s = self._known(request)
        block = question_of(s)
        if block is None:
            raise Declined("it has already been answered")
        if (block.since, block.detail) != (request.get("asked_at"), request.get("detail") or ""):
            raise Declined("it now asks something else")
        if sum(1 for b in s.blocks.values() if b.shown) > 1:
            raise Declined("it asks several things at once; jump there to answer")
        if block.asks != "permission" or block.inferred or s.agent != AGENT:
            raise Declined("it is not a yes-or-no question; jump there to answer")
        if not block.detail or block.detail.endswith("…") or HIDDEN in block.detail:
            raise Declined("the request is not shown in full here; jump there to answer")
        if time.time() < block.since + READY:
            raise Declined("it has only just asked; try again")
        folder = Path(s.config_dir or config_of(self._environ), "sessions")
        files = [folder / f"{pid}.json" for pid in s.processes]
        if await beside(partial(went_on, s.session_id, block.since, files)):
            raise Declined("it has already been answered")
        return s, block

    async def _pane(self, s: Session) -> Tmux:
        """Return the tmux server of the session's own pane."""
        if not s.tty:
            raise Declined("its terminal is unknown")
        if not (s.tmux.startswith("/") and s.pane):
            raise Declined(f"its terminal {s.tty} is neither in this Neovim nor in tmux")
        tmux = Tmux(s.tmux)
        panes = await asyncio.to_thread(tmux.panes) or ()
        if not any(p.id == s.pane and p.tty == s.tty and not p.dead for p in panes):
            raise Declined(f"tmux pane {s.pane} is not its terminal {s.tty}")
        return tmux

    # ------------------------------------------------------------ show

    async def show(self, told: Request) -> Reply:
        """Show the window of its terminal program that it runs in."""
        s = self._known(told)
        if not (s.kitty and s.tty):
            raise Declined("its terminal cannot be reached from here")
        try:
            await beside(partial(kitty.show, s.kitty, s.tty))
        except kitty.Failed as reason:
            raise Declined(str(reason)) from None
        return {}


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


async def beside(work: Callable[[], T]) -> T:
    """Run `work` in a daemon thread: reading a foreign file may hang, and must not delay exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(finish: Callable[[Any], None], result: object) -> None:
        if not done.done():
            finish(result)

    def run() -> None:
        try:
            what: tuple[Callable[[Any], None], object] = done.set_result, _reached(work)
        except Exception as error:
            what = done.set_exception, error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, *what)

    threading.Thread(target=run, name="bellboard errand", daemon=True).start()
    try:
        return await asyncio.wait_for(done, DEADLINE)
    except (TimeoutError, asyncio.TimeoutError):
        raise Declined("a folder that this needs does not answer") from None


def _reached(work: Callable[[], T]) -> T:
    stay_near(Mounts())
    try:
        return work()
    except Elsewhere:  # on a mount where even a thread could hang for ever
        far = Far()
        try:
            return far.call(work)
        finally:
            far.close()


def went_on(session_id: str, since: float, files: Sequence[Path]) -> bool:
    """Return whether a session file shows work after `since`; it does so before any hook."""
    for file in files:
        record = _record(file)
        at = record.get("statusUpdatedAt")
        is_at_work = record.get("status", "waiting") != "waiting"
        is_later = isinstance(at, int | float) and at >= since * 1000
        if record.get("sessionId") == session_id and is_at_work and is_later:
            return True
    return False


def _dialog(screen: Sequence[str], s: Session, block: Block) -> Dialog:
    dialog = dialog_of(screen)
    if dialog is None:
        raise Declined("its terminal does not show the question")
    if not dialog.asks:
        raise Declined("its terminal does not show the whole request; jump there to answer")
    folders = [folder for folder in (s.cwd, s.project_dir) if folder]
    if not dialog.is_about(block.detail, block.digest, folders):
        raise Declined("its terminal shows a different request")
    return dialog


def _record(path: Path) -> dict[str, object]:
    try:
        return decoded(read(path, LIMIT)[0]) or {}
    except OSError:
        return {}
