"""The `tmux` command: the options and key bindings that bellboard sets in a tmux server."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from .goto import server
from .home import (
    Args,
    Commands,
    Problem,
    add,
    here,
    opened,
    warn,
)

if TYPE_CHECKING:
    from ..system.tmux import Tmux


def add_to(commands: Commands) -> None:
    tmux = add(commands, "tmux", wire, "print or apply the tmux configuration")
    how = tmux.add_mutually_exclusive_group()
    how.add_argument("--apply", action="store_true", help="apply it to a running server")
    how.add_argument("--remove", action="store_true", help="remove it from a running server")
    tmux.add_argument("--socket", metavar="PATH", help="the server (default: the current one)")
    tmux.add_argument("--pick", metavar="KEY", default="b", help="prefix key to pick (default: b)")
    tmux.add_argument("--next", metavar="KEY", default="B", help="prefix key for next (default: B)")


def wire(args: Args) -> int:
    from . import wiring

    made = wiring.Wiring(here(), args.pick, args.next)
    if not (args.apply or args.remove):
        print(made.printed())
        return 0
    tmux = running(args.socket or "")
    if args.remove:
        wiring.remove(tmux)
        register(tmux, False)
        return 0
    register(tmux, True)
    problems = wiring.apply(tmux, made)
    for problem in problems:
        warn(problem)
    return 1 if problems else 0


def running(socket: str) -> Tmux:
    """Return a server that answers, at the socket path that it reports itself."""
    from ..system.tmux import Tmux, sockets

    found = server(socket)
    if found is None:
        there = [x for x in sockets(os.environ) if Tmux(x).panes()]
        if len(there) != 1:
            some = f", one of {', '.join(there)}" if there else ""
            raise Problem(f"choose a tmux server with --socket PATH{some}")
        found = Tmux(there[0])
    path = found.ask("display-message", "-p", "#{socket_path}")
    if not path:
        raise Problem(found.why or f"no tmux server answers at {found.socket}")
    return Tmux(path.rstrip("\n"))


def register(tmux: Tmux, wanted: bool) -> None:
    """Start or stop updating the status in this server, and record what its clients show."""
    from ..agents.claude_code.installer import installed
    from ..core import words
    from ..core.published import snapshot
    from ..hosting.bars import ASKED, OPTION

    now = time.time()
    with opened() as clerk:
        installed.keep_script(clerk.spool.home)
        with clerk.store.lock():
            asked = [x for x in clerk.store.option(ASKED) or () if os.path.exists(x)]  # noqa: PTH110
            others = [x for x in asked if x != tmux.socket]
            wanting = [*others, tmux.socket] if wanted else others
            clerk.store.set_option(ASKED, wanting, os.getpid(), now)
        for client in tmux.clients() or ():
            where = {"tmux": tmux.socket, "pane": client.pane} if client.focused else {}
            how = ("focus" if client.focused else "away") if wanted else "gone"
            view = {"t": now, "view": {**where, "how": how}}
            clerk.spool.write({**view, "viewer": f"{tmux.socket} {client.name}"})
        text = words.status_text(snapshot(clerk.board.sessions.values()), now)
    if wanted:
        tmux.set_option(OPTION, text)
