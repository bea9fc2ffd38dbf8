"""The way to a session: goto, pick."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from .home import Args, Commands, Problem, add, find, listed, opened

if TYPE_CHECKING:
    from ..core.published import Published
    from ..system.tmux import Tmux

CLIENT = "show it on this tmux client (default: the one that asks, else the one used last)"


def add_to(commands: Commands) -> None:
    jump = add(commands, "goto", go_to, "go to a session: its tmux pane, the Neovim it runs in")
    jump.add_argument("session", nargs="?")
    jump.add_argument("--next", action="store_true", help="the next one that needs you")
    jump.add_argument("--client", metavar="NAME", default="", help=CLIENT)
    pick = add(commands, "pick", pick_session, "choose a session in this terminal, and go there")
    pick.add_argument("--client", metavar="NAME", default="", help=CLIENT)
    pick.add_argument("--print", action="store_true", help="only print the id of what was chosen")


def go_to(args: Args) -> None:
    if bool(args.session) == args.next:
        raise Problem("name a session, or say --next; `bellboard list` shows those there are")
    if not args.next:
        with opened() as clerk:
            sid = find(clerk, args.session)
        lead(next(p for p in sessions() if p["session_id"] == sid), args.client)
        return
    try:
        lead(next_needing(args.client), args.client)
    except Problem as e:
        if not args.client:
            raise
        say(str(e), args.client)  # a key of tmux: what it prints would cover the pane


def pick_session(args: Args) -> int:
    from ..screen.picker import choose

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Problem("to pick takes a terminal; `bellboard list` needs none")
    chosen = choose([p for p in sessions() if not p["hidden"]])
    if chosen is None:
        return 1
    if args.print:
        print(chosen["session_id"])
        return 0
    try:
        lead(chosen, args.client)
    except Problem as e:
        if not args.client:
            raise
        say(str(e), args.client)  # a popup is gone before it can be read
    return 0


def sessions() -> list[Published]:
    """As published, most urgent first."""
    with opened() as clerk:
        return listed(clerk)


def next_needing(client: str) -> Published:
    from ..core.published import needs_you
    from . import jump

    tmux = server()
    shown = client or (jump.asking(tmux, os.environ) if tmux else "")
    found = jump.after([p for p in sessions() if needs_you(p)], tmux, shown)
    if found is None:
        raise Problem("nothing needs you")
    return found


def lead(p: Published, client: str) -> None:
    """Go there; it counts as seen, and the last hosts may learn that from the spool."""
    from . import jump

    try:
        told = jump.lead(p, os.environ, client)
    except jump.NoWay as e:
        raise Problem(str(e)) from None
    with opened() as clerk:
        clerk.spool.write({"t": time.time(), "goto": {"session_id": p["session_id"]}})
    if told and client:
        say(told, client)
    elif told:
        print(told)


def server(socket: str = "") -> Tmux | None:
    """The tmux server of that socket, else the one that we are in."""
    from ..system.tmux import Tmux

    socket = socket or os.environ.get("TMUX", "").rsplit(",", 2)[0]
    return Tmux(socket) if socket else None


def say(text: str, client: str) -> None:
    """Show it in the status line of that client for a moment."""
    if (tmux := server()) is not None:
        tmux.say(client, f"bellboard: {text}")
