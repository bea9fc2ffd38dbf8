"""Jump to a session from outside Neovim: to its tmux pane, its Neovim, or its window of kitty.

Neovim gets an RPC notification, not a request: it may be waiting for a key.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from ..core.published import Published, publish
from ..core.request import refusal
from ..core.session import is_far
from ..core.untrusted import list_of
from ..system import gate, kitty, ssh
from ..system.failures import described
from ..system.processes import is_alive, runs
from ..system.reach import sleep
from ..system.tmux import UNSEEN, Tmux, socket_in
from ..witnesses.proof import objection
from .answering import Answering
from .beside import Declined, Given, Reply, beside
from .showing import Desk, named

JUMP_PATIENCE: Final = 2.0  # seconds for a local socket
ASKED: Final = 1  # the number of our request to a Neovim
LARGEST: Final = 64 << 10  # bytes of what a Neovim answers
_JUMP: Final = "require('bellboard').jump(...)"
NO_TERMINAL: Final = "xterm-256color"  # instead of one that this machine does not know


class JumpFailed(Exception):
    """The jump failed; the text tells the user why."""


def lead(p: Published, environ: Mapping[str, str], client: str = "") -> str:
    """Show a session on the current tmux client or the given one; return a message, if any.

    A Neovim shows its terminal buffer; if it runs in a tmux pane itself, that pane is shown too.
    """
    nvim, pane, socket = p.get("nvim"), p.get("pane"), p.get("tmux") or ""
    if nvim:
        show_in_neovim(nvim, p["session_id"])
    if pane and socket.startswith("/"):
        tmux = Tmux(socket)
        if not tmux.jump(pane, client or asking(tmux, environ)):
            attach = f"bellboard goto {shlex.quote(p['session_id'])} --attach"
            here = f"; to see it in this terminal: {attach}" if tmux.why == UNSEEN else ""
            raise JumpFailed(f"{tmux.why}{here}")
        return ""
    if nvim:
        return f"shown in the Neovim at {nvim}"
    if p.get("kitty"):
        try:
            kitty.show(p["kitty"], p["tty"])
        except kitty.KittyFailed as e:
            raise JumpFailed(str(e)) from None
        return ""
    known = ", ".join(f"{key} {p[key]}" for key in ("pid", "tty", "cwd") if p.get(key))
    raise JumpFailed(f"its terminal cannot be reached from here: {known or p['session_id']}")


def attach(p: Published) -> list[str]:
    """Select the pane of a session; return the command that attaches this terminal to it.

    A Neovim around the session shows its terminal buffer, also if it cannot be attached to.
    """
    nvim, pane, socket = p.get("nvim"), p.get("pane"), p.get("tmux") or ""
    if nvim:
        show_in_neovim(nvim, p["session_id"])
    if pane and socket.startswith("/"):
        tmux = Tmux(socket)
        try:
            if command := tmux.attaching(pane):
                return command
        except OSError as error:
            raise JumpFailed(f"cannot attach to {socket}: {described(error)}") from None
        raise JumpFailed(tmux.why)
    if nvim:
        raise JumpFailed(
            f"its Neovim shows it, but is in no tmux pane to attach to; to use that Neovim here: "
            f"nvim --server {shlex.quote(nvim)} --remote-ui"
        )
    where = p.get("tty") or (f"process {p['pid']}" if p.get("pid") else "no terminal")
    raise JumpFailed(
        f"it runs on {where}, in no tmux pane to attach to; "
        f"`bellboard answer {p['session_id']}` answers it from here"
    )


def arrive(p: Published, ends: Collection[str]) -> str:
    """Show a session in the terminal behind one of these ssh connections.

    Return that connection; "" if none of them shows its terminal: then nothing has changed.
    """
    nvim, pane, socket = p.get("nvim"), p.get("pane"), p.get("tmux") or ""
    if not (pane and socket.startswith("/")):
        end = ssh.end_of(p.get("ssh") or "")
        if end and end in ends and nvim:
            show_in_neovim(nvim, p["session_id"])
        return end if end in ends else ""
    tmux = Tmux(socket)
    for client in tmux.clients() or ():
        end = ssh.ends_of(client.pid)
        if end and end in ends:
            if nvim:
                show_in_neovim(nvim, p["session_id"])
            if not tmux.jump(pane, client.name):
                raise JumpFailed(tmux.why)
            return end
    return ""


def is_here(p: Published, environ: Mapping[str, str]) -> bool:
    """Return whether the terminal that we run in shows the session's tmux server."""
    ours = socket_in(environ)
    return bool(ours) and ours == p.get("tmux")


def terminal_type(environ: Mapping[str, str]) -> str:
    """Return a terminal type that this machine knows: tmux refuses any other."""
    import curses

    named = environ.get("TERM", "")
    try:
        curses.setupterm(named, 1)
    except (curses.error, ValueError):
        return NO_TERMINAL
    return named


