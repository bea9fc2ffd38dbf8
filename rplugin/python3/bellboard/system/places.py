"""The place of a process's terminal, according to its environment."""

from __future__ import annotations

from typing import Final, NamedTuple

from .processes import environment_of, tty_of
from .tmux import socket_in

TERMINAL: Final = ("TMUX", "TMUX_PANE", "NVIM")
KITTY: Final = "KITTY_LISTEN_ON"
SSH: Final = "SSH_CONNECTION"


class Place(NamedTuple):
    """The place of a terminal; an empty text: none that can be reached from here."""

    tty: str = ""
    tmux: str = ""  # the server of the pane that it, or its Neovim, is in
    pane: str = ""
    nvim: str = ""  # the Neovim whose terminal buffer it is
    kitty: str = ""
    ssh: str = ""  # the connection of the login that it is in


def place_of(pid: int) -> Place:
    """Return the terminal of a process, and its place according to the environment."""
    env = environment_of(pid, (*TERMINAL, KITTY, SSH))
    kitty = env.get(KITTY, "")
    return Place(
        tty_of(pid),
        socket_in(env),
        env.get("TMUX_PANE", ""),
        env.get("NVIM", ""),
        kitty.removeprefix("unix:") if kitty.startswith("unix:/") else "",
        env.get(SSH, ""),
    )
