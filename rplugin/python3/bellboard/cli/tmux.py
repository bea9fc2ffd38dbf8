"""What bellboard sets in a tmux server: tmux."""

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
    tmux = add(commands, "tmux", wire, "print what makes bellboard work in tmux, or set it")
    how = tmux.add_mutually_exclusive_group()
    how.add_argument("--apply", action="store_true", help="set it in a server that runs")
    how.add_argument("--remove", action="store_true", help="take it out of there again")
    tmux.add_argument("--socket", metavar="PATH", help="the server (default: the one you are in)")
    tmux.add_argument("--pick", metavar="KEY", default="b", help="after the prefix (default: b)")
    tmux.add_argument("--next", metavar="KEY", default="B", help="after the prefix (default: B)")


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
    """A server that answers, by the name that it gives itself."""
    from ..system.tmux import Tmux, sockets

    found = server(socket)
    if found is None:
        there = [x for x in sockets(os.environ) if Tmux(x).panes()]
        if len(there) != 1:
            some = f"; of these: {', '.join(there)}" if there else ""
            raise Problem(f"say which tmux server is meant, with --socket PATH{some}")
        found = Tmux(there[0])
    told = found.ask("display-message", "-p", "#{socket_path}")
    if not told:
        raise Problem(found.why or f"no tmux server answers at {found.socket}")
    return Tmux(told.rstrip("\n"))


def register(tmux: Tmux, wanted: bool) -> None:
    """Let hosts keep the status of this server, or no more; and know who looks where now."""
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
            told = [*others, tmux.socket] if wanted else others
            clerk.store.set_option(ASKED, told, os.getpid(), now)
        for client in tmux.clients() or ():
            where = {"tmux": tmux.socket, "pane": client.pane} if client.focused else {}
            how = ("focus" if client.focused else "away") if wanted else "gone"
            view = {"t": now, "view": {**where, "how": how}}
            clerk.spool.write({**view, "viewer": f"{tmux.socket} {client.name}"})
        text = words.status_text(snapshot(clerk.board.sessions.values()), now)
    if wanted:
        tmux.set_option(OPTION, text)
