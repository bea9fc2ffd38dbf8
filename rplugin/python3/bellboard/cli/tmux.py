"""The `tmux` command: the options and key bindings that bellboard sets in a tmux server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.text import plain
from .arguments import Args, Subcommands, add, filled
from .goto import tmux_server
from .home import Problem, check_mount, has_terminal, here, icons, opened, says_yes, warn
from .hooks import short

if TYPE_CHECKING:
    from ..system.tmux import Tmux


PATIENCE: Final = 5.0  # seconds to wait for a server before changing it; it may be busy
LARGEST: Final = 1 << 20  # bytes of a tmux.conf that is read
#: The keys after the prefix.
KEYS: Final = {"pick": "b", "answer": "M-a", "next": "B", "back": "M-b"}
NOT_SHOWN = """\
  status       not in the status line; --status adds it, or add it yourself,
               as `bellboard tmux` prints it"""


def add_to(commands: Subcommands) -> None:
    tmux = add(commands, "tmux", wire, "print or apply the tmux configuration")
    how = tmux.add_mutually_exclusive_group()
    how.add_argument("--apply", action="store_true", help="apply it to a running server")
    how.add_argument("--remove", action="store_true", help="remove it from a running server")
    tmux.add_argument("--status", action="store_true", help="add the status to the status line")
    tmux.add_argument("--quiet", action="store_true", help="print only problems")
    text = "the server (default: the current one)"
    tmux.add_argument("--socket", metavar="PATH", type=filled, help=text)
    for name, key in KEYS.items():
        text = f"key after the prefix for {name} (default: {key})"
        tmux.add_argument(f"--{name}", metavar="KEY", default=key, help=text)


def wire(args: Args) -> int:
    from . import wiring

    keys = {name: getattr(args, name) for name in KEYS}
    chosen = [x for name, key in keys.items() if key != KEYS[name] for x in (f"--{name}", key)]
    made = wiring.Wiring(here(), keys, chosen)
    if not (args.apply or args.remove):
        print(made.printed())
        return 0
    tmux = running(args.socket or "")
    if args.remove:
        wiring.remove_wiring(tmux)
        register(tmux, False)
        if not args.quiet:
            print(f"removed from the tmux server at {tmux.socket}: hooks, keys and the status")
            for line in kept():
                print(line)
        return 0
    register(tmux, True)
    problems = wiring.apply_wiring(tmux, made)
    is_shown = wiring.shows(tmux)
    if not args.quiet:
        print(f"set up in the tmux server at {tmux.socket}:")
        for key, (text, _) in made.keys.items():
            if not any(problem.startswith(f"prefix {key}: ") for problem in problems):
                print(f"  prefix {key:6}{text}")
    asks = not (is_shown or args.status or args.quiet) and has_terminal()
    if asks and says_yes("Add the status to the right of the status line?"):
        args.status = True
    if args.status and not is_shown:
        if why := wiring.show_status(tmux, made.shown):
            problems.append(f"status-right: {why}")
        is_shown = not why
    if not args.quiet:
        print("  status       in the status line" if is_shown else NOT_SHOWN)
        for problem in problems:
            print(_row(problem, keys))
        print(f"to set this up whenever tmux starts, add to ~/.tmux.conf:\n  {made.line(is_shown)}")
    for problem in problems if args.quiet else ["not everything could be set"] * bool(problems):
        warn(problem)
    return 1 if problems else 0


def _row(problem: str, keys: Mapping[str, str]) -> str:
    """Return an option or key that could not be set as a row of the list."""
    what, _, why = problem.partition(": ")
    other = [
        f"; --{name} KEY takes another" for name, key in keys.items() if what == f"prefix {key}"
    ]
    return f"  {what:12} not set: {plain(why)}{''.join(other)}"


def wired() -> list[Tmux]:
    """Return the running servers of this user that have our options or keys."""
    from ..system.tmux import Tmux, folder_of, socket_in, sockets
    from .wiring import is_wired

    check_mount(folder_of(os.environ))
    here = socket_in(os.environ)
    found = [x for x in {*sockets(os.environ), here} - {""} if is_wired(Tmux(x))]
    return [Tmux(x, PATIENCE) for x in found]


def kept() -> Iterator[str]:
    """Yield the lines to remove from each tmux.conf, which would set all this up again."""
    from ..system.files import read

    home = os.environ.get("HOME", "")
    folders = (os.environ.get("XDG_CONFIG_HOME", ""), f"{home}/.config" * bool(home))
    places = [f"{home}/.tmux.conf", *(f"{x}/tmux/tmux.conf" for x in folders if x)]
    for place in dict.fromkeys(places):
        try:
            lines = read(place, LARGEST, ours=False)[0].splitlines()  # only quoted, not trusted
        except OSError:
            continue
        set_ = [b"" if line.lstrip().startswith(b"#") else line for line in lines]
        ours = [n for n, line in enumerate(set_, 1) if b"bellboard" in line]
        if ours:
            which = f"line{'s' * (len(ours) > 1)} {', '.join(map(str, ours))}"
            yield f"kept: {short(Path(place))}; to finish, remove its {which} by hand"


def running(socket: str) -> Tmux:
    """Return a running server, with the socket path that it reports itself."""
    from ..system.tmux import Tmux, folder_of, sockets

    found = tmux_server(socket)
    if found is None:
        check_mount(folder_of(os.environ))
        there = [x for x in sockets(os.environ) if Tmux(x).panes()]
        if len(there) != 1:
            some = f", one of {', '.join(there)}" if there else ""
            raise Problem(f"not inside tmux: name a server with --socket PATH{some}")
        found = Tmux(there[0])
    path = found.ask("display-message", "-p", "#{socket_path}")
    if not path:
        raise Problem(found.why or f"no tmux server answers at {found.socket}")
    return Tmux(path.rstrip("\n"), PATIENCE)


def register(tmux: Tmux, wanted: bool) -> None:
    """Start or stop updating the status in this server, and record what its clients show."""
    from ..agents.installing import hook_record
    from ..core import words
    from ..core.published import snapshot
    from ..hosting.tmux_status import ASKED, OPTION

    now = time.time()
    with opened() as shared:
        hook_record.keep_script(shared.spool.home)
        with shared.store.transaction() as tx:
            asked = [x for x in shared.store.option(ASKED) or () if os.path.exists(x)]  # noqa: PTH110
            others = [x for x in asked if x != tmux.socket]
            wanting = [*others, tmux.socket] if wanted else others
            tx.set_option(ASKED, wanting, os.getpid(), now)
        for client in tmux.clients() or ():
            where = {"tmux": tmux.socket, "pane": client.pane} if client.focused else {}
            how = ("focus" if client.focused else "away") if wanted else "gone"
            view = {"t": now, "view": {**where, "how": how}}
            shared.spool.write({**view, "viewer": f"{tmux.socket} {client.name}"})
        sessions = snapshot(shared.board.sessions.values()) if shared.spool.hosts.alive() else []
        text = words.status_text(sessions, now, icons=icons(shared))  # "" if no host updates it
    if wanted:
        tmux.set_option(OPTION, text)
