"""What a person says of a session: set, label, name, park, snooze, forget.

It goes through the spool like all evidence, so it is logged, replayed, and seen by every host.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .home import Args, Commands, Problem, add, find, opened


def add_to(commands: Commands) -> None:
    set_ = add(
        commands, "set", set_status, "correct the status of a session, until the next evidence"
    )
    set_.add_argument("session")
    set_.add_argument("status")
    label = add(commands, "label", set_label, "put a label on a session; without one, take it off")
    label.add_argument("session")
    label.add_argument("label", nargs="?", default="", help="ONEOFF, HEAVY, IMPORTANT or your own")
    name = add(commands, "name", set_name, "name a session; without a name, take it off")
    name.add_argument("session")
    name.add_argument("name", nargs="?", default="")
    park = add(commands, "park", park_session, "keep a session from asking for attention")
    park.add_argument("session")
    park.add_argument("--back", action="store_true", help="let it ask again")
    snooze = add(commands, "snooze", snooze_session, "let a session ask again later")
    snooze.add_argument("session")
    snooze.add_argument("minutes", type=float, nargs="?", default=10.0, help="default: 10; 0: now")
    forget = add(commands, "forget", forget_session, "take a session off the board")
    forget.add_argument("session")


def set_status(args: Args) -> None:
    from ..core.session import STATUSES

    known = [s for s in STATUSES if s != "unknown"]  # nobody can know that it is unknown
    if args.status not in known:
        raise Problem(f"{args.status} is no status to set; one of {', '.join(known)} is")
    tell(args.session, "set", status=args.status)


def set_label(args: Args) -> None:
    tell(args.session, "label", label=args.label)


def set_name(args: Args) -> None:
    tell(args.session, "name", name=args.name)


def park_session(args: Args) -> None:
    tell(args.session, "park", parked=not args.back)


def snooze_session(args: Args) -> None:
    tell(args.session, "snooze", until=time.time() + max(0.0, args.minutes) * 60)


def forget_session(args: Args) -> None:
    tell(args.session, "forget")


def tell(called: str, key: str, **facts: Any) -> None:
    """Add evidence about a session, see that it is folded, and say if it was refused."""
    with opened() as clerk:
        sid = find(clerk, called)
        t = time.time()
        line: Mapping[str, object] = {"t": t, key: {"session_id": sid, **facts}}
        try:
            clerk.spool.write(line)
        except OSError as e:
            raise Problem(f"cannot write into {clerk.spool.new}: {e.strerror}") from None
    with opened() as clerk:
        for row in reversed(clerk.store.log(sid)):
            if (row.event.name, row.event.t) == (key, t):
                if not row.taken:
                    raise Problem(f"{sid}: refused, {row.why}")
                return
