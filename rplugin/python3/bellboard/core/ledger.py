"""What is known beyond single sessions, and the result of folding an event."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, NamedTuple

from msgspec import Struct

from .events import Event
from .machine import Verdict
from .session import Session

LEDGER: Final = ""  # its key among the records
MOST_DEAD: Final = 512  # dead processes to remember
TOMBSTONE: Final = 60.0  # seconds to ignore late events of a process that ended
MOST_COUNTED: Final = 200  # kinds of junk to count separately
MOST_PANES: Final = 64  # panes without a session to remember: one may appear later
MOST_VIEWERS: Final = 64  # editors and tmux clients to remember


class View(Struct, frozen=True, gc=False):
    """What a viewer looks at, and since when."""

    session_id: str
    tmux: str
    pane: str
    since: float
    away: bool = False  # its terminal does not have the focus, so it looks at nothing


class Link(Struct, frozen=True, gc=False):
    """The connection to another machine: whether it is up, and how far that was followed."""

    up: bool
    since: float
    why: str = ""  # it is down
    cursor: str = ""


class Ledger(Struct):
    """What is known beyond the sessions; replaced, never changed in place, except its clock."""

    clock: float = 0.0
    dead: dict[int, str] = {}  # process → its start, as far as known
    views: dict[str, View] = {}
    panes: dict[str, str] = {}  # server and pane → tty
    counts: dict[str, int] = {}  # junk and unknown events, by name
    links: dict[str, Link] = {}  # by machine
    forgotten: int = 0  # listed sessions that were dropped because there were too many


def with_view(views: dict[str, View], viewer: str, view: View | None) -> dict[str, View]:
    """Return the views with that of one viewer replaced, or removed (None)."""
    others = [(name, seen) for name, seen in views.items() if name != viewer]
    own = [(viewer, view)] if view is not None else []
    return dict([*others, *own][-MOST_VIEWERS:])


def with_pane(
    panes: dict[str, str], where: str, tty: str | None, needed: Container[str]
) -> dict[str, str]:
    """Return the terminals of all panes with one replaced, or removed (None).

    Drop the oldest ones that no session needs, because all are written with every commit.
    """
    kept = {known: its for known, its in panes.items() if known != where}
    if tty is not None:
        kept[where] = tty
    spare = [known for known in kept if known not in needed][:-MOST_PANES]
    return {known: its for known, its in kept.items() if known not in spare} if spare else kept


class Transition(Struct, frozen=True, gc=False):
    """A change of a session's published status; None means not listed."""

    t: float
    session_id: str
    before: str | None
    after: str | None
    rule: str
    why: str


class Folded(Struct, frozen=True, gc=False):
    """The result of folding an event."""

    event: Event
    session_id: str
    verdict: Verdict
    changes: tuple[Transition, ...] = ()


class Changed(NamedTuple):
    """A session that a route has changed, for the board to store."""

    s: Session
    old: Session | None
    was: str | None  # its published status before
    verdict: Verdict


#: An event to fold into a session, a changed session, or a verdict.
Step = tuple[str, Event] | Changed | Folded


def noted(why: str) -> Verdict:
    return Verdict("noted", True, why)


def refused(why: str) -> Verdict:
    return Verdict("", False, why)


UNKNOWN: Final = refused("it belongs to no known session")


def why_of(e: Event, v: Verdict) -> str:
    """Return the reason of a verdict, with what it is about."""
    about = e.error or (f"{e.tool}: {e.detail}" if e.tool and e.detail else e.tool or e.detail)
    return f"{v.why.rstrip('.')} ({about})" if about else v.why
