"""The reports of a board to the terminal that it is shown in (OSC 7501).

The root is the session that needs the user most, and each session has a record of its own.  Ids are
ours, and texts are encoded: nothing that an agent says ends a sequence, or is a report.

A report of a board names that board, which is then known in the terminals of its own editors, and
never shown twice.  Neither are sessions that another board has reported: they would go round.

This file does no I/O and knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from . import words
from .connection import end_of
from .program_status import Report, body_of, is_app
from .published import Published, by_urgency
from .session import Session
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
    return BOARD + _digest(f"{machine}\0{folder}".encode("utf-8", "surrogateescape"), 4)


def record_of(session_id: str) -> str:
    """Return the name of the record of a session, below that of its board."""
    return _digest(session_id.encode("utf-8", "replace"), 6)


def _digest(name: bytes, size: int) -> str:
    from hashlib import blake2b  # loads OpenSSL, and few commands need it

    return blake2b(name, digest_size=size).hexdigest()


def of_another(report_id: str, app: str) -> str:
    """Return the name of the board that has made a report, or "" if a program has."""
    return next((x for x in (report_id.partition("/")[0], app) if x.startswith(BOARD)), "")


def is_of_board(board: str, report: Report) -> bool:
    """Return whether a report is one of that board."""
    return bool(board) and board in (report.app, report.id.partition("/")[0])


def marks_of(s: Session) -> frozenset[tuple[str, str]]:
    """Return what tells the session that a link and a terminal here show: a connection, a record.

    The link knows more: while its machine can be followed, its row is the only one.
    """
    if s.machine:
        row = s.row
        marks = {("record", record_of(row.get("session_id", "")))}
        if row.get("terminal") == "tty":  # elsewhere, its reports do not come through
            marks.add(("connection", end_of(row.get("ssh", ""))))
    elif s.record:
        marks = {("record", s.record.rpartition("/")[2])}
    else:
        marks = {("connection", s.connection)}
    return frozenset(mark for mark in marks if mark[1])


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
        app = p.get("agent", "")
        id = f"{board}/{record_of(p['session_id'])}"
        bodies[id] = body_of(_report(p, id, app if is_app(app) else ""))
    return bodies


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the bodies to send, if a terminal has those from before."""
    if "" in before and "" not in now:  # which clears the others, too
        return [body_of(Report("clear")), *now.values()]
    gone = [body_of(Report("clear", id)) for id in before if id not in now]
    return gone + [body for id, body in now.items() if before.get(id) != body]


def _is_shown(p: Published, is_near: bool) -> bool:
    if p["hidden"] or p["status"] not in STATES or p.get("board"):
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
