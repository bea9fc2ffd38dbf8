"""Rules for what users do, and for doubt after a time without hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ..events import AHEAD, Event
from ..options import Options
from ..restore import CLOSED, HOLDER
from ..session import ABSENT, Block, Session, is_told_otherwise
from ..sources import set_aside
from . import rule
from .steps import end, rest


@rule
def look(s: Session, e: Event, o: Options) -> str | None:
    """Somebody looks at it, or looks away."""
    if e.alive == (e.viewer in s.viewers):
        return "already in view" if e.alive else "not in view"
    others = {v: t for v, t in s.viewers.items() if v != e.viewer}
    s.viewers = others | {e.viewer: e.t} if e.alive else others
    return None


@rule
def clear(s: Session, e: Event, o: Options) -> str | None:
    """You have seen it."""
    if s.turn == "background":
        if not s.unseen:
            return "already seen"
        s.unseen = False
        return None
    rest(s, s.over)
    if s.own_report is not None and not s.processes and not is_told_otherwise(s):
        end(s, e.t, "seen", 0)
    return None


@rule
def correct(s: Session, e: Event, o: Options) -> str | None:
    """You set the status; it stands until the next evidence."""
    if e.status not in ("blocked", "error", "completed", "working", "background", "idle"):
        return f"not a status that can be set: {e.status or 'none'}"
    if e.status == "blocked":
        set_aside(s)
        s.blocks = {":": Block("permission", e.t, detail="set by hand", shown=True)}
        return None
    s.blocks = {}
    rest(s, e.t)
    set_aside(s)
    s.turn = e.status
    return None


@rule
def mark(s: Session, e: Event, o: Options) -> str | None:
    """You named, labeled, parked or snoozed it."""
    if e.kind == "label":
        s.label = e.status
    elif e.kind == "name":
        s.name = e.status
    elif e.kind == "park":
        s.parked = e.alive
    else:
        s.snoozed_until = e.at
    return None


@rule
def submit(s: Session, e: Event, o: Options) -> str | None:
    """You submitted a prompt; until it begins a turn, what was said before is no answer to it."""
    s.submitted = max(s.submitted, e.t)
    return None


@rule
def reply(s: Session, e: Event, o: Options) -> str | None:
    """You answered it; the question ends once the agent continues."""
    if not s.blocks:
        return "nothing is asked"
    asked = {b.request for b in s.blocks.values()}  # empty: known without its file
    if not asked & {e.request, ""}:
        return "it now asks something else"
    s.blocks = {
        k: replace(b, sent=True) if b.request == e.request else b for k, b in s.blocks.items()
    }
    return None


@rule
def outcome(s: Session, e: Event, o: Options) -> str | None:
    """The outcome of your answer."""
    return None


@rule
def learn(s: Session, e: Event, o: Options) -> str | None:
    """Facts to display: repository, branch, ports."""
    if e.cwd and e.cwd != s.cwd:
        return "about a directory that it has left"
    facts = {k: v for k, v in e.settings.items() if k != "session_id"}
    if s.turn == ABSENT and (CLOSED not in facts or facts.keys() - {CLOSED, HOLDER}):
        return "the session has ended"
    known = {**s.facts, **facts}
    if known == s.facts:
        return "already known"
    s.facts, s.learned = known, e.t
    return None


@rule
def doubt(s: Session, e: Event, o: Options) -> str | None:
    """No background process was running: unknown until there is new evidence."""
    newest = max(s.last, s.over)  # set by hand, it is over as well
    if e.kind == "restart" and e.t <= (until := max(newest + o.fresh, min(e.at, e.t + o.fresh))):
        s.trusted_until = until
        return "its record is recent"
    s.trusted_until = 0.0
    s.turn = "unknown"
    return None


# Rules for the sessions of other machines, which decide; here they are only shown.


@rule
def follow(s: Session, e: Event, o: Options) -> str | None:
    """Its machine reports this status."""
    if not e.row:
        return "the report has no row"
    if is_behind(e.cursor, s.told):
        return "older than what is known"
    s.machine, s.told = e.machine, e.cursor or s.told
    _show(s, e.row)
    s.stale, s.link_why, s.link_since, s.folded = False, "", 0.0, False
    return None


def _show(s: Session, row: Mapping[str, Any]) -> None:
    """Take over what notices, callbacks and lists need; the published form shows the whole row."""
    since = row.get("since", 0.0)
    if row["status"] == s.turn and abs(since - s.since) < AHEAD:
        since = s.since  # the same status: only the clocks were compared again, perhaps by another
    s.row = {**row, "since": since}
    s.turn, s.since, s.last = row["status"], since, row.get("updated", 0.0)
    marks = row.get("markers", ())
    s.unseen, s.parked = "unseen" in marks, "parked" in marks
    s.agent, s.teammate = row["agent"], row.get("hidden", False)
    s.label, s.name, s.title = (row.get(key, "") for key in ("label", "name", "title"))
    s.snoozed_until = row.get("snoozed_until", 0.0)


@rule
def rejoin(s: Session, e: Event, o: Options) -> str | None:
    """Its machine can be reached again."""
    if not s.stale:
        return "it was not unreachable"
    s.stale, s.link_why, s.link_since, s.folded = False, "", 0.0, False
    return None


@rule
def fold_away(s: Session, e: Event, o: Options) -> str | None:
    """Its machine cannot be reached for an hour: its sessions are one line until it can."""
    s.folded = True
    return None


@rule
def lose(s: Session, e: Event, o: Options) -> str | None:
    """Its machine cannot be reached: what is shown may be outdated."""
    if s.stale and s.link_why == e.why:
        return "already known"
    s.stale, s.link_why, s.link_since = True, e.why, s.link_since or e.t
    return None


def is_behind(cursor: str, told: str) -> bool:
    """Return whether a cursor is older than another one of the same database."""
    base, _, number = cursor.rpartition(".")
    known, _, newest = told.rpartition(".")
    if base != known or not (number.isdecimal() and newest.isdecimal()):
        return False
    return int(number) < int(newest)
