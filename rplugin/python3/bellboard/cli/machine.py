"""The `machine` command: choose which machines to follow, and test the connection."""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import shlex
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .arguments import Args, Subcommands, add, add_verbs
from .home import Problem, here, opened, print_json, reason, refusals

if TYPE_CHECKING:
    from ..core.feed import FeedState, Hello
    from ..storage.machines import Machines


APART: Final = 2.0  # seconds between two clocks that are worth reporting
START: Final = "start Neovim or `bellboard serve`"


def add_to(commands: Subcommands) -> None:
    verbs = add_verbs(commands, "machine", "follow sessions on other machines")
    added = add(verbs, "add", add_machine, "follow a machine, or change its command")
    removed = add(verbs, "remove", remove_machine, "stop following a machine")
    listed = add(verbs, "list", show_machines, "list the followed machines")
    tested = add(verbs, "test", try_out, "check the connection to a machine")
    for one in (added, removed, tested):
        one.add_argument("name", metavar="NAME", help="your name for it, such as dev")
    for one in (added, tested):
        command = "-- COMMAND ..." if one is added else "[-- COMMAND ...]"
        one.usage = f"{one.prog} [-h] NAME {command}"
        text = "the command that reaches it, such as: ssh dev"
        one.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER, help=text)
    listed.add_argument("--json", action="store_true", help="print JSON")


def add_machine(args: Args) -> None:
    from msgspec.structs import replace

    from ..storage import machines

    words = _words(args)
    if not words:
        raise Problem(
            f"the command is missing: bellboard machine add {args.name} -- ssh {args.name}"
        )
    if why := machines.wrong(args.name, words):
        raise Problem(f"{args.name}: {why}")

    def added(known: Machines) -> Machines:
        if args.name not in known.all and len(known.all) >= machines.MOST:
            raise Problem(f"already following {len(known.all)} machines; remove one first")
        return replace(known, added={**known.added, args.name: words})

    known = _store(added)
    if args.name in known.nvim and known.nvim[args.name] != words:
        print(f"{args.name} is also in vim.g.bellboard.machines, which takes precedence")
    else:
        print(f"following {args.name}: {shlex.join(words)}")
        print(f"next: bellboard machine test {args.name}")


def remove_machine(args: Args) -> None:
    from msgspec.structs import replace

    def removed(known: Machines) -> Machines:
        if args.name in known.nvim:
            raise Problem(f"{args.name} is in vim.g.bellboard.machines; remove it there")
        if args.name not in known.added:
            raise Problem(f"no machine is named {args.name}; see `bellboard machine list`")
        left = {name: words for name, words in known.added.items() if name != args.name}
        return replace(known, added=left)

    _store(removed)
    print(f"{args.name} is no longer followed")


def show_machines(args: Args) -> None:
    from ..core import words
    from ..core.text import plain

    known = _known()
    with opened() as shared:
        links = dict(shared.board.ledger.links) if shared.spool.hosts.alive() else {}
        count: dict[str, int] = {}
        for s in shared.board.sessions.values():
            if s.machine and s.turn != "absent":
                count[s.machine] = count.get(s.machine, 0) + 1
    rows: list[dict[str, Any]] = []
    for name, command in known.all.items():
        link = links.get(name)
        row: dict[str, Any] = {"name": name, "command": command, "sessions": count.get(name, 0)}
        row["by"] = "vim.g.bellboard" if name in known.nvim else "bellboard machine add"
        rows.append({**row, "up": link.up, "since": link.since, "why": link.why} if link else row)
    if args.json:
        print_json({"machines": rows})
        return
    if not rows:
        print("no machines yet; add one: bellboard machine add dev -- ssh dev")
    for row in rows:
        state = f"not connected: no background process is running; {START}"
        if "up" in row:
            ago = words.age(row["since"], time.time())
            state = words.amount(row["sessions"], "session")
            state += "" if row["up"] else f", unreachable ({ago}): {plain(row['why'])}"
        print(f"{row['name']:12} {plain(shlex.join(row['command']))}: {state}")


