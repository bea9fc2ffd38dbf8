"""What the sessions do: list, status."""

from __future__ import annotations

import time
from pathlib import Path

from .home import Args, Commands, Problem, add, listed, opened, print_json


def add_to(commands: Commands) -> None:
    listing = add(commands, "list", list_sessions, "list the sessions, most urgent first")
    listing.add_argument("--json", action="store_true", help="everything published, for programs")
    listing.add_argument("--all", action="store_true", help="hidden sessions too")
    listing.add_argument("--ended", action="store_true", help="those that can be resumed instead")
    listing.add_argument("--dir", metavar="PATH", help="with --ended: only of that directory")
    status = add(
        commands, "status", show_status, "say in one line what needs you, as status bars do"
    )
    status.add_argument(
        "--dir",
        metavar="PATH",
        help="only the status of the session that works there (or below, or above); "
        "prints none and fails if there is none",
    )
    status.add_argument("--width", type=int, metavar="CELLS", help="no wider than that")


def list_sessions(args: Args) -> None:
    if args.ended:
        list_ended(args)
        return
    if args.dir is not None:
        raise Problem("--dir goes with --ended; `bellboard status --dir` tells of one that runs")
    with opened() as clerk:
        sessions = listed(clerk)
    now = time.time()
    if args.json:
        from ..core.words import worded

        print_json({"v": 1, "t": now, "sessions": [worded(p) for p in sessions]})
        return
    from ..screen import terminal

    terminal.show_list(sessions, now, hidden=args.all)


def list_ended(args: Args) -> None:
    """Those whose transcript is still there: without it no CLI can go on."""
    from ..core.published import ended

    with opened() as clerk:
        over = ended(clerk.board.sessions.values(), directory(args.dir) if args.dir else "")
    there = [p for p in over if Path(p.get("transcript", "")).is_file()]
    if args.json:
        print_json({"v": 1, "t": time.time(), "ended": there})
        return
    from ..screen import terminal

    terminal.show_ended(there, time.time())


def directory(named: str) -> str:
    """A directory as the CLIs name the one that they work in."""
    path = Path(named).expanduser()
    if not path.is_dir():
        raise Problem(f"{named} is no directory")
    return str(path.resolve())


def show_status(args: Args) -> int:
    from ..core import words
    from ..core.published import of_directory, snapshot

    with opened() as clerk:
        sessions = snapshot(clerk.board.sessions.values())
    if args.dir is not None:
        found = of_directory(sessions, directory(args.dir))
        print(found["status"] if found else "none")
        return 0 if found else 1
    room = args.width if args.width and args.width > 0 else words.ROOM
    if text := words.status_text(sessions, time.time(), room):
        print(text)
    return 0
