"""Decode what links report of other machines.

    {"far": {"machine": M, "row": ROW, "found": true}}    a session, as that machine shows it
    {"far": {"machine": M, "gone": [ID, …]}}              sessions that have ended (its own ids)
    {"far": {"machine": M, "all": [ID, …]}}               all that it lists; others have ended
    {"link": {"machine": M, "up": bool, "why": "…"}}      whether it can be followed
    {"link": {"machine": M, "gone": true}}                it is no longer followed

`cursor` in any of them says how far the machine has been followed, `done` that everything up to
there was reported.  A machine's name is the one that we gave it, not what it calls itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..core.events import Event, usable_id
from ..core.far import MACHINE, OF_LINKS, id_of
from ..core.row import row_of
from ..core.text import line
from ..core.untrusted import Facts, text_of

MOST_IDS: Final = 4000  # sessions in one line; a feed has no more than 2,000


def far(fields: Facts, t: float, now: float) -> Event:
    """Decode what a machine says of its sessions."""
    given = fields["far"]
    machine, cursor = _machine(given), _cursor(given)
    done = given.get("done") is True
    if "row" in given:
        row = _row(given["row"])
        at = 0.0 if given.get("found") is True else row.get("since", 0.0)
        sid, why = _sid(machine, row), line(text_of(given, "why"))
        made = Event("far", "far", t, now, sid, at=at, row=row, detail=why)
        return replace(made, machine=machine, cursor=cursor, done=done)
    how = "all" if "all" in given else "gone"
    ids = tuple(usable_id(x) for x in given[how][:MOST_IDS])
    source = "all" if how == "all" else ""
    made = Event("far gone", "far", t, now, source=source, ids=ids)
    return replace(made, machine=machine, cursor=cursor, done=done)


def link(fields: Facts, t: float, now: float) -> Event:
    """Decode whether a machine can be followed."""
    given = fields["link"]
    kind = "link up" if given.get("up") is True else "link down"
    kind = "link gone" if given.get("gone") is True else kind
    why = line(text_of(given, "why")) if kind == "link down" else ""
    return Event(kind, "link", t, now, why=why, machine=_machine(given))


def checked(e: Event) -> Event:
    """Check an event that is decoded already, in the same way; raise ValueError if it is wrong."""
    if e.kind not in OF_LINKS:
        return replace(e, machine="", row={}, ids=(), cursor="", done=False)
    machine, ids = _machine({"machine": e.machine}), tuple(map(usable_id, e.ids[:MOST_IDS]))
    row = _row(e.row) if e.kind == "far" else {}
    sid = _sid(machine, row) if row else ""
    cursor = _cursor({"cursor": e.cursor})
    return replace(e, session_id=sid, row=row, ids=ids, cursor=cursor, why=line(e.why))


def _row(given: object) -> dict[str, Any]:
    """Return the fields of a session that may leave its machine."""
    row = row_of(given)
    if row is None:
        raise ValueError("not a session")
    # As JSON has it: a record that was stored and read again must be equal, with lists for tuples.
    return msgspec.json.decode(msgspec.json.encode(row))  # type: ignore[no-any-return]


def _sid(machine: str, row: Mapping[str, Any]) -> str:
    return usable_id(id_of(machine, row["agent"], row["session_id"]))


def _machine(given: Facts) -> str:
    name = given.get("machine")
    if not isinstance(name, str) or not MACHINE.fullmatch(name):
        raise ValueError("no usable name of a machine")
    return name


def _cursor(given: Facts) -> str:
    return line(text_of(given, "cursor"), 80)
