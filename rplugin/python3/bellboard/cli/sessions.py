"""What the sessions do: list, status."""

from __future__ import annotations

import time
from pathlib import Path

from .home import Args, Commands, Problem, add, opened, print_json


def add_to(commands: Commands) -> None:
    listing = add(commands, "list", list_sessions, "list the sessions, most urgent first")
    listing.add_argument("--json", action="store_true", help="everything published, for programs")
    listing.add_argument("--all", action="store_true", help="hidden sessions too")
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
    from ..published import snapshot

    with opened() as clerk:
        sessions = snapshot(clerk.board.sessions.values())
    now = time.time()
    if args.json:
        print_json({"v": 1, "t": now, "sessions": sessions})
        return
    from .. import terminal

    terminal.show_list(sessions, now, hidden=args.all)


def show_status(args: Args) -> int:
    from .. import words
    from ..published import of_directory, snapshot

    with opened() as clerk:
        sessions = snapshot(clerk.board.sessions.values())
    if args.dir is not None:
        path = Path(args.dir).expanduser()
        if not path.is_dir():
            raise Problem(f"{args.dir} is no directory")
        found = of_directory(sessions, str(path.resolve()))
        print(found["status"] if found else "none")
        return 0 if found else 1
    room = args.width if args.width and args.width > 0 else words.ROOM
    if text := words.status_text(sessions, time.time(), room):
        print(text)
    return 0
