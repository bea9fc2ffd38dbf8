"""The reports of a board to the terminal that it is shown in (OSC 7501).

The root is the session that needs the user most, and each session has a record of its own.  Ids are
ours, and texts are encoded: nothing that an agent says ends a sequence, or is a report.

A report of a board names that board, which is then known in the terminals of its own editors, and
never shown twice.  Neither are sessions that another board has reported: they would go round.

This file does no I/O and knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from . import words
from .program_status import Report, body_of, is_app
from .published import Published, by_urgency
from .text import line

MOST: Final = 60  # sessions; a terminal keeps at least 64 records
BOARD: Final = "bellboard."  # start of the name of a board
#: Status → state; nothing is reported of what is unknown.
STATES: Final = {
    "blocked": "blocked",
    "error": "error",
    "completed": "done",
    "working": "working",
    "background": "working",
    "idle": "idle",
}
KINDS: Final = frozenset({"permission", "auth"})  # any other question is one


def board_name(folder: str, machine: str) -> str:
    """Return the name of the board that has its state in this folder of this machine."""
    place = f"{machine}\0{folder}".encode("utf-8", "surrogateescape")
    return BOARD + blake2b(place, digest_size=4).hexdigest()


def is_of_board(board: str, report: Report) -> bool:
    """Return whether a report is one of that board."""
    return bool(board) and board in (report.app, report.id.partition("/")[0])


def bodies_of(board: str, sessions: Iterable[Published], is_near: bool) -> dict[str, str]:
    """Return what follows `7501;` in each report of a board, by the id of its record.

    Sessions of other machines are only reported to a terminal that `is_near`: a terminal elsewhere
    may be on such a machine.
    """
    shown = sorted((p for p in sessions if _is_shown(p, is_near)), key=by_urgency)[:MOST]
    bodies = {}
    awake = (p for p in shown if "parked" not in p["markers"] and not p.get("snoozed_until"))
    if first := next(awake, None):
        bodies[""] = body_of(_report(first, "", board))
    for p in shown:
        name = blake2b(p["session_id"].encode("utf-8", "replace"), digest_size=6).hexdigest()
        app = p.get("agent", "")
        id = f"{board}/{name}"
        bodies[id] = body_of(_report(p, id, app if is_app(app) else ""))
    return bodies


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the bodies to send, if a terminal has those from before."""
    if "" in before and "" not in now:  # which clears the others, too
        return [body_of(Report("clear")), *now.values()]
    gone = [body_of(Report("clear", id)) for id in before if id not in now]
    return gone + [body for id, body in now.items() if before.get(id) != body]


def _is_shown(p: Published, is_near: bool) -> bool:
    if p["hidden"] or p["status"] not in STATES or p.get("agent", "").startswith(BOARD):
        return False
    return is_near or not p.get("machine")


def _report(p: Published, id: str, app: str) -> Report:
    kind = p.get("kind", "")
    return Report(
        STATES[p["status"]],
        id,
        (kind if kind in KINDS else "question") if p["status"] == "blocked" else "",
        app,
        title=line(" ".join(filter(None, (words.project(p), words.title(p))))),
        msg=line(words.summary(p)),
    )
