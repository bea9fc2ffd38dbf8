"""Commands that show sessions: list, status, show."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from .arguments import Args, Subcommands, add, add_session, filled
from .home import (
    OFTEN,
    Problem,
    absolute,
    find_session,
    icons,
    listed,
    opened,
    print_json,
    shown,
    verify,
    with_pane_names,
)

if TYPE_CHECKING:
    from ..core.published import Published


def add_to(commands: Subcommands) -> None:
    listing = add(commands, "list", list_sessions, "list sessions, most urgent first")
    listing.add_argument("--json", action="store_true", help="print everything as JSON")
    listing.add_argument("--all", action="store_true", help="include hidden sessions")
    text = "list only the sessions of this machine, as named in `bellboard machine list`"
    listing.add_argument("--machine", metavar="NAME", type=filled, help=text)
    listing.add_argument(
        "--ended", action="store_true", help="list ended sessions that can be resumed"
    )
    listing.add_argument(
        "--dir", metavar="PATH", type=filled, help="with --ended: only sessions of this directory"
    )
    status = add(commands, "status", show_status, "print one line for a status bar: what needs you")
    status.add_argument(
        "--dir",
        metavar="PATH",
        type=filled,
        help="print only the status of the session in PATH (or below, or above); "
        "prints none and fails if there is no session",
    )
    text = "show it in this tmux server, as @bellboard-status, unless a background process does"
    status.add_argument("--tmux", action="store_true", help=text)
    status.add_argument("--width", type=int, metavar="CELLS", help="maximum width")
    turn = add(
        commands, "show", show_turn, "print the last reply of a session, and what it changed"
    )
    add_session(turn)
    turn.add_argument("--json", action="store_true", help="print JSON")


def list_sessions(args: Args) -> None:
    if args.ended:
        if args.all or args.machine is not None:
            raise Problem("--all and --machine list running sessions; leave out --ended")
        list_ended(args)
        return
    if args.dir is not None:
        raise Problem("--dir needs --ended; for a running session use `bellboard status --dir`")
    with opened() as shared:
        sessions, worn = of_machine(listed(shared), args.machine), icons(shared)
    now = time.time()
    if args.json:
        from ..core.words import worded

        print_json({"t": now, "sessions": [worded(p) for p in sessions]})
        return
    from ..screen import terminal

    sessions, start = with_pane_names(sessions), ""
    if not sessions:
        from ..screen.first_run import first_run

        start = first_run(os.environ)
    terminal.show_list(sessions, now, args.all, start, worn)


def of_machine(sessions: list[Published], name: str | None) -> list[Published]:
    """Return the sessions of another machine, or all sessions if no machine is named."""
    if name is None:
        return sessions
    names = {p["machine"] for p in sessions if p.get("machine")}
    if name not in names:
        some = f"; there are sessions of {', '.join(sorted(names))}" if names else ""
        raise Problem(f"no sessions of machine {name}{some}; see `bellboard machine list`")
    return [p for p in sessions if p.get("machine") == name]


def list_ended(args: Args) -> None:
    """List ended sessions whose transcript still exists: a CLI cannot resume without it."""
    from ..agents.registry import agent_of
    from ..core.published import ended

    with opened() as shared:
        over = ended(shared.board.sessions.values(), directory(args.dir) if args.dir else "")
    there = [
        {**p, "resume": agent_of(p["agent"]).resume(p["session_id"])}
        for p in over
        if os.path.isfile(p.get("transcript", ""))  # noqa: PTH113 - never raises
        or not agent_of(p["agent"]).keeps_transcripts
    ]
    if args.json:
        from ..core.words import worded_ended

        print_json({"t": time.time(), "ended": [worded_ended(p) for p in there]})
        return
    from ..screen import terminal

    terminal.show_ended(there, time.time())


def directory(named: str) -> str:
    """Resolve a directory as CLIs do when they report theirs."""
    path = absolute(named)
    if not path.is_dir():
        raise Problem(f"{named} is not a directory")
    return str(path.resolve())


def show_status(args: Args) -> int:
    from ..core import words
    from ..core.published import of_directory
    from ..core.words import outdated

    if args.tmux:
        return show_in_tmux()
    with opened() as shared:
        sessions, worn = shown(shared, OFTEN), icons(shared)
    if args.dir is not None:
        found = of_directory(sessions, directory(args.dir))
        if found is None:
            print("none")
            return 1
        print("  ".join(filter(None, (found["status"], outdated(found, time.time())))))
        return 0
    room = args.width if args.width and args.width > 0 else words.ROOM
    if text := words.status_text(sessions, time.time(), room, worn):
        print(text)
    return 0


def show_in_tmux() -> int:
    """Set the status in the tmux server that we run in, unless a host does."""
    from ..core import words
    from ..hosting.tmux_status import OPTION
    from .goto import tmux_server

    if (tmux := tmux_server()) is None:
        raise Problem("`bellboard status --tmux` runs in tmux")
    with opened() as shared:
        hosts = shared.spool.hosts
        if hosts.is_watching():
            return 0
        text = words.status_text(shown(shared, OFTEN), time.time(), icons=icons(shared))
        is_new = tmux.ask("show-options", "-gqv", OPTION) != f"{text}\n"
        if is_new and not (hosts.is_watching() or tmux.set_option(OPTION, text)):
            raise Problem(tmux.why)
    return 0


# ---------------------------------------------------------------- the last turn


def rests(p: Published) -> bool:
    return p["status"] not in ("working", "blocked")


def show_turn(args: Args) -> int:
    """Print the last turn of a session: its reply whole, as Markdown, and the files that differ."""
    from ..core import words
    from .runner import Runner

    with opened() as shared:
        verify(shared)
        sid = find_session(shared, args.session, makes_sense=rests)
        p = next((p for p in listed(shared) if p["session_id"] == sid), {})
        reply = Runner(shared, "").do("turn", {"session_id": sid})
    if args.json:
        print_json(reply)
    elif not reply["ok"]:
        raise Problem(f"{words.project(p) or args.session}: {reply['why']}")
    else:
        from ..screen import terminal
        from ..screen.request import turn_lines

        out = terminal.console()
        terminal.write(out, turn_lines(reply["turn"], words.project(p), time.time(), out.width))
    return 0 if reply["ok"] else 1
