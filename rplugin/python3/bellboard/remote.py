"""The remote plugin: a host in the Python process that Neovim starts."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import pynvim

PUSH: Final = "require('bellboard.process.talk')._pushed(...)"
REPLY: Final = "require('bellboard.process.talk')._reply(...)"
OUTWARD: Final = "require('bellboard.report.outward')._write(...)"
COMPLAIN: Final = "require('bellboard.process.talk')._complain(...)"
MOST_UNREAD: Final = 1 << 20  # bytes to keep for Neovim, which may be suspended for days

#: Copies of the ends of Neovim's pipes: files may get their numbers once pynvim closed them.
held: tuple[int, ...] = ()
_plugins: list[Bellboard] = []  # of this process, once loaded

#: Evidence that the editor sends by itself, of whose delay the user need not know.
AUTOMATIC: Final = frozenset({"view", "goto"})
#: Keys allowed besides the kind of evidence, in any order.
BESIDE: Final = frozenset({"viewer"})


def exported(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Export a method to Lua; a failure is logged to standard error, as pynvim does."""

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
    """The methods that Lua calls.  The host answers with one asynchronous call.

    The host never makes a blocking request: inside a task there is no greenlet to switch to.
    """

    def __init__(self, nvim: Any) -> None:
        self.nvim = nvim
        _plugins.append(self)
        self.host: Any = None
        self.encoder: Any = None
        self.task: asyncio.Task[None] | None = None
        self.errands: set[asyncio.Task[None]] = set()

    @exported("start")
    def start(self, config: Mapping[str, Any]) -> None:
        """Start the host."""
        if self.task is not None:
            return
        try:
            from .hosting.host import Host
            from .hosting.publish import Encoder
            from .storage.spool import default_home

            config = config if isinstance(config, Mapping) else {}
            home = config.get("home")
            where = Path(home) if isinstance(home, str) and home else default_home(os.environ)
            self.encoder = Encoder()
            self.host = Host(where, self._push, config)
        except Exception as e:  # pynvim would only print it and keep the process alive
            _die(e)
        self.task = self.nvim.loop.create_task(self.host.run())
        self.task.add_done_callback(self._ended)

    @exported("evidence")
    def evidence(self, line: Mapping[str, Any]) -> None:
        """Take evidence from the editor: a view, a jump, a label, a correction."""
        what = next((key for key in line if key not in BESIDE), "")
        try:
            if self.host is None:
                raise ValueError("the background process is not running")
            if (s := self._far(line.get(what))) is not None:
                self._begin(self._mark(s, what, line))
                return
            why = self.host.report(line)
            text = f"{what} is delayed: {why}" if why and what not in AUTOMATIC else ""
        except (TypeError, ValueError) as e:
            text = f"{what} failed: {e}"
        if text:
            self.nvim.exec_lua(COMPLAIN, text, async_=True)

    @exported("snapshot")
    def snapshot(self) -> None:
        """Push all sessions, because Lua missed a message."""
        if self.host is not None:
            self.host.push_all()

    @exported("ask")
    def ask(self, number: int, what: str = "", request: Any = None) -> None:
        """Run a request of the user; the reply carries its number."""
        self._begin(self._run(number, what, request))

    @exported("focus")
    def focus(self, t: float) -> None:
        """Note that this Neovim has had the focus since `t`; 0: it has no screen."""
        if self.host is not None:
            self.host.focus(float(t))

    @exported("screen")
    def screen(self, session_id: str, pid: int, rows: list[str]) -> None:
        """Take the terminal contents of a session that has no better witness."""
        if self.host is not None:
            self.host.hand_in(str(session_id), int(pid), [str(row) for row in rows])

    @exported("title")
    def title(self, session_id: str, pid: int, text: str) -> None:
        """Take the terminal title of a session whose CLI shows its state there."""
        if self.host is not None:
            self.host.hand_in(str(session_id), int(pid), str(text))

    @exported("program_status")
    def program_status(self, said: Mapping[str, Any]) -> None:
        """Take the sequences of a terminal in which programs report their status."""
        if self.host is not None:
            heard = [(float(t), str(text)) for t, text in said["said"]]
            dropped = int(said.get("dropped") or 0)
            self.host.program_status(str(said["tty"]), int(said["pid"]), heard, dropped)

    @exported("outward")
    def outward(self, is_read: bool) -> None:
        """Report the board to the terminal of Neovim, if that reads reports, or no longer."""
        if self.host is not None:
            write = functools.partial(self.nvim.exec_lua, OUTWARD, async_=True)
            self.host.report_board(write if is_read else None)

    @exported("unsaved")
    def unsaved(self, paths: list[str]) -> None:
        """Take the files of which Neovim has unsaved changes."""
        if self.host is not None:
            self.host.list_unsaved([str(path) for path in paths])

    @exported("chat")
    def chat(self, agent: str, payload: Mapping[str, Any], server: str) -> None:
        """Take an event of a chat inside the editor."""
        if self.host is not None:
            origin = {"agent": agent, "pid": os.getppid(), "nvim": server, "shared": True}
            with contextlib.suppress(ValueError):  # health says why nothing is folded
                self.host.report({"raw": json.dumps(payload), "origin": origin})

    @exported("mode")
    def mode(self, name: str) -> None:
        """Set the notification mode in every Neovim."""
        if self.host is not None:
            self.host.set_mode(name)

    @exported("notices")
    def notices(self) -> None:
        """Send the notification history to Lua."""
        if self.host is not None:
            self.host.push_notices()

    @exported("stop")
    def stop(self) -> None:
        """Stop the host; the process then exits."""
        if self.host is None:
            os._exit(0)
        self.host.stop()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.nvim.loop.create_task(work)
        self.errands.add(task)
        task.add_done_callback(self.errands.discard)

    def _far(self, about: object) -> Any:
        """Return the session of evidence, if it runs on another machine."""
        from .core.session import is_far

        sid = about.get("session_id") if isinstance(about, Mapping) else None
        if not isinstance(sid, str) or not is_far(sid):
            return None
        s = self.host.session(sid)
        return s if s is not None and s.machine else None

    async def _mark(self, s: Any, what: str, line: Mapping[str, Any]) -> None:
        try:
            from .hosting.other_machine import OtherMachines

            await OtherMachines(self.host.spool.home).mark(s, line)
        except Exception as e:  # evidence is declined, or an update has replaced a file
            from .system.failures import described  # which the host has loaded

            if what not in AUTOMATIC:
                self.nvim.exec_lua(COMPLAIN, f"{what} failed: {described(e)}", async_=True)

    async def _run(self, number: int, what: str, request: Any) -> None:
        try:
            from .hosting.asked import RequestReader
            from .hosting.errands import Errands

            if self.host is None or not isinstance(request, Mapping):
                raise ValueError("the background process is not running, or the request is invalid")
            host, by = self.host, f"Neovim {os.getppid()}"
            requests = RequestReader(host.spool, host.session, host.answers)
            reply = await Errands(requests, host.report, by).do(what, request)
        except Exception as e:
            from .core.request import refusal
            from .system.failures import described

            traceback.print_exc()
            reply = refusal(described(e))
        self.nvim.exec_lua(REPLY, number, reply, async_=True)

    def _push(self, message: dict[str, Any]) -> None:
        if self._unread() > MOST_UNREAD:
            raise BlockingIOError(errno.EAGAIN, "Neovim has stopped reading")
        # As one string: pynvim walks every value of an argument, which takes 0.2 ms a session.
        self.nvim.exec_lua(PUSH, self.encoder.encoded(message), async_=True)

    def _unread(self) -> int:
        try:
            return int(self.nvim._session.loop._transport.get_write_buffer_size())
        except AttributeError:  # a later pynvim
            return 0

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Exit when the host has ended, so that Neovim notices."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _die(error)
        left()
        os._exit(0)


def end() -> None:
    """Stop the host; may be called from any thread."""
    for plugin in _plugins:
        if plugin.host is not None:
            plugin.host.stop()
            return
    os._exit(0)


def left() -> None:
    """Report the ends of terminals, if Neovim has exited.

    Neovim closes its pipes one after the other, and the first one ends this process.
    """
    from .system.ending import is_hung_up

    for plugin in _plugins if any(is_hung_up(fd) for fd in held) else ():
        if plugin.host is not None:
            plugin.host.left()


def _die(error: BaseException) -> NoReturn:
    """Exit with the error on standard error, where Lua reads it before it restarts the host."""
    try:
        _complain(error)
    finally:  # even if the words for it cannot be loaded
        sys.stderr.flush()
        os._exit(1)


def _complain(error: BaseException) -> None:
    try:
        from .storage.state_folder import ADVICE, Refused
        from .system.missing_packages import unfit
    except Exception:
        traceback.print_exception(error)
        return
    if isinstance(error, Refused | OSError):
        sys.stderr.write(f"{error}\n{ADVICE}\n")
    elif why := unfit(error):  # no build would help, so not as Lua knows a package that is missing
        sys.stderr.write(f"{why}\n")
    else:
        traceback.print_exception(error)