def try_out(args: Args) -> int:
    """Read a machine's feed until it has sent its sessions, and print what is missing there."""
    from ..core import feed
    from ..storage import machines

    words = _words(args) or _known().all.get(args.name)
    if not words:
        raise Problem(
            f"no machine is named {args.name}; give its command: "
            f"bellboard machine test {args.name} -- ssh {args.name}"
        )
    if why := machines.wrong(args.name, words):
        raise Problem(f"{args.name}: {why}")
    if sys.stderr.isatty():
        print(f"asking {args.name}, up to {PATIENCE:.0f} s …", file=sys.stderr, flush=True)
    begun = time.monotonic()
    hello, state, replies = tried(args.name, words)
    took, apart = time.monotonic() - begun, hello.now - time.time()
    if _is_own(hello, state):
        raise Problem(f"{args.name}: {feed.OWN}")
    print(f"{args.name} can be followed: bellboard {hello.version}, connected in {took:.1f} s")
    print(f"  sessions: {len(state.all)}; agents: {', '.join(hello.agents) or 'none'}")
    if not _is_here():
        print(f"  no background process runs here, so it is not followed yet: {START}")
    if not hello.hooks:
        print("  it has no hooks, so less is known: run `bellboard hooks install` there")
    if not replies:
        print("  it takes no requests, so nothing can be answered from here: its command must pass")
        print("  on standard input, as `docker exec -i` does")
    if not hello.hosts:
        print("  no background process runs there; none is needed while the link is up")
    if abs(apart) > APART + took:
        way = "ahead of" if apart > 0 else "behind"
        print(f"  its clock is {abs(apart):.0f} s {way} this one; times are corrected")
    return 0


def _is_here() -> bool:
    """Return whether a background process runs here, which follows the named machines."""
    from ..storage.spool import Spool

    with contextlib.suppress(OSError):
        return bool(Spool(here()).hosts.alive())
    return False


def _is_own(hello: Hello, state: FeedState) -> bool:
    """Return whether a feed shows our own board."""
    from ..storage.store import DATABASE
    from ..system.clock import boot_id

    if hello.boot != boot_id():
        return False

    with contextlib.suppress(Problem), opened() as shared:
        return state.cursor.startswith(f"{shared.store.option(DATABASE)}.")
    return False


def _words(args: Args) -> list[str]:
    given: list[str] = args.command
    return given[1:] if given[:1] == ["--"] else given


def _known() -> Machines:
    from ..storage import machines

    home = here()
    try:
        return machines.stored(home)
    except OSError as e:
        raise Problem(f"cannot read the list of machines: {reason(e, home)}") from None


def _store(edited: Callable[[Machines], Machines]) -> Machines:
    """Change the list of machines; return the previous list."""
    from ..storage import machines
    from ..storage.spool import Spool

    home, before = here(), _known()
    try:
        with refusals():
            Spool(home).prepare()
        machines.edit(home, edited)
    except OSError as e:
        raise Problem(f"cannot change the list of machines: {reason(e, home)}") from None
    return before


# ---------------------------------------------------------------- trying a machine's command

PATIENCE: Final = 25.0  # seconds to wait for the state; logging in can take a while
REPLY: Final = 3.0  # more seconds for the reply to a request
CHUNK: Final = 1 << 16
INSTALL: Final = "./build.sh && .venv/bin/bellboard path"
NO_PASSWORD: Final = "sudo must not ask here: allow this command in sudoers with NOPASSWD"
OF_SSH: Final = {
    "permission denied": "ssh must log in without asking: set up a key or an agent",
    "connection refused": "nothing listens there: is sshd running?",
}
AGAIN: Final = "run in the folder of bellboard.nvim there: " + INSTALL
HINTS: Final = {
    "docker daemon": "start docker here, or let your user run it",
    "identification has changed": "find out why; if that is expected, ssh-keygen -R its name,"
    " and log in once by hand",
    "host key verification failed": "log in once by hand to check and accept the key",
    "could not resolve": "check the name of the machine",
    "not installed there": f"clone bellboard.nvim there, and run in it: {INSTALL}",
    "exec: bellboard: not found": f"the Python that it was installed with is gone: {AGAIN}",
    "bad interpreter": f"the Python that it was installed with is gone: {AGAIN}",
    "no module named": f"it is not completely installed there: {AGAIN}",
    "invalid choice": "update bellboard there: that version has no feed",
    "no such program here": "install it, or correct it: bellboard machine add NAME -- COMMAND",
    "no such container": "start the container",
    "is not running": "start the container",
    "not a tty": "leave -t out of its command: a feed needs no terminal",
    "a password is required": NO_PASSWORD,
    "a terminal is required": NO_PASSWORD,
}


