"""What a person asks a host to do to one session: to stop it, or to answer its question.

Nothing is done by guess.  A process is known by its number and its start, a terminal by the
device of that process; and what was true when the person was asked is looked at once more, in the
session's own file and on its screen, before anything is sent.  The answer says what happened.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ..core.session import Block, Session, question_of
from ..panes.tmux import Tmux
from ..witnesses.processes import is_alive, runs, started_of
from ..witnesses.registry import LIMIT, config_of
from ..witnesses.witness import decoded, read
from .dialog import READY, Dialog, dialog_of

PATIENCE: Final = 5.0  # seconds that a process may take to end: the CLI writes its last lines
LOOK: Final = 0.05

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
        """End the process that the person was shown, and no other of that number."""
        pid = told.get("pid")
        process = self._known(told).processes.get(pid) if type(pid) is int else None
        if process is None:
            raise Refused(f"it does not run as process {pid} any more")
        if not process.started:
            raise Refused(f"it is not known since when process {pid} runs: it may be another's")
        with _hold(process.pid) as send:
            if not runs(process.pid, process.started):
                raise Refused(f"process {pid} has ended already")
            if started_of(process.pid) != process.started:
                raise Refused(f"process {pid} is another one now")
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
        s, block = self._asked(told)
        screen, yes = told.get("screen"), bool(told.get("yes"))
        if isinstance(screen, list):
            dialog = _dialog([str(row) for row in screen], block)
            return {"key": dialog.key(yes), "rows": dialog.rows}
        tmux = await self._pane(s)
        dialog = _dialog(await asyncio.to_thread(tmux.capture, s.pane), block)
        self._asked(told)
        if not await asyncio.to_thread(tmux.type, s.pane, dialog.key(yes)):
            raise Refused(f"tmux did not take the key: {tmux.why}")
        return {}

    def _asked(self, told: Told) -> tuple[Session, Block]:
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
        if time.time() < block.since + READY:
            raise Refused("it has only just asked; try again")
        if any(self._went_on(s, pid, block.since) for pid in s.processes):
            raise Refused("it has been answered")
        return s, block

    def _went_on(self, s: Session, pid: int, since: float) -> bool:
        """Whether the session's own file says so, which it does before any hook."""
        folder = s.config_dir or config_of(self._environ)
        record = _record(Path(folder, "sessions", f"{pid}.json"))
        at = record.get("statusUpdatedAt")
        return (
            record.get("sessionId") == s.session_id
            and record.get("status", "waiting") != "waiting"
            and isinstance(at, int | float)
            and at >= since * 1000
        )

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


def _dialog(screen: Sequence[str], block: Block) -> Dialog:
    dialog = dialog_of(screen)
    if dialog is None or not dialog.is_about(block.detail):
        raise Refused("its terminal does not show that question")
    return dialog


def _record(path: Path) -> dict[str, object]:
    try:
        return decoded(read(path, LIMIT)[0]) or {}
    except OSError:
        return {}
