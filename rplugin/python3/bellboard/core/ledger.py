"""What is known beyond single sessions, and what folding an event gives back."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from msgspec import Struct

from .events import Event
from .machine import Verdict

LEDGER: Final = ""  # its key among the records
MOST_DEAD: Final = 512  # processes remembered as dead
MOST_COUNTED: Final = 200  # kinds of junk told apart
MOST_PANES: Final = 64  # panes that no session is known to be in: it may be heard of later
MOST_VIEWERS: Final = 64  # editors and tmux clients; those that were heard of last


class View(Struct, frozen=True, gc=False):
    """What one viewer looks at, since when."""

    session_id: str
    tmux: str
    pane: str
    since: float
    away: bool = False  # its terminal lost the focus: it looks at nothing until it has it again


class Ledger(Struct):
    """What is known beyond the sessions; it is replaced, never altered, but for its clock."""

    clock: float = 0.0
    dead: dict[int, str] = {}  # process → its start, as far as known
    views: dict[str, View] = {}
    panes: dict[str, str] = {}  # server and pane → tty
    counts: dict[str, int] = {}  # junk and unknown events, by name


def with_one_more(counts: dict[str, int], what: str) -> dict[str, int]:
    if what not in counts and len(counts) >= MOST_COUNTED:
        what = "others"
    return {**counts, what: counts.get(what, 0) + 1}


def with_one_dead(dead: dict[int, str], pid: int, started: str) -> dict[int, str]:
    kept = list(dead.items())[1 - MOST_DEAD :]
    return {**dict(kept), pid: started}


def with_view(views: dict[str, View], viewer: str, view: View | None) -> dict[str, View]:
    """What everybody looks at, after this one looked there; None: it is gone."""
    others = [(name, seen) for name, seen in views.items() if name != viewer]
    own = [(viewer, view)] if view is not None else []
    return dict([*others, *own][-MOST_VIEWERS:])


def with_pane(
    panes: dict[str, str], where: str, tty: str | None, needed: Container[str]
) -> dict[str, str]:
    """The terminal of each pane, now that this one has that (None: it is gone).

    Of those that no session needs the oldest go: with every commit they are written again.
    """
    kept = {known: its for known, its in panes.items() if known != where}
    if tty is not None:
        kept[where] = tty
    spare = [known for known in kept if known not in needed][:-MOST_PANES]
    return {known: its for known, its in kept.items() if known not in spare} if spare else kept


class Transition(Struct, frozen=True, gc=False):
    """A change of what is published about one session; None stands for not listed."""

    t: float
    session_id: str
    before: str | None
    after: str | None
    rule: str
    why: str


class Folded(Struct, frozen=True, gc=False):
    """One event's outcome."""

    event: Event
    session_id: str
    verdict: Verdict
    changes: tuple[Transition, ...] = ()


def noted(why: str) -> Verdict:
    return Verdict("noted", True, why)


def refused(why: str) -> Verdict:
    return Verdict("", False, why)


def why_of(e: Event, v: Verdict) -> str:
    """A rule's reason, with what it is about."""
    about = e.error or (f"{e.tool}: {e.detail}" if e.tool and e.detail else e.tool or e.detail)
    return f"{v.why.rstrip('.')} ({about})" if about else v.why