def tried(name: str, words: list[str]) -> tuple[Hello, FeedState, bool]:
    """Read a machine's feed until its state has arrived, without becoming a follower.

    Return the feed's hello, its state, and whether it replies to a request.
    """
    from ..core.feed import asking
    from ..system import remotely
    from ..system.failures import described
    from ..system.programs import Leashed

    # A shared connection would hide that a key or a host has changed since it was made.
    try:
        feed = Leashed(remotely.command_of(words, ["feed", "--quiet"], None, slow=True))
    except (OSError, ValueError) as e:
        raise Problem(f"{name}: cannot run its command: {described(e)}") from None
    trial = _Trial()
    until = time.monotonic() + PATIENCE
    try:
        with contextlib.suppress(OSError):  # it has ended
            os.write(feed.stdin, asking(1, "clock", {}))
        with selectors.DefaultSelector() as ready:
            ready.register(feed.stdout, selectors.EVENT_READ)
            ready.register(feed.stderr, selectors.EVENT_READ)
            while not trial.is_over and (left := until - time.monotonic()) > 0:
                for key, _ in ready.select(left):
                    with contextlib.suppress(BlockingIOError):
                        data = os.read(key.fd, CHUNK)
                        trial.take(data, is_error=key.fd == feed.stderr)
                        if not data:
                            ready.unregister(key.fd)
                if trial.state is not None:
                    until = min(until, time.monotonic() + REPLY)
        if trial.why:
            raise Problem(f"{name}: {trial.why}")
        if trial.hello is None or trial.state is None:
            code = feed.code(1.0)
            with contextlib.suppress(OSError):  # nothing more
                trial.take(os.read(feed.stderr, CHUNK), is_error=True)
            raise Problem(_why(name, words, trial, code))
        return trial.hello, trial.state, trial.replies
    finally:
        feed.end()


class _Trial:
    """The messages of a feed so far."""

    def __init__(self) -> None:
        from ..core.feed import FeedLines

        self.hello: Hello | None = None
        self.state: FeedState | None = None
        self.replies = False
        self.why = ""
        self.errors = b""
        self.is_over = False
        self.lines = FeedLines()

    def take(self, data: bytes, is_error: bool) -> None:
        if is_error:
            self.errors = (self.errors + data)[-CHUNK:]
            return
        from ..core import feed

        for said in self.lines.take(data):
            if isinstance(said, feed.FeedProblem):
                self.why = self.why or said.text
            elif isinstance(said, feed.Hello):
                self.hello = said
            elif isinstance(said, feed.Reply):
                self.replies = True
            elif isinstance(said, feed.FeedState) and self.hello is not None:
                self.state = self.state or said
        self.is_over = not data or bool(self.why or (self.state and self.replies))


def _why(name: str, words: list[str], trial: _Trial, code: int | None) -> str:
    from ..core.feed import FOREIGN
    from ..system import remotely
    from ..system.programs import last_words

    foreign = trial.lines.foreign
    ended = f"no answer in {PATIENCE:.0f} s"
    if code is not None or trial.is_over:
        ended = "it ended before it sent its sessions" + (f" (exit code {code})" if code else "")
        ended += f"; it printed: {foreign}" if foreign else ""
    elif foreign:
        ended = FOREIGN.format(foreign)
    why = last_words(trial.errors) or ended
    text = " ".join(trial.errors.decode("utf-8", "replace").lower().splitlines())
    hints = {**HINTS, **(OF_SSH if remotely.is_ssh(words) else {})}
    hint = next((hint for part, hint in hints.items() if part in text), "")
    hint = hint or f"try the command by hand: {shlex.join(words)} bellboard feed"
    return f"{name}: {why}; {hint}"
