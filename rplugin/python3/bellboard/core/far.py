"""Sessions of other machines: their ids here, and which of them a link reports on.

A link (`hosting/links.py`) is the only witness of such a session.  What it reports comes as
evidence like any other, so history, notices and callbacks work without a special case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from typing import Final

from msgspec.structs import replace

from .events import LONGEST_MACHINE, Event
from .machine import Verdict
from .records import Changed, Folded, LinkState, Records, Step, noted, refused
from .rules.steps import end
from .session import ABSENT, published_status
from .text import line

#: The folder of each machine is named after it, so the names of the files beside it are taken:
#: the list, its lock, and the sockets of ssh.
_TAKEN: Final = r"(?i:machines\.(?:json|lock)|[0-9a-f]{40})"
_NAME: Final = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_MACHINE - 1}}}"
MACHINE: Final = re.compile(rf"(?!{_TAKEN}\Z){_NAME}", re.ASCII)
#: Kinds of evidence that only links report, and only about sessions of other machines.
OF_LINKS: Final = frozenset({"far", "far gone", "link up", "link down", "link gone"})
MOST_MACHINES: Final = 256  # machines to remember
NO_HOST: Final = "no background process was running"


def id_of(machine: str, agent: str, session_id: str) -> str:
    """Return the id that a session of another machine has here."""
    return f"{machine}/{agent}/{session_id}"


def far(records: Records, e: Event) -> Iterator[Step]:
    """Fold a row; the first row of a session announces nothing."""
    known = records.sessions.get(e.session_id)
    listed = known is not None and known.turn != ABSENT
    if known is not None and listed and known.machine != e.machine:
        yield Folded(e, e.session_id, refused("a session of this machine has that id"))
        return
    _note_cursor(records, e)
    if listed and not e.at:
        e = replace(e, at=e.row.get("since", 0.0))
    yield e.session_id, e
    yield from _alone(records, e, e.session_id)


def far_gone(records: Records, e: Event) -> Iterator[Step]:
    """End the sessions that a machine no longer lists."""
    named, listed = frozenset(e.ids), _sessions(records, e.machine)
    gone = {sid: its for sid, its in listed.items() if (its in named) != (e.source == "all")}
    _note_cursor(records, e)
    for sid, its in gone.items():
        yield sid, replace(e, ids=(its,), source="")  # so that a recording says which
    if not gone:
        kept = replace(e, ids=(), source="")
        yield Folded(kept, "", noted("All of its sessions are still listed."))


def link(records: Records, e: Event) -> Iterator[Step]:
    """Note whether a machine can be followed, and mark its sessions."""
    links = {m: known for m, known in records.ledger.links.items() if m != e.machine}
    was = records.ledger.links.get(e.machine)
    if e.kind != "link gone":
        up = e.kind == "link up"
        since = was.since if was is not None and was.up == up else e.t
        now = LinkState(up, since, e.why, was.cursor if was is not None else "")
        links = {**dict(list(links.items())[1 - MOST_MACHINES :]), e.machine: now}
    records.note(links=links)
    there = _sessions(records, e.machine)
    for sid in there:
        yield sid, e
        yield from _alone(records, e, sid)
    if not there:
        yield Folded(e, "", noted("None of its sessions is listed."))


def _alone(records: Records, e: Event, sid: str) -> Iterator[Step]:
    """End the sessions that only a terminal here shows, and that a link shows better."""
    s = records.sessions.get(sid)
    if s is None or s.stale:
        return
    for old in records.same(s):
        own = copy(old)
        end(own, e.t, "linked", own.pid)
        why = f"The link to {line(s.machine, 40)} shows it."
        yield Changed(own, old, published_status(old), Verdict("leave", True, why))


def let_go(records: Records, t: float) -> None:
    """After a time without hosts, note that no machine was followed."""
    known = records.ledger.links
    if known:
        records.note(
            links={m: LinkState(False, t, NO_HOST, was.cursor) for m, was in known.items()}
        )
    for old in [s for s in records.sessions.values() if s.machine and s.turn != ABSENT]:
        s = copy(old)
        s.stale, s.link_why, s.link_since = True, NO_HOST, s.link_since or t
        records.keep(s)


def _sessions(records: Records, machine: str) -> dict[str, str]:
    """Return the listed sessions of a machine, and their ids there."""
    listed = (s for s in records.sessions.values() if s.machine == machine and s.turn != ABSENT)
    return {s.session_id: s.row["session_id"] for s in sorted(listed, key=lambda s: s.session_id)}


def _note_cursor(records: Records, e: Event) -> None:
    if not (e.done and e.cursor):
        return
    was = records.ledger.links.get(e.machine) or LinkState(True, e.t)
    if was.cursor != e.cursor:
        links = {**records.ledger.links, e.machine: replace(was, cursor=e.cursor)}
        records.note(links=links)
