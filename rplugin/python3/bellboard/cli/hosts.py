"""Commands that run until they are stopped: serve, watch, feed."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .arguments import Args, Subcommands, add
from .home import Problem, here, icons, opened, paints, print_json, reason, refusals, verify, warn

if TYPE_CHECKING:
    from ..hosting.host import Host


Message = dict[str, Any]
Push = Callable[[Message], None]
GLANCE = 0.2  # seconds to wait for the screen to be restored
#: Syntax that only a shell would understand.
SHELL = re.compile(r"(?:(?<=\s)(?:\|\|?|&&?|;|[0-9]?>>?(?:&[0-9])?|<)(?=\s|$))|;(?=\s)|\$\(")
NOBODY = -1  # no output whose reader could go away


def add_to(commands: Subcommands) -> None:
    watch = add(commands, "watch", watch_sessions, "show a live list of sessions")
    watch.add_argument("--json", action="store_true", help="print status changes as JSON lines")
    serve = add(commands, "serve", serve_host, "run the background process without an editor")
    serve.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="STATUS=COMMAND",
        help="run COMMAND, without a shell, with four more arguments: from to session project; "
        "STATUS may also be ended, or transition for all",
    )
    serve.add_argument("--pull-requests", action="store_true", help="look up pull requests with gh")
    serve.add_argument(
        "--fleet", action="store_true", help="fail unless this machine has joined a fleet"
    )
    serve.add_argument(
        "--notices",
        nargs="?",
        const="{}",
        metavar="JSON",
        help="notify as Neovim does, with these settings (:help bellboard-notices)",
    )
    feed = add(
        commands,
        "feed",
        print_feed,
        "print sessions and changes as JSON lines, for another machine or a program",
    )
    feed.add_argument(
        "--since", metavar="CURSOR", help="start after this cursor, which an earlier feed printed"
    )
    feed.add_argument(
        "--quiet", action="store_true", help="do not take over the notifications of this machine"
    )


def serve_host(args: Args) -> None:
    import json
    import shlex

    from ..core.session import STATUSES

    if args.fleet:
        from ..fleet.member import settings_in
        from ..storage.machines import OPTION

        with opened() as shared:
            is_in = settings_in(shared.store.option(OPTION)) is not None
        if not is_in:
            raise Problem("this machine is not in a fleet; run `bellboard fleet join URL` first")
    known = (*STATUSES, "ended", "transition")
    commands = {}
    for spec in args.on:
        status, _, command = spec.partition("=")
        if status not in known or not command.strip():
            raise Problem(f"--on {spec}: expected STATUS=COMMAND, with STATUS {', '.join(known)}")
        try:
            commands[status] = shlex.split(command)
        except ValueError as e:
            raise Problem(f"--on {spec}: {e}") from None
        if meant := SHELL.search(command):
            warn(f"--on {status}: no shell runs it, so {meant[0]} is an argument; use sh -c '…'")
    config: dict[str, Any] = {"callbacks": commands, "pull_requests": args.pull_requests}
    if args.notices is not None:
        try:
            config["notices"] = json.loads(args.notices)
        except ValueError as e:
            raise Problem(f"--notices: expected a JSON object: {e}") from None
        if not isinstance(config["notices"], dict):
            raise Problem(f"--notices: expected a JSON object, not {args.notices}")
    run_host(NotePrinter().push, config, NOBODY)
    leave_at_once()


def watch_sessions(args: Args) -> None:
    if args.json:
        notes = NotePrinter()

        def push(message: Message) -> None:
            try:
                for transition in message["transitions"]:
                    print_json(transition)
                sys.stdout.flush()
            except BrokenPipeError:
                raise
            except OSError as e:
                raise Problem(f"cannot write to standard output: {e.strerror}") from None
            notes.push(message)

        run_host(push, {})
        leave_at_once()
    elif paints():
        from ..core import words
        from ..screen.first_run import first_run
        from ..screen.live import Live

        worn: Mapping[str, str] = words.ICONS
        # The host itself reports problems.
        with contextlib.suppress(Problem), opened() as shared:
            verify(shared)  # for the first picture
            worn = icons(shared)
        live = Live(first_run(os.environ), worn)
        with live.screen as screen:
            run_host(live.push, {}, begin=live.begin)
            leave_at_once(screen.close)
    else:
        from ..screen.live import Stream

        run_host(Stream().push, {})
        leave_at_once()


class NotePrinter:
    """Prints each new health note on standard error."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def push(self, message: Message) -> None:
        if "health" not in message:  # absent while it is unchanged
            return
        notes: dict[str, str] = message["health"].get("notes", {})
        for about, note in notes.items():
            if self._seen.get(about) != note:
                warn(f"{about}: {note}")
        self._seen = dict(notes)


