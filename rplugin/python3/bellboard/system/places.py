"""Where a process has its terminal, according to its own environment."""

from __future__ import annotations

from typing import Final

from .processes import environment_of, tty_of
from .tmux import socket_in

TERMINAL: Final = ("TMUX", "TMUX_PANE", "NVIM")
KITTY: Final = "KITTY_LISTEN_ON"


def place_of(pid: int) -> dict[str, str]:
    """Return its terminal, and what its environment says of where that is; only what is known."""
    env = environment_of(pid, (*TERMINAL, KITTY))
    kitty = env.get(KITTY, "")
    place = {
        "tty": tty_of(pid),
        "tmux": socket_in(env),
        "pane": env.get("TMUX_PANE", ""),
        "nvim": env.get("NVIM", ""),
        "kitty": kitty.removeprefix("unix:") if kitty.startswith("unix:/") else "",
    }
    return {k: v for k, v in place.items() if v}