def asking(tmux: Tmux, environ: Mapping[str, str]) -> str:
    """Return the client of this server that shows our own pane, or ""."""
    ours = socket_in(environ)
    return tmux.client_at(environ.get("TMUX_PANE", "")) if ours == tmux.socket else ""


def after(needing: Sequence[Published], tmux: Tmux | None, client: str) -> Published | None:
    """Return the session that needs you after the one that the client shows, cyclically."""
    shown = {c.name: c.pane for c in (tmux.clients() or ())} if tmux else {}
    here = tmux and (tmux.socket, shown.get(client))
    panes = [(p.get("tmux"), p.get("pane")) for p in needing]
    at = panes.index(here) + 1 if here in panes else 0
    return needing[at % len(needing)] if needing else None


def show_in_neovim(address: str, session: str) -> None:
    """Ask the Neovim that listens there to show a session."""
    import msgpack  # type: ignore[import-untyped] # it carries no types

    replies = msgpack.Unpacker(max_buffer_size=LARGEST)
    until = time.monotonic() + JUMP_PATIENCE
    jump = [2, "nvim_exec_lua", [_JUMP, [session]]]
    read = [0, ASKED, "nvim_get_mode", []]  # answered at once, even while it waits for a key
    try:
        with gate.connected(address, JUMP_PATIENCE) as connection:
            connection.sendall(msgpack.packb(jump) + msgpack.packb(read))
            while time.monotonic() < until and (some := connection.recv(LARGEST)):
                replies.feed(some)
                for reply in replies:
                    if _is_mode(reply):
                        return
    except gate.Denied as denial:
        raise JumpFailed(f"not connecting to the Neovim at {address}: {denial}") from None
    except (OSError, ValueError, msgpack.exceptions.UnpackException):  # it may be anything
        pass
    raise JumpFailed(f"its Neovim does not respond: {address}")


def _is_mode(reply: object) -> bool:
    """Return whether a message replies to our request for the mode."""
    match reply:
        case [1, number, None, {"mode": str()}]:
            return number == ASKED
    return False


# Carry out what a user wants of one session: stop it, show it, or answer it (`answering.py`).
#
# Nothing is guessed. A process is identified by its id and start time, and must be proven to be
# the session's. The reply says what happened.


EXIT_PATIENCE: Final = 5.0  # seconds for a process to exit: the CLI still writes its last lines
POLL: Final = 0.05
MOST_CLIENTS: Final = 200  # terminals of another machine to look for


class Errands:
    """Carries out the errands of an editor; `by` names it."""

    def __init__(self, desk: Desk, by: str = "", environ: Mapping[str, str] = os.environ) -> None:
        self._desk = desk
        self._environ = dict(environ)
        self._answering = Answering(desk, by, self._environ)

    async def do(self, what: str, given: Given) -> Reply:
        """Carry out a request; return `ok`, and `why` if it failed."""
        return await replied(self._do(what, given))

    async def _do(self, what: str, given: Given) -> Reply:
        sid = str(given.get("session_id"))
        s = self._desk.session(sid) if is_far(sid) else None
        if s is not None and s.machine:
            from .other_machine import Elsewhere

            return await Elsewhere(self._desk.spool.home).do(what, s, given)
        answering = self._answering
        errands = {"stop": self.stop, "show": self.show, "goto": self.arrive}
        errands |= {"request": answering.request, "answer": answering.answer}
        if what not in errands:
            raise Declined(f"unknown request: {what}")
        return await errands[what](given)

    # ------------------------------------------------------------ stop

    async def stop(self, given: Given) -> Reply:
        """Stop the process that the user was shown, if it is proven to be the session's."""
        s, pid = named(self._desk, given), given.get("pid")
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
        until = time.monotonic() + EXIT_PATIENCE
        while runs(process.pid, process.started) and is_alive(process.pid):
            if time.monotonic() > until:
                raise Declined(f"process {pid} has not stopped yet; to force it: kill -9 {pid}")
            await sleep(POLL)
        return {"text": f"process {pid} has ended"}

    # ------------------------------------------------------------ show

    async def show(self, given: Given) -> Reply:
        """Show the window of its terminal program that it runs in."""
        from ..system import kitty

        s = named(self._desk, given)
        if not (s.kitty and s.tty):
            raise Declined("its terminal cannot be reached from here")
        try:
            await beside(partial(kitty.show, s.kitty, s.tty))
        except kitty.KittyFailed as reason:
            raise Declined(str(reason)) from None
        return {}

    # ------------------------------------------------------------ goto

    async def arrive(self, given: Given) -> Reply:
        """Show it on the terminal here that a user of another machine sits at, if there is one.

        `clients` are the ssh connections that have a terminal on that machine.
        """

        s, clients = named(self._desk, given), list_of(given.get("clients"))
        ends = [end for end in clients[:MOST_CLIENTS] if isinstance(end, str)]
        try:
            end = await beside(partial(arrive, publish(s), ends))
        except JumpFailed as reason:
            raise Declined(str(reason)) from None
        return {"client": end}


async def replied(errand: Awaitable[Reply]) -> Reply:
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