def run_host(
    push: Push,
    config: dict[str, Any],
    output: int = 1,
    begin: Callable[[Host], None] | None = None,
    end: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Run a host until a signal ends it, which is returned, or it stops; raise what its reader did.

    `begin` is called with the host in its event loop, and `end` there once it has ended.
    """
    import asyncio

    from ..hosting.host import Host
    from ..system.ending import attended, suspending

    home = here()
    unread: list[Exception] = []

    def deliver(message: Message) -> None:
        try:
            push(message)
        except (BrokenPipeError, Problem) as e:
            unread.append(e)
            host.stop()

    host = Host(home, deliver, config)

    async def live() -> None:
        if begin is not None:
            begin(host)
        try:
            await host.run()
        finally:
            if end is not None:
                await end()

    # Notice at once when the reader is gone, such as `head` in `watch | head -1`.
    held = output if output != NOBODY and _is_pipe(output) else NOBODY
    try:
        with refusals(), suspending(host.rest, lambda: None):
            ended_by = attended(lambda: asyncio.run(live()), host.stop, held)
    except OSError as e:
        raise Problem(f"cannot start in {home}: {reason(e, home)}") from None
    if unread:
        raise unread[0]
    return ended_by


def leave_at_once(tidy: Callable[[], object] | None = None) -> None:
    """Exit at once: Python would wait for threads that hang."""

    def last() -> None:
        if tidy is not None:
            tidy()
        with contextlib.suppress(OSError):
            sys.stdout.flush()

    _glance(last)  # the terminal may be what hangs
    os._exit(0)


def _glance(work: Callable[[], None]) -> None:
    """Run work that may hang, and leave it behind if it does."""
    from ..system.reach import Hangs, reach, run_alone

    with contextlib.suppress(Hangs):
        run_alone(reach(work, within=GLANCE))


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def print_feed(args: Args) -> None:
    from ..core.feed import cursor_of
    from ..hosting.feed_server import Feeding
    from ..hosting.hello import hello as hello_of

    tell = alone()
    feeding = None
    with ending(tell, lambda: feeding.finish() if feeding is not None else None):
        since = cursor_of(args.since)
        if args.since and since is None:
            raise Problem(f"--since {args.since}: not a cursor; take one from a feed, or omit it")
        hello = hello_of(here())
        made = feeding = Feeding(since, args.quiet, 0, tell)
        run_host(made.push, {}, tell, lambda host: made.begin(host, hello))
        if feeding.why:
            raise Problem(feeding.why)
    leave_at_once(feeding.finish)


def alone() -> int:
    """Return a descriptor of standard output; other output goes to standard error from now on."""
    tell = os.dup(1)
    os.dup2(2, 1)
    return tell


@contextlib.contextmanager
def ending(tell: int, finish: Callable[[], object]) -> Iterator[None]:
    """Call `finish` if a feed fails, then tell its reader the reason."""
    from ..core import feed
    from ..core.feed import FeedProblem as Said

    try:
        yield
    except Problem as e:
        finish()
        _last(tell, feed.encoded(Said(str(e))))
        raise


def _last(descriptor: int, data: bytes) -> None:
    """Write a last line, unless the reader has stopped reading."""

    def write() -> None:
        with contextlib.suppress(OSError):
            os.write(descriptor, data)

    _glance(write)
