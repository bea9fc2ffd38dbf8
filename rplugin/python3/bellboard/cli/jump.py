"""The way to a session from a shell: its tmux pane, the Neovim whose terminal it runs in.

Neovim is told with a notification: it may be waiting for a key, and nobody waits with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..core.published import Published
from ..system import gate
from ..system.tmux import Tmux

PATIENCE: Final = 2.0  # for a socket of this machine
_JUMP: Final = "require('bellboard').jump(...)"


class NoWay(Exception):
    """Why it cannot be had, in words for the user."""


def lead(p: Published, environ: Mapping[str, str], client: str = "") -> str:
    """Show a session to whoever asks, or on that tmux client; what else there is to say.

    A Neovim shows the terminal that it holds; if it is itself in a tmux pane, that one is shown.
    """
    nvim, pane, socket = p.get("nvim"), p.get("pane"), p.get("tmux") or ""
    if nvim:
        tell_neovim(nvim, p["session_id"])
    if pane and socket.startswith("/"):
        tmux = Tmux(socket)
        if not tmux.jump(pane, client or asking(tmux, environ)):
            raise NoWay(tmux.why)
        return ""
    if nvim:
        return f"it is shown in the Neovim at {nvim}"
    known = ", ".join(f"{key} {p[key]}" for key in ("pid", "tty", "cwd") if p.get(key))
    raise NoWay(f"no way to get there is known: {known or p['session_id']}")


def asking(tmux: Tmux, environ: Mapping[str, str]) -> str:
    """The client of this server that shows the pane we are in; empty: none is known."""
    ours = environ.get("TMUX", "").rsplit(",", 2)[0]
    return tmux.client_at(environ.get("TMUX_PANE", "")) if ours == tmux.socket else ""


def after(needing: Sequence[Published], tmux: Tmux | None, client: str) -> Published | None:
    """Of those that need you the one after the one that this client shows; round and round."""
    shown = {c.name: c.pane for c in (tmux.clients() or ())} if tmux else {}
    here = tmux and (tmux.socket, shown.get(client))
    places = [(p.get("tmux"), p.get("pane")) for p in needing]
    at = places.index(here) + 1 if here in places else 0
    return needing[at % len(needing)] if needing else None


def tell_neovim(address: str, session: str) -> None:
    """Ask the Neovim that listens there to show a session."""
    import msgpack  # type: ignore[import-untyped] # it carries no types

    jump = [2, "nvim_exec_lua", [_JUMP, [session]]]
    read = [0, 1, "nvim_get_mode", []]  # is answered at once, also while it waits for a key
    try:
        with gate.connected(address, PATIENCE) as connection:
            connection.sendall(msgpack.packb(jump) + msgpack.packb(read))
            answer = connection.recv(1)
    except gate.Refused as refusal:
        raise NoWay(f"the Neovim at {address} is not connected to: {refusal}") from None
    except OSError:
        answer = b""
    if not answer:
        raise NoWay(f"the Neovim that it runs in does not answer: {address}")
