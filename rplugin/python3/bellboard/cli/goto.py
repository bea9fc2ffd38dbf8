"""Commands that go to the place of a session, or end its process: goto, stop."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from .arguments import Args, Subcommands, add, add_session
from .home import (
    Ambiguous,
    Problem,
    check_mount,
    find_session,
    has_terminal,
    icons,
    listed,
    opened,
    paints,
    with_pane_names,
)

if TYPE_CHECKING:
    from ..core.published import Published
    from ..hosting.turn import SharedBoard
    from ..system.tmux import Tmux


CLIENT = "use this tmux client (default: the one in use, or the last used)"


def add_to(commands: Subcommands) -> None:
    jump = add(commands, "goto", go_to, "jump to a session, in its tmux pane or Neovim")
    add_session(jump, nargs="?")
    jump.add_argument("--next", action="store_true", help="jump to the next one that needs you")
    jump.add_argument("--client", metavar="NAME", default="", help=CLIENT)
    text = "attach this terminal to its tmux pane, until you detach (over ssh: ssh -t)"
    jump.add_argument("--attach", action="store_true", help=text)
    text = "stop the process of a session, after verifying that it is the right one"
    add_session(add(commands, "stop", stop, text))


def go_to(args: Args) -> None:
    if bool(args.session) == args.next:
        raise Problem("give either a session or --next; run `bellboard list` to see them all")
    if args.attach:
        attach_terminal(next_needing("") if args.next else listed_session(args.session))
        return
    if not args.next:
        from ..core.published import needs_you

        with opened() as shared:
            try:
                sid = find_session(shared, args.session, makes_sense=needs_you)
            except Ambiguous:
                sid = chosen(shared, args.session, needs_you)["session_id"]
        jump_to(listed_session(sid), args.client)
        return
    with flashing(args.client):
        jump_to(next_needing(args.client), args.client)


def chosen(shared: SharedBoard, called: str, makes_sense: Callable[[Published], bool]) -> Published:
    """Let the user choose among the sessions of a name; without a terminal, raise `Ambiguous`."""
    from ..screen.picker import choose

    if not (has_terminal() and paints()):
        raise
    shown = [p for p in listed(shared) if not p["hidden"]]
    shown = [p for p in shown if makes_sense(p)] or shown
    found = choose(with_pane_names(shown), icons(shared), called)
    if found is None:
        raise SystemExit(1)
    return found


def listed_session(called: str) -> Published:
    """Return the one listed session with this id, start of an id, or name."""
    with opened() as shared:
        sid = find_session(shared, called)
        found = next((p for p in listed(shared) if p["session_id"] == sid), None)
    if found is None:
        raise Problem(f"the session {called} has ended; run `bellboard list --ended`")
    return found


def next_needing(client: str) -> Published:
    """Return the next session that needs you, and remember that this client was there."""
    from ..core.published import needs_you
    from ..core.untrusted import object_of

    tmux, store_as = tmux_server(), "visited"
    at = os.environ.get("TMUX_PANE", "")
    clients = (tmux.clients() or ()) if tmux else ()
    shown = [c for c in clients if (client in (c.name, c.tty) if client else c.pane == at)]
    pane = (tmux.socket, shown[0].pane) if tmux and shown else ("", "")
    who = f"{pane[0]} {client}"
    with opened() as shared:
        needing = [p for p in listed(shared) if needs_you(p)]
        kept = object_of(shared.store.option(store_as))
        visited = object_of(kept.get(who))
        here = next((p for p in needing if (p.get("tmux"), p.get("pane")) == pane), None)
        found = after(needing, here, visited)
        if found is not None and not shared.store.database.readonly:
            been = {p["session_id"]: p["since"] for p in (here, found) if p is not None}
            still = {p["session_id"] for p in needing}
            been = {sid: t for sid, t in {**visited, **been}.items() if sid in still}
            with shared.store.transaction() as tx:
                tx.set_option(store_as, {**kept, who: been}, os.getpid(), time.time())
    if found is None:
        raise Problem("no session needs you")
    return found


def after(
    needing: Sequence[Published], here: Published | None, visited: Mapping[str, float]
) -> Published | None:
    """Return the session to go on to.  Those not visited since they began to need you come first.

    Visited ones follow in their order, starting after the shown session.
    `lua/bellboard/jump/init.lua` does the same.
    """
    new = [p for p in needing if p is not here and visited.get(p["session_id"]) != p["since"]]
    at = needing.index(here) + 1 if here is not None else 0
    around = [*needing[at:], *needing[:at]]
    return next(iter((*new, *around)), None)


def attach_terminal(p: Published) -> None:
    """Become a tmux client that shows the session; inside that tmux, jump to it."""
    from ..hosting import jump
    from ..system.failures import Declined
    from .runner import carry_out

    if not has_terminal():
        raise Problem("`bellboard goto --attach` needs a terminal; over ssh: ssh -t")
    if jump.is_here(p, os.environ):
        jump_to(p, "")
        return
    if p.get("machine"):
        become(carry_out("goto", p, attach=True)["command"])
    try:
        command = jump.attach(p)
    except Declined as e:
        raise Problem(str(e)) from None
    mark_seen(p)
    nested = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}
    become(command, nested | {"TERM": jump.terminal_type(os.environ)})


def become(command: list[str], env: Mapping[str, str] = os.environ) -> NoReturn:
    """Become a program that uses this terminal."""
    try:
        os.execvpe(command[0], command, env)
    except OSError as e:
        raise Problem(f"cannot run {command[0]}: {e.strerror}") from None


def mark_seen(p: Published) -> None:
    """Mark a session as seen, through the spool or on its own machine."""
    with opened() as shared:
        if p.get("machine"):
            from .edits import elsewhere

            elsewhere(shared, shared.board.sessions[p["session_id"]], {"goto": {}})
            return
        shared.spool.write({"t": time.time(), "goto": {"session_id": p["session_id"]}})


def jump_to(p: Published, client: str) -> None:
    """Jump to a session, and mark it as seen; name the place if another terminal shows it."""
    from ..hosting import jump
    from .runner import carry_out

    reply = carry_out("goto", p, client=client)
    if "attach" in reply:
        raise Problem(jump.unseen(p))
    if "command" in reply:
        open_terminal(reply["command"], client)
        return
    mark_seen(p)
    if (where := reply.get("where")) and client:
        flash(where, client)
    elif where:
        print(where)


def open_terminal(command: list[str], client: str) -> None:
    """Run a command in a new window of a tmux client, or in this terminal if none is given."""
    import shlex

    if not client and has_terminal():
        become(command)
    tmux = tmux_server() if client else None
    shown = [c for c in (tmux.clients() or ()) if client in (c.name, c.tty)] if tmux else []
    if not shown or tmux is None:
        raise Problem(f"no terminal here shows it; open one with: {shlex.join(command)}")
    if not tmux.open(shown[0].session, command):
        raise Problem(tmux.why)


def tmux_server(socket: str = "") -> Tmux | None:
    """Return the tmux server at a socket, by default the server that we run in."""
    from ..system.tmux import Tmux, socket_in

    socket = socket or socket_in(os.environ)
    if socket:
        check_mount(socket)
    return Tmux(socket) if socket else None


@contextlib.contextmanager
def flashing(client: str) -> Iterator[None]:
    """Show a problem on a tmux client, if one is given.

    Output of a key binding would cover the pane, and a popup closes before it can be read.
    """
    try:
        yield
    except Problem as e:
        if not client:
            raise
        flash(str(e), client)


def flash(text: str, client: str) -> None:
    """Show a message in the status line of a tmux client for a moment."""
    if (tmux := tmux_server()) is not None:
        tmux.say(client, f"bellboard: {text}")


def stop(args: Args) -> None:
    from .runner import carry_out

    p = listed_session(args.session)
    pid = p.get("pid") or p.get("far_pid")
    if not pid:
        raise Problem(f"{args.session}: its process is unknown; stop it in its terminal")
    print(f"{args.session}: {carry_out('stop', p, pid=pid)['text']}")
