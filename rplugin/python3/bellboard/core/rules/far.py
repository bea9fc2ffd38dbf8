"""Rules for the sessions of other machines, which decide; here they are only shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import AHEAD, Event
from ..options import Options
from ..session import Session


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


def rejoin(s: Session, e: Event, o: Options) -> str | None:
    """Its machine can be reached again."""
    if not s.stale:
        return "it was not unreachable"
    s.stale, s.link_why, s.link_since, s.folded = False, "", 0.0, False
    return None


def fold_away(s: Session, e: Event, o: Options) -> str | None:
    """Its machine cannot be reached for an hour: its sessions are one line until it can."""
    s.folded = True
    return None


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
