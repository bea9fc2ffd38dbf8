"""What a person asks a host to do to one session: to stop it, or to answer its question.

Nothing is done by guess.  A process is known by its number and its start, and has to be proven the
session's; a terminal is the device of that process.  What was true when the person was asked is
looked at once more, in the session's own file and on its screen, before anything is sent; and what
the person could not see whole is not answered at all.  The reply says what happened.
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
from ..core.session import Block, Session, question_of
from ..core.shellwords import HIDDEN
from ..system.far import Far
from ..system.files import Elsewhere, decoded, read, stay_near
from ..system.mounts import Mounts
from ..system.processes import is_alive, runs
from ..system.tmux import Tmux
from ..witnesses.proof import objection

PATIENCE: Final = 5.0  # seconds that a process may take to end: the CLI writes its last lines
LOOK: Final = 0.05
DEADLINE: Final = 3.0  # seconds; a look takes a millisecond, where another process looks 200

T = TypeVar("T")

Told = Mapping[str, Any]
Reply = dict[str, Any]


class Refused(Exception):
    """It is not as the person saw it; the text says in what."""


class Errands:
    """`session` folds all that waits, and returns what is known then."""

    def __init__(
        self,
        session: Callable[[str], Session | None],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._session = session
        self._environ = environ

    async def do(self, what: str, told: Told) -> Reply:
        """Do one, and say how it went: `ok`, and `why` if it is not."""
        errands = {"stop": self.stop, "answer": self.answer}
        try:
            if what not in errands:
                raise Refused(f"no such errand: {what}")
            return {"ok": True, **await errands[what](told)}
        except Refused as refusal:
            return {"ok": False, "why": str(refusal)}

    def _known(self, told: Told) -> Session:
        s = self._session(str(told.get("session_id")))
        if s is None:
            raise Refused("there is no such session any more")
        return s

    # ------------------------------------------------------------ its process

    async def stop(self, told: Told) -> Reply:
        """End the process that the person was shown, and that is proven to be the session's."""
        s, pid = self._known(told), told.get("pid")
        process = s.processes.get(pid) if type(pid) is int else None
        if process is None:
            raise Refused(f"it does not run as process {pid} any more")
        configs = (config_of(self._environ),)
        with _hold(process.pid) as send:
            if not is_alive(process.pid):
                raise Refused(f"process {pid} has ended already")
            if why := await beside(partial(objection, s.session_id, s.agent, process, configs)):
                raise Refused(why)
            try:
                send(signal.SIGTERM)
            except OSError as error:
                raise Refused(f"process {pid} cannot be stopped: {error.strerror}") from None
        until = time.monotonic() + PATIENCE
        while runs(process.pid, process.started) and is_alive(process.pid):
            if time.monotonic() > until:
                raise Refused(f"process {pid} was asked to end, and still runs")
            await asyncio.sleep(LOOK)
        return {"text": f"process {pid} has ended"}

    # ------------------------------------------------------------ its question

    async def answer(self, told: Told) -> Reply:
        """Put yes or no into its terminal: a tmux pane here, else the editor that gave the screen.

        An editor gets the key and the rows that must still be there when it sends it.
        """
        s, block = await self._asked(told)
        screen, yes = told.get("screen"), bool(told.get("yes"))
        if isinstance(screen, list):
            dialog = _dialog([str(row) for row in screen], s, block)
            return {"key": dialog.key(yes), "rows": dialog.whole}
        tmux = await self._pane(s)
        s, block = await self._asked(told)
        dialog = _dialog(await asyncio.to_thread(tmux.capture, s.pane), s, block)
        if not await asyncio.to_thread(tmux.type, s.pane, dialog.key(yes)):
            raise Refused(f"tmux did not take the key: {tmux.why}")
        return {}

    async def _asked(self, told: Told) -> tuple[Session, Block]:
        """The very question that the person saw, if it alone still waits."""
        s = self._known(told)
        block = question_of(s)
        if block is None:
            raise Refused("it has been answered")
        if (block.since, block.detail) != (told.get("asked_at"), told.get("detail") or ""):
            raise Refused("it asks something else now")
        if sum(1 for b in s.blocks.values() if b.shown) > 1:
            raise Refused("it asks several things at once")
        if block.asks != "permission" or block.inferred or s.agent != "claude":
            raise Refused("its question is not one of yes and no")
        if not block.detail or block.detail.endswith("…") or HIDDEN in block.detail:
            raise Refused("what it asks is not shown whole here; go there")
        if time.time() < block.since + READY:
            raise Refused("it has only just asked; try again")
        folder = Path(s.config_dir or config_of(self._environ), "sessions")
        files = [folder / f"{pid}.json" for pid in s.processes]
        if await beside(partial(went_on, s.session_id, block.since, files)):
            raise Refused("it has been answered")
        return s, block

    async def _pane(self, s: Session) -> Tmux:
        """The tmux server of the pane that is the session's own."""
        if not s.tty:
            raise Refused("its terminal is not known")
        if not (s.tmux.startswith("/") and s.pane):
            raise Refused(f"its terminal {s.tty} is neither in this Neovim nor in tmux")
        tmux = Tmux(s.tmux)
        panes = await asyncio.to_thread(tmux.panes) or ()
        if not any(p.id == s.pane and p.tty == s.tty and not p.dead for p in panes):
            raise Refused(f"tmux pane {s.pane} is not its terminal {s.tty}")
        return tmux


@contextmanager
def _hold(pid: int) -> Any:
    """How to signal a process that cannot become another one meanwhile, where the system can."""
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
    """Do it on a thread that delays nobody's exit: a look at a file of others may hang."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(tell: Callable[[Any], None], told: object) -> None:
        if not done.done():
            tell(told)

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
        raise Refused("a folder that this needs does not answer") from None


def _reached(work: Callable[[], T]) -> T:
    stay_near(Mounts())
    try:
        return work()
    except Elsewhere:  # where a thread could not even be killed
        far = Far()
        try:
            return far.call(work)
        finally:
            far.close()


def went_on(session_id: str, since: float, files: Sequence[Path]) -> bool:
    """Whether one of the session's own files says so, which it does before any hook."""
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
        raise Refused("its terminal does not show that question")
    if not dialog.asks:
        raise Refused("its terminal does not show all that it asks; go there")
    folders = [folder for folder in (s.cwd, s.project_dir) if folder]
    if not dialog.is_about(block.detail, block.digest, folders):
        raise Refused("its terminal does not show just that question")
    return dialog


def _record(path: Path) -> dict[str, object]:
    try:
        return decoded(read(path, LIMIT)[0]) or {}
    except OSError:
        return {}
