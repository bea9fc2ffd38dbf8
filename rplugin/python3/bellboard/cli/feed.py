"""The `feed` command: this machine's sessions as JSON lines, for readers on other machines."""

from __future__ import annotations

import contextlib
import os
import threading

from .adding import Args, Commands, add
from .home import Problem, here
from .hosts import GLANCE, leave, run_host


def add_to(commands: Commands) -> None:
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


def print_feed(args: Args) -> None:
    from ..core import feedlines
    from ..core.feed import Problem as Said
    from ..core.feed import cursor_of
    from ..hosting.feeding import Feeding
    from ..hosting.hello import hello as hello_of

    tell = os.dup(1)
    os.dup2(2, 1)  # keep stray output out of the feed
    feeding = None
    try:
        since = cursor_of(args.since)
        if args.since and since is None:
            raise Problem(f"--since {args.since}: not a cursor; take one from a feed, or omit it")
        hello = hello_of(here())
        made = feeding = Feeding(since, args.quiet, 0, tell)
        run_host(made.push, {}, tell, lambda host: made.begin(host, hello))
        if feeding.why:
            raise Problem(feeding.why)
    except Problem as e:
        if feeding is not None:
            feeding.finish()
        _last(tell, feedlines.encoded(Said(str(e))))
        raise
    leave(feeding.finish)


def _last(descriptor: int, data: bytes) -> None:
    """Write a last line, unless the reader has stopped reading."""

    def write() -> None:
        with contextlib.suppress(OSError):
            os.write(descriptor, data)

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    writing.join(GLANCE)
