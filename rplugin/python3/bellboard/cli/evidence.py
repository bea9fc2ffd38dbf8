"""Commands that change a session: set, label, name, park, snooze, forget.

Each writes evidence to the spool, so it is logged, replayed, and seen by every host.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .home import Args, Commands, Problem, add, find, opened


def add_to(commands: Commands) -> None:
    set_ = add(commands, "set", set_status, "correct the status of a session until its next event")
    set_.add_argument("session")
    set_.add_argument("status")
    label = add(commands, "label", set_label, "label a session; omit LABEL to remove it")
    label.add_argument("session")
    label.add_argument("label", nargs="?", default="", help="ONEOFF, HEAVY, IMPORTANT or your own")
    name = add(commands, "name", set_name, "name a session; omit NAME to remove it")
    name.add_argument("session")
    name.add_argument("name", nargs="?", default="")
    park = add(commands, "park", park_session, "mute a session")
    park.add_argument("session")
    park.add_argument("--back", action="store_true", help="unmute it")
    snooze = add(commands, "snooze", snooze_session, "mute a session for a while")
    snooze.add_argument("session")
    snooze.add_argument(
        "minutes", type=float, nargs="?", default=10.0, help="default: 10; 0 ends the snooze"
    )
    forget = add(commands, "forget", forget_session, "remove a session from the board")
    forget.add_argument("session")


def set_status(args: Args) -> None:
    from ..core.session import STATUSES

    known = [s for s in STATUSES if s != "unknown"]  # unknown is the absence of evidence
    if args.status not in known:
        raise Problem(f"cannot set the status {args.status}; use one of {', '.join(known)}")
    submit(args.session, "set", status=args.status)


def set_label(args: Args) -> None:
    submit(args.session, "label", label=args.label)


def set_name(args: Args) -> None:
    submit(args.session, "name", name=args.name)


def park_session(args: Args) -> None:
    submit(args.session, "park", parked=not args.back)


def snooze_session(args: Args) -> None:
    submit(args.session, "snooze", until=time.time() + max(0.0, args.minutes) * 60)


def forget_session(args: Args) -> None:
    submit(args.session, "forget")


def submit(called: str, key: str, **facts: Any) -> None:
    """Write evidence about a session, wait until it is folded, and report if it was refused."""
    with opened() as clerk:
        sid = find(clerk, called)
        t = time.time()
        line: Mapping[str, object] = {"t": t, key: {"session_id": sid, **facts}}
        try:
            clerk.spool.write(line)
        except OSError as e:
            raise Problem(f"cannot write to {clerk.spool.new}: {e.strerror}") from None
    with opened() as clerk:
        for row in reversed(clerk.store.log(sid)):
            if (row.event.name, row.event.t) == (key, t):
                if not row.taken:
                    raise Problem(f"session {sid}: refused: {row.why}")
                return
