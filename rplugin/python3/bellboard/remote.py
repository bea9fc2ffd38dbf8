"""The remote plugin: a host inside a Neovim's own Python process."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import pynvim

PUSH: Final = "require('bellboard.host')._pushed(...)"
REPLY: Final = "require('bellboard.host')._reply(...)"
COMPLAIN: Final = "require('bellboard.host')._complain(...)"

_plugins: list[Bellboard] = []  # of this process: one, once it is loaded

#: What an editor tells by itself; nobody need hear that it is late.
UNASKED: Final = frozenset({"view", "goto"})


def told(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A message of Lua's: what fails in it goes to the job's log, as pynvim would print it."""

    def wrap(method: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(method)
        def guarded(*arguments: Any) -> None:
            try:
                method(*arguments)
            except Exception:
                traceback.print_exc()
                sys.stderr.flush()

        return pynvim.rpc_export(name)(guarded)  # type: ignore[no-any-return]

    return wrap


@pynvim.plugin
class Bellboard:
    """What Lua may tell the host; the host tells Lua with one asynchronous call.

    It never makes a blocking request: inside a task there is no greenlet to switch to.
    """

    def __init__(self, nvim: Any) -> None:
        self.nvim = nvim
        _plugins.append(self)
        self.host: Any = None
        self.task: asyncio.Task[None] | None = None
        self.errands: set[asyncio.Task[None]] = set()

    @told("start")
    def start(self, config: Mapping[str, Any]) -> None:
        """Begin to watch and to publish."""
        if self.task is not None:
            return
        try:
            from .hosting.host import Host
            from .storage.spool import default_home

            config = config if isinstance(config, Mapping) else {}
            home = config.get("home")
            where = Path(home) if isinstance(home, str) and home else default_home(os.environ)
            self.host = Host(where, self._push, config)
        except Exception as e:  # pynvim would only print it, and the process live on, mute
            _die(e)
        self.task = self.nvim.loop.create_task(self.host.run())
        self.task.add_done_callback(self._ended)

    @told("evidence")
    def evidence(self, line: Mapping[str, Any]) -> None:
        """What happened in the editor: a view, a jump, a label, a correction."""
        what = next(iter(line), "")
        try:
            if self.host is None:
                raise ValueError("the host has not been started")
            why = self.host.tell(line)
            text = f"{what} waits to be written: {why}" if why and what not in UNASKED else ""
        except (TypeError, ValueError) as e:
            text = f"{what} was not done: {e}"
        if text:
            self.nvim.exec_lua(COMPLAIN, text, async_=True)

    @told("snapshot")
    def snapshot(self) -> None:
        """Lua missed a push."""
        if self.host is not None:
            self.host.tell_all()

    @told("ask")
    def ask(self, number: int, what: str = "", told: Any = None) -> None:
        """Do an errand for a person; the reply bears its number."""
        task = self.nvim.loop.create_task(self._run(number, what, told))
        self.errands.add(task)
        task.add_done_callback(self.errands.discard)

    @told("focus")
    def focus(self, t: float) -> None:
        """The user is at this Neovim since then."""
        if self.host is not None:
            self.host.focus(float(t))

    @told("screen")
    def screen(self, session_id: str, pid: int, rows: list[str]) -> None:
        """What the terminal of a session shows, of which nothing better tells."""
        if self.host is not None:
            self.host.hand_in(str(session_id), int(pid), [str(row) for row in rows])

    @told("mode")
    def mode(self, name: str) -> None:
        """What rings at all from now on, in every Neovim."""
        if self.host is not None:
            self.host.set_mode(name)

    @told("notices")
    def notices(self) -> None:
        """Lua wants to show what has rung."""
        if self.host is not None:
            self.host.tell_notices()

    @told("stop")
    def stop(self) -> None:
        """End; the process follows."""
        if self.host is None:
            os._exit(0)
        self.host.stop()

    async def _run(self, number: int, what: str, told: Any) -> None:
        from .hosting.errands import Errands

        try:
            if self.host is None or not isinstance(told, Mapping):
                raise ValueError("the host has not been started, or was not told what to do it to")
            reply = await Errands(self.host.session).do(what, told)
        except Exception as e:
            traceback.print_exc()
            reply = {"ok": False, "why": f"it failed: {type(e).__name__}: {e}"}
        self.nvim.exec_lua(REPLY, number, reply, async_=True)

    def _push(self, message: dict[str, Any]) -> None:
        # As one string: pynvim walks through every value of an argument, 0.2 ms for one session.
        from .hosting.sendable import encoded

        self.nvim.exec_lua(PUSH, encoded(message), async_=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A host whose task is over must not look alive."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _die(error)
        os._exit(0)


def end() -> None:
    """End what was started; from any thread."""
    for plugin in _plugins:
        if plugin.host is not None:
            plugin.host.stop()
            return
    os._exit(0)


def _die(error: BaseException) -> NoReturn:
    """Leave the reason to Lua, which shows the last lines and starts another host."""
    from .storage.spool import Refused

    if isinstance(error, Refused | OSError):
        sys.stderr.write(f"{error}\nset BELLBOARD_HOME to a folder that is yours\n")
    else:
        traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(1)
