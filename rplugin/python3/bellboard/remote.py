"""The remote plugin: a host inside a Neovim's own Python process."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from pathlib import Path
from typing import Any, Final, NoReturn

import pynvim
from msgspec.json import encode

PUSH: Final = "require('bellboard')._push(...)"
REPLY: Final = "require('bellboard.host')._reply(...)"


@pynvim.plugin
class Bellboard:
    """What Lua may tell the host; the host tells Lua with one asynchronous call.

    It never makes a blocking request: inside a task there is no greenlet to switch to.
    """

    def __init__(self, nvim: Any) -> None:
        self.nvim = nvim
        self.host: Any = None
        self.task: asyncio.Task[None] | None = None
        self.errands: set[asyncio.Task[None]] = set()

    @pynvim.rpc_export("start")
    def start(self, config: dict[str, Any]) -> None:
        """Begin to watch and to publish."""
        if self.task is not None:
            return
        try:
            from .hosting.host import Host
            from .storage.spool import default_home

            home = config.get("home")
            where = Path(home) if home else default_home(os.environ)
            self.host = Host(where, self._push, config)
        except Exception as e:  # pynvim would only print it, and the process live on, mute
            _die(e)
        self.task = self.nvim.loop.create_task(self.host.run())
        self.task.add_done_callback(self._ended)

    @pynvim.rpc_export("evidence")
    def evidence(self, line: dict[str, Any]) -> None:
        """What happened in the editor: a view, a jump, a label, a correction."""
        if self.host is not None:
            self.host.tell(line)

    @pynvim.rpc_export("snapshot")
    def snapshot(self) -> None:
        """Lua missed a push."""
        if self.host is not None:
            self.host.tell_all()

    @pynvim.rpc_export("ask")
    def ask(self, number: int, what: str, told: dict[str, Any]) -> None:
        """Do an errand for a person; the reply bears its number."""
        if self.host is not None:
            task = self.nvim.loop.create_task(self._run(number, what, told))
            self.errands.add(task)
            task.add_done_callback(self.errands.discard)

    @pynvim.rpc_export("focus")
    def focus(self, t: float) -> None:
        """The user is at this Neovim since then."""
        if self.host is not None:
            self.host.focus(t)

    @pynvim.rpc_export("mode")
    def mode(self, name: str) -> None:
        """What rings at all from now on, in every Neovim."""
        if self.host is not None:
            self.host.set_mode(name)

    @pynvim.rpc_export("notices")
    def notices(self) -> None:
        """Lua wants to show what has rung."""
        if self.host is not None:
            self.host.tell_notices()

    @pynvim.rpc_export("stop")
    def stop(self) -> None:
        """End; the process follows."""
        if self.host is not None:
            self.host.stop()

    async def _run(self, number: int, what: str, told: dict[str, Any]) -> None:
        from .hosting.errands import Errands

        reply = await Errands(self.host.session).do(what, told)
        self.nvim.exec_lua(REPLY, number, reply, async_=True)

    def _push(self, message: dict[str, Any]) -> None:
        # As one string: pynvim walks through every value of an argument, 0.2 ms for one session.
        self.nvim.exec_lua(PUSH, encode(message).decode(), async_=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A host whose task is over must not look alive."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _die(error)
        os._exit(0)


def _die(error: BaseException) -> NoReturn:
    """Leave the reason to Lua, which shows the last lines and starts another host."""
    from .storage.spool import Refused

    if isinstance(error, Refused | OSError):
        sys.stderr.write(f"{error}\nset BELLBOARD_HOME to a folder that is yours\n")
    else:
        traceback.print_exception(error)
    os._exit(1)
