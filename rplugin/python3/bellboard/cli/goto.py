"""Commands that go to the place of a session, or end its process: goto, pick, stop."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from .arguments import Args, Subcommands, add, add_session
from .home import Problem, check_mount, find_session, has_terminal, icons, listed, opened, paints

if TYPE_CHECKING:
    from ..core.published import Published
    from ..system.tmux import Tmux


CLIENT = "use this tmux client (default: the one in use, or the last used)"


def add_to(commands: Subcommands) -> None:
    jump = add(commands, "goto", go_to, "jump to a session, in its tmux pane or Neovim")
    add_session(jump, nargs="?")
    jump.add_argument("--next", action="store_true", help="jump to the next one that needs you")
    jump.add_argument("--client", metavar="NAME", default="", help=CLIENT)
    text = "attach this terminal to its tmux pane, until you detach (over ssh: ssh -t)"
    jump.add_argument("--attach", action="store_true", help=text)
    pick = add(commands, "pick", pick_session, "choose a session in the terminal and jump to it")
    pick.add_argument("--client", metavar="NAME", default="", help=CLIENT)
    pick.add_argument("--print", action="store_true", help="print the chosen id and do not jump")
    text = "stop the process of a session, after verifying that it is the right one"
    add_session(add(commands, "stop", stop, text))


def go_to(args: Args) -> None:
    if bool(args.session) == args.next:
        raise Problem("give either a session or --next; run `bellboard list` to see them all")
    if args.attach:
        attach_terminal(next_needing("") if args.next else listed_session(args.session))
        return
    if not args.next:
        jump_to(listed_session(args.session), args.client)
        return
    with flashing(args.client):
        jump_to(next_needing(args.client), args.client)


def pick_session(args: Args) -> int:
    from ..screen.picker import choose

    if not (has_terminal() and paints()):
        raise Problem(
            "`bellboard pick` needs a terminal whose cursor can be moved; "
            "use `bellboard list` instead"
        )
    with opened() as shared:
        shown, worn = [p for p in listed(shared) if not p["hidden"]], icons(shared)
    chosen = choose(shown, worn)
    if chosen is None:
        return 1
    if args.print:
        print(chosen["session_id"])
        return 0
    with flashing(args.client):
        jump_to(chosen, args.client)
    return 0


def listed_session(called: str) -> Published:
    """Return the one listed session with that id, start of an id, or name."""
    with opened() as shared:
        sid = find_session(shared, called)
        found = next((p for p in listed(shared) if p["session_id"] == sid), None)
    if found is None:
        raise Problem(f"the session {called} has ended; run `bellboard list --ended`")
    return found


def next_needing(client: str) -> Published:
    from ..core.published import needs_you
    from ..hosting import jump

    tmux = tmux_server()
    shown = client or (jump.asking_client(tmux, os.environ) if tmux else "")
    with opened() as shared:
        needing = [p for p in listed(shared) if needs_you(p)]
    found = jump.after(needing, tmux, shown)
    if found is None:
        raise Problem("no session needs you")
    return found


def attach_terminal(p: Published) -> None:
    """Become a tmux client that shows the session; inside that tmux, jump to it."""
    from ..hosting import jump

    if not has_terminal():
        raise Problem("`bellboard goto --attach` needs a terminal; over ssh: ssh -t")
    if jump.is_here(p, os.environ):
        jump_to(p, "")
        return
    if p.get("machine"):
        become(ask_machine(p, attach=True)["command"])
    try:
        command = jump.attach(p)
    except jump.JumpFailed as e:
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
    """Jump to a session, and mark it as seen."""
    from ..hosting import jump

    where = p
    if p.get("machine"):
        reply = ask_machine(p)
        if "command" in reply:
            open_terminal(reply["command"], client)
            return
        where = {"session_id": p["session_id"], **reply.get("place", {"shown": True})}
    try:
        advice = "" if where.get("shown") else jump.show_terminal(where, os.environ, client)
    except jump.JumpFailed as e:
        raise Problem(str(e)) from None
    mark_seen(p)
    if advice and client:
        flash(advice, client)
    elif advice:
        print(advice)


def ask_machine(p: Published, attach: bool = False) -> dict[str, Any]:
    """Ask the session's machine to show it here; return the place, or a command that opens it."""
    from .runner import carry_out

    return carry_out("goto", p, attach=attach)


def open_terminal(command: list[str], client: str) -> None:
    """Run a command in a new window of that tmux client, else in this terminal."""
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
    """Return the tmux server at that socket, or the one that we run in."""
    from ..system.tmux import Tmux, socket_in

    socket = socket or socket_in(os.environ)
    if socket:
        check_mount(socket)
    return Tmux(socket) if socket else None


@contextlib.contextmanager
def flashing(client: str) -> Iterator[None]:
    """Show a problem on that client, if one is given.

    Output of a key binding would cover the pane, and a popup closes before it can be read.
    """
    try:
        yield
    except Problem as e:
        if not client:
            raise
        flash(str(e), client)


def flash(text: str, client: str) -> None:
    """Show a message in the status line of that client for a moment."""
    if (tmux := tmux_server()) is not None:
        tmux.say(client, f"bellboard: {text}")


def stop(args: Args) -> None:
    from .runner import carry_out

    p = listed_session(args.session)
    pid = p.get("pid") or p.get("far_pid")
    if not pid:
        raise Problem(f"{p['session_id']}: its process is unknown; stop it in its terminal")
    print(f"{p['session_id']}: {carry_out('stop', p, pid=pid)['text']}")
