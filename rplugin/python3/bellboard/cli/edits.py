"""Commands that change a session: set, label, name, park, snooze, forget.

Each writes evidence to the spool, so it is logged, can be replayed, and reaches every host.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .arguments import Args, Subcommands, add, add_session, minutes
from .home import Problem, find_session, opened

if TYPE_CHECKING:
    from ..core.session import Session
    from ..hosting.turn import SharedBoard


SNOOZE: Final = 15.0  # minutes; as in g:bellboard.notices.snooze
DAYLONG: Final = 720.0  # minutes; a longer snooze may end on another day
LONGEST: Final = 525_600.0  # minutes: a year; to mute a session for longer, park it


def add_to(commands: Subcommands) -> None:
    set_ = add(
        commands, "set", set_status, "correct the status of a session, until the next evidence"
    )
    add_session(set_)
    text = "blocked, error, completed, working, background or idle"
    set_.add_argument("status", metavar="STATUS", help=text)
    label = add(commands, "label", set_label, "label a session; omit LABEL to remove it")
    add_session(label)
    text = "ONEOFF, HEAVY, IMPORTANT or your own"
    label.add_argument("label", metavar="LABEL", nargs="?", default="", help=text)
    name = add(commands, "name", set_name, "name a session; omit NAME to remove it")
    add_session(name)
    name.add_argument("name", metavar="NAME", nargs="?", default="", help="what to call it")
    park = add(commands, "park", park_session, "mute a session; run again to unmute it")
    add_session(park)
    park.add_argument("--back", action="store_true", help="unmute it, even if it is not muted")
    snooze = add(
        commands, "snooze", snooze_session, "mute a session for a while; run again to unmute it"
    )
    add_session(snooze)
    text = "default: 15; 0 ends the snooze"
    snooze.add_argument("minutes", metavar="MINUTES", type=up_to_a_year, nargs="?", help=text)
    forget = add(commands, "forget", forget_session, "remove a session from the board")
    add_session(forget)


def up_to_a_year(text: str) -> float:
    """Take a number of minutes to snooze a session; refuse more than a year."""
    given = minutes(text)
    if given > LONGEST:
        raise argparse.ArgumentTypeError(f"longer than a year: {text}; park the session instead")
    return given


def set_status(args: Args) -> None:
    from ..core.session import STATUSES

    known = [s for s in STATUSES if s != "unknown"]  # unknown is the absence of evidence
    if args.status not in known:
        raise Problem(f"cannot set the status {args.status}; use one of {', '.join(known)}")
    submit(args.session, "set", status=args.status)


def set_label(args: Args) -> None:
    known = session_of(args.session)
    submit(known.session_id, "label", label=args.label)
    say(known, f"labeled {args.label}" if args.label else "label removed")


def set_name(args: Args) -> None:
    known = session_of(args.session)
    submit(known.session_id, "name", name=args.name)
    say(known, f"named {args.name}" if args.name else "name removed")


def park_session(args: Args) -> None:
    known = session_of(args.session)
    parked = not (args.back or known.parked)
    submit(known.session_id, "park", parked=parked)
    say(known, "parked; park again to unpark it" if parked else "unparked")


def snooze_session(args: Args) -> None:
    known, now = session_of(args.session), time.time()
    length, is_snoozed = args.minutes, known.snoozed_until > now
    if length is None:
        length = 0.0 if is_snoozed else SNOOZE
    if not (length or is_snoozed):
        say(known, "not snoozed")
        return
    until = now + 60 * length if length > 0 else 0.0
    submit(known.session_id, "snooze", until=until)
    at = time.strftime("%H:%M" if length < DAYLONG else "%a %H:%M", time.localtime(until))
    say(known, f"snoozed until {at}; snooze again to end it" if until else "snooze ended")


def session_of(called: str) -> Session:
    """Return the session with this id, start of an id, or name."""
    with opened() as shared:
        return shared.board.sessions[find_session(shared, called)]


def say(s: Session, done: str) -> None:
    """Print what was done, with the name of the session that lists show."""
    from ..core import words
    from ..core.published import publish
    from ..core.text import plain

    print(f"{words.project(publish(s))}: {plain(done)}")


def forget_session(args: Args) -> None:
    submit(args.session, "forget")


def elsewhere(shared: SharedBoard, s: Session, evidence: Mapping[str, Any]) -> None:
    """Send evidence to the session's own machine."""
    import asyncio

    from ..hosting.other_machine import OtherMachines
    from ..system.failures import Declined

    try:
        asyncio.run(OtherMachines(shared.spool.home).mark(s, evidence))
    except Declined as reason:
        raise Problem(f"session {s.session_id}: {reason}") from None


def submit(called: str, key: str, **facts: Any) -> None:
    """Write evidence about a session, wait until it is folded, and report if it was refused."""
    with opened() as shared:
        sid = find_session(shared, called)
        s, t = shared.board.sessions[sid], time.time()
        if s.machine:
            elsewhere(shared, s, {key: facts})
            return
        line: Mapping[str, object] = {"t": t, key: {"session_id": sid, **facts}}
        try:
            shared.spool.write(line)
        except OSError as e:
            raise Problem(f"cannot write to {shared.spool.new}: {e.strerror}") from None
    with opened() as shared:
        for row in reversed(shared.store.log(sid)):
            if (row.event.name, row.event.t) == (key, t):
                if not row.taken:
                    raise Problem(f"session {sid}: not changed: {row.why}")
                return
