"""Print the past on a terminal: status changes, the events of a session, a replay."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from textwrap import wrap

from ..core import words
from ..core.board import Board
from ..core.machine import Verdict
from ..core.published import snapshot
from ..core.records import Folded, Transition, why_of
from ..core.session import Session, is_listed
from ..core.text import cut, width
from ..core.words import plain, reason
from ..storage.store import Logged
from .line import COLORS
from .styled import StyledText
from .terminal import ENDLESS, NARROW, console, table, write

ANSWERS = frozenset({"reply", "outcome"})  # rules of events that are listed one by one
Names = Mapping[str, str]


def show_changes(found: Iterable[Transition], names: Names) -> None:
    """Print one line for each status change or answer: time, session, transition, reason."""
    out = console()
    write(
        out, changes(list(found), names, out.width) or [StyledText(" No changes of status.", "dim")]
    )


def changes(found: list[Transition], names: Names, columns: int) -> list[StyledText]:
    """Return the lines of these changes, grouped by day."""
    called = {c.session_id: _name(c.session_id, names) for c in found}
    room = max(map(width, called.values()), default=0)
    lines: list[StyledText] = []
    day = ""
    for c in found:
        day = _new_day(lines, day, c.t)
        name = called[c.session_id]
        line = StyledText(f" {_clock(c.t)}  ", "dim")
        line.append(f"{name}{' ' * (room - width(name))}  ", "")
        line.append(*_step(c.before, c.after))
        lines.extend(_with_reason(line, c.why, columns))
    return lines


def as_change(row: Logged) -> Transition:
    """Return an answer or its outcome as a line of the history, without a change of status."""
    why = why_of(row.event, Verdict(row.rule, row.taken, row.why))
    return Transition(row.event.t, row.session_id, row.before, row.before, row.rule, why)


def show_reason(s: Session | None, in_float: str = "") -> None:
    """Print why a session has its status, in one sentence, and whether it is in the float.

    Without a record (None), only the log knows the session.
    """
    if s is None:
        found = ["not listed: each event says why"]
    else:
        found = [reason(s, _clock(s.since)) if is_listed(s) else "", in_float]
    out = console()
    rows = [
        row for text in found for row in wrap(plain(text), out.width - 1, break_on_hyphens=False)
    ]
    if rows:
        write(out, [*(StyledText(f" {row}") for row in rows), StyledText("")])


def show_story(log: Iterable[Logged]) -> None:
    """Print every event of a session: time, event, transition, reason."""
    out = console()
    counted: list[tuple[Logged, int]] = []
    for row in log:
        if counted and _same(counted[-1][0], row):
            counted[-1] = (counted[-1][0], counted[-1][1] + 1)
        else:
            counted.append((row, 1))
    room = max((width(_event(row, n)) for row, n in counted), default=0)
    lines: list[StyledText] = []
    day = ""
    for row, n in counted:
        e = row.event
        day = _new_day(lines, day, e.t)
        name = _event(row, n)
        line = StyledText(f" {_clock(e.t)}  ", "dim")
        line.append(f"{name}{' ' * (room - width(name))}  ", "")
        if row.before != row.after:
            line.append(*_step(row.before, row.after))
        else:
            line.append(f"{'' if row.taken else 'refused':22}", "dim")
        why = why_of(e, Verdict(row.rule, row.taken, row.why))
        lines.extend(_with_reason(line, why, out.width))
    write(out, lines or [StyledText(" The log has no events of this session.")])


def show_replay(foldeds: Iterable[Folded], board: Board) -> None:
    """Print the status changes of a trace, and the sessions at its end."""
    out = console()
    found = [change for folded in foldeds for change in folded.changes]
    sessions = snapshot(board.sessions.values())
    names = {p["session_id"]: words.project(p) for p in sessions}
    write(out, changes(found, names, out.width))
    write(out, [StyledText(), *table(sessions, board.ledger.clock, out.width)])


def _same(a: Logged, b: Logged) -> bool:
    quiet = a.before == a.after and b.before == b.after and a.rule not in ANSWERS
    facts = (b.event.name, b.rule, b.taken, b.why)
    return quiet and (a.event.name, a.rule, a.taken, a.why) == facts


def _event(row: Logged, times: int) -> str:
    return plain(row.event.name) + (f" ×{times}" if times > 1 else "")


def _name(sid: str, names: Names) -> str:
    return cut(plain(names.get(sid)) or plain(sid)[:8], 20)


def _step(before: str | None, after: str | None) -> tuple[str, str]:
    """Return `working → blocked`, padded, and the color of the new status."""
    step = f"{before or 'new'} → {after or 'gone'}" if before != after else ""
    return f"{step:22}", COLORS.get(after or "", "dim")


def _clock(t: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(t))


def _new_day(lines: list[StyledText], day: str, t: float) -> str:
    """Add a heading if a new day starts."""
    today = time.strftime("%A, %d %B %Y", time.localtime(t))
    if today != day:
        lines.append(StyledText(f" {today}", "dim"))
    return today


def _with_reason(line: StyledText, why: str, columns: int) -> list[StyledText]:
    """Append the reason to a line, wrapped with a hanging indent."""
    indent = width(line.plain) + 2
    if columns - indent < NARROW and columns < ENDLESS:
        indent = 11  # on lines of its own, below the event
        wrapped = ["", *wrap(plain(why), max(NARROW, columns - indent))]
    else:
        wrapped = wrap(plain(why), columns - indent) or [""]
    line.append(f"  {wrapped[0]}")
    return [line, *(StyledText(" " * indent + rest) for rest in wrapped[1:])]
