"""Jump to a session from outside Neovim: to its tmux pane, its Neovim, or its window of kitty.

Neovim gets an RPC notification, not a request: it may be waiting for a key.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ..core.published import Published
from ..system import gate, kitty, ssh
from ..system.failures import described
from ..system.tmux import UNSEEN, Tmux, socket_in

JUMP_PATIENCE: Final = 2.0  # seconds for a local socket
ASKED: Final = 1  # the number of our request to a Neovim
LARGEST: Final = 64 << 10  # bytes of what a Neovim answers
_JUMP: Final = "require('bellboard').jump(...)"
NO_TERMINAL: Final = "xterm-256color"  # instead of one that this machine does not know


class JumpFailed(Exception):
    """The jump failed; the text tells the user why."""


def show_terminal(p: Published, environ: Mapping[str, str], client: str = "") -> str:
    """Show a session on the current tmux client or the given one; return a message, if any.

    A Neovim shows its terminal buffer; if it runs in a tmux pane itself, that pane is shown too.
    """
    nvim, pane, socket = p.get("nvim"), p.get("pane"), p.get("tmux") or ""
    if nvim:
        show_in_neovim(nvim, p["session_id"])
    if pane and socket.startswith("/"):
        tmux = Tmux(socket)
        if not tmux.jump(pane, client or asking_client(tmux, environ)):
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


def asking_client(tmux: Tmux, environ: Mapping[str, str]) -> str:
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
