"""Print sessions, histories and event logs on a terminal, in columns.

Colour only shows urgency; it is off with NO_COLOR or if the output is not a terminal.  Every text
goes through `words.plain`, and is never parsed as markup.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from ..core import words
from ..core.board import Board
from ..core.ledger import Folded, Transition, why_of
from ..core.lenient import decimal
from ..core.machine import Verdict
from ..core.published import Published, snapshot
from ..core.words import cut, plain, width
from ..storage.history import Logged

if TYPE_CHECKING:
    from ..diagnosis import Fact

COLOURS: Final = {
    "blocked": "bold red",
    "error": "yellow",
    "completed": "green",
    "unknown": "magenta",
    "working": "cyan",
    "background": "bright_blue",  # plain blue is too dark on black
    "idle": "dim",
}
LEVELS: Final = {
    "ok": ("ok", "green"),
    "info": (".", "dim"),
    "warn": ("warn", "yellow"),
    "error": ("ERROR", "bold red"),
}
WIDE: Final = 90  # columns from which there is room for the title
MIDDLE: Final = 70  # columns from which there is room for the place
NARROW: Final = 30  # fewest columns in which a reason can be read
ENDLESS: Final = 10_000  # width if the output is not a terminal: grep needs whole lines
WIDEST: Final = {"name": 32, "title": 30, "word": 12, "progress": 30, "where": 20}
#: Columns to shorten if the line is too long, and their new widths, in this order.
LEAST: Final = (
    *(("text", 24), ("title", 12), ("name", 12), ("progress", 6), ("text", 8)),
    *(("name", 6), ("title", 0)),
)

Names = Mapping[str, str]


def console() -> Console:
    """Return a console for standard output."""
    columns = min(decimal(os.environ.get("COLUMNS", "")) or 0, ENDLESS)
    on_terminal = sys.stdout.isatty()
    if not columns:
        columns = shutil.get_terminal_size().columns if on_terminal else ENDLESS
    return _Console(
        color_system="auto" if on_terminal and not os.environ.get("NO_COLOR") else None,
        width=columns,
        highlight=False,
        markup=False,
        emoji=False,
    )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the command line handle it."""
        raise BrokenPipeError


def write(out: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        line.rstrip()
        out.print(line, soft_wrap=True)


# ---------------------------------------------------------------- sessions


def show_list(
    sessions: Iterable[Published],
    now: float,
    hidden: bool = False,
    first_run: str = words.FIRST_RUN,
    icons: Mapping[str, str] = words.ICONS,
) -> None:
    """Print one line for each session, or how to get started if there are none."""
    out = console()
    listed = list(sessions)
    shown = [p for p in listed if hidden or not p["hidden"]]
    if listed:
        write(out, table(shown, now, out.width, icons))
        if unshown := len(listed) - len(shown):
            write(out, [Text(f" {unshown} hidden: bellboard list --all", "dim")])
    else:
        write(out, map(Text, first_run.splitlines()))


def show_ended(sessions: Iterable[Published], now: float) -> None:
    """Print one line for each ended session: its age, id, project and title."""
    out = console()
    lines = []
    for p in sessions:
        line = Text(f" {words.age(p['ended'], now):>4}  ", "dim")
        line.append(f"{plain(p['session_id'])}  ", "")
        line.append(words.project(p), "dim").append(f"  {words.title(p)}")
        line.truncate(out.width)
        lines.append(line)
    write(out, lines or [Text(" No session to resume.", "dim")])


def table(
    sessions: Iterable[Published],
    now: float,
    columns: int,
    icons: Mapping[str, str] = words.ICONS,
) -> list[Text]:
    """Return the lines of these sessions, each followed by a line for its subagents."""
    shown = list(sessions)
    lines = []
    for p, line in zip(shown, rows(shown, now, columns, icons), strict=True):
        lines.append(line)
        if members := words.members(p):
            lines.append(Text(cut(f"    ▸ {members}", columns), "dim"))
    return lines


def rows(
    shown: Sequence[Published], now: float, columns: int, icons: Mapping[str, str]
) -> list[Text]:
    """Return one line for each of these sessions."""
    cells = [{**_row(p, now, columns), "icon": words.icon(p, icons)} for p in shown]
    space = max((width(row["icon"]) for row in cells), default=1)
    widths = _fit(cells, columns - space + 1)
    lines = []
    for p, row in zip(shown, cells, strict=True):
        line = Text(" ")
        line.append(row["icon"] + " " * (space - width(row["icon"])), COLOURS[p["status"]])
        for column, room in widths.items():
            text = cut(row[column], room)
            fill = " " * (room - width(text))
            plainly = column in ("name", "word", "text")
            right = column in ("age", "progress")
            line.append("  ")
            line.append(fill + text if right else text + fill, "" if plainly else "dim")
        lines.append(line)
    return lines


def _row(p: Published, now: float, columns: int) -> dict[str, str]:
    """Return the text of each column."""
    word, text = words.doing(p)
    label = plain(p.get("label"))
    where = words.repository(p) if columns >= WIDE else words.project(p)
    left = p.get("snoozed_until", 0.0) - now
    snoozed = f"snoozed {words.age(0.0, left)}" if left > 0 else ""
    marks = (f"[{label}]" if label else "", words.notes(p), snoozed)
    wide = columns >= WIDE
    return {
        "name": f"{where} {words.branch(p)}".strip(),
        "title": words.title(p) if wide else "",
        "word": word if wide else "",
        "text": text if wide else f"{word} {text}".strip(),
        "progress": " ".join(x for x in (words.progress(p), *marks) if x),
        "age": words.age(p["since"], now),
        "where": words.place(p) if columns >= MIDDLE else "",
    }


def _fit(rows: list[dict[str, str]], columns: int) -> dict[str, int]:
    """Return the widths of the columns that are not empty, so that a line fits."""
    widths = {}
    for column in [c for c in (rows[0] if rows else {}) if c != "icon"]:
        natural = max(width(row[column]) for row in rows)
        if natural:
            widths[column] = min(natural, WIDEST.get(column, ENDLESS))
    if "age" in widths:
        widths["age"] = max(widths["age"], len("now"))  # so that columns do not move

    def over() -> int:
        return 2 + sum(w + 2 for w in widths.values()) - columns

    for column, least in LEAST:
        if over() > 0 and column in widths:
            widths[column] = max(min(least, widths[column]), widths[column] - over())
    if over() > 0:
        widths.pop("where", None)  # a truncated one would be a different one
    return widths


# ---------------------------------------------------------------- history and events


def show_history(found: Iterable[Transition], names: Names) -> None:
    """Print one line for each status change: time, session, transition, reason."""
    out = console()
    write(out, changes(list(found), names, out.width))


def changes(found: list[Transition], names: Names, columns: int) -> list[Text]:
    """Return the lines of these changes, grouped by day."""
    called = {c.session_id: _name(c.session_id, names) for c in found}
    room = max(map(width, called.values()), default=0)
    lines: list[Text] = []
    day = ""
    for c in found:
        day = _new_day(lines, day, c.t)
        name = called[c.session_id]
        line = Text(f" {_clock(c.t)}  ", "dim")
        line.append(f"{name}{' ' * (room - width(name))}  ", "")
        line.append(*_step(c.before, c.after))
        lines.extend(_with_reason(line, c.why, columns))
    return lines


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
    lines: list[Text] = []
    day = ""
    for row, n in counted:
        e = row.event
        day = _new_day(lines, day, e.t)
        name = _event(row, n)
        line = Text(f" {_clock(e.t)}  ", "dim")
        line.append(f"{name}{' ' * (room - width(name))}  ", "")
        if row.before != row.after:
            line.append(*_step(row.before, row.after))
        else:
            line.append(f"{'' if row.taken else 'refused':22}", "dim")
        why = why_of(e, Verdict(row.rule, row.taken, row.why))
        lines.extend(_with_reason(line, why, out.width))
    write(out, lines or [Text(" No events of this session are kept.")])


def show_replay(foldeds: Iterable[Folded], board: Board) -> None:
    """Print the status changes of a trace, and the sessions at its end."""
    out = console()
    found = [change for folded in foldeds for change in folded.changes]
    sessions = snapshot(board.sessions.values())
    names = {p["session_id"]: words.project(p) for p in sessions}
    write(out, changes(found, names, out.width))
    write(out, [Text(), *table(sessions, board.ledger.clock, out.width)])


def _same(a: Logged, b: Logged) -> bool:
    quiet = a.before == a.after and b.before == b.after
    facts = ("rule", "taken", "why")
    return (
        quiet
        and a.event.name == b.event.name
        and all(getattr(a, f) == getattr(b, f) for f in facts)
    )


def _event(row: Logged, times: int) -> str:
    return plain(row.event.name) + (f" ×{times}" if times > 1 else "")


def _name(sid: str, names: Names) -> str:
    return cut(plain(names.get(sid)) or plain(sid)[:8], 20)


def _step(before: str | None, after: str | None) -> tuple[str, str]:
    """Return `working → blocked`, padded, and the colour of the new status."""
    step = f"{before or 'new'} → {after or 'gone'}"
    return f"{step:22}", COLOURS.get(after or "", "dim")


def _clock(t: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(t))


def _new_day(lines: list[Text], day: str, t: float) -> str:
    """Add a heading if a new day starts."""
    today = time.strftime("%A, %d %B %Y", time.localtime(t))
    if today != day:
        lines.append(Text(f" {today}", "dim"))
    return today


def _with_reason(line: Text, why: str, columns: int) -> list[Text]:
    """Append the reason to a line, wrapped with a hanging indent."""
    indent = width(line.plain) + 2
    if columns - indent < NARROW and columns < ENDLESS:
        indent = 11  # on lines of its own, below the event
        wrapped = ["", *wrap(plain(why), max(NARROW, columns - indent))]
    else:
        wrapped = wrap(plain(why), columns - indent) or [""]
    line.append(f"  {wrapped[0]}")
    return [line, *(Text(" " * indent + rest) for rest in wrapped[1:])]


# ---------------------------------------------------------------- diagnosis


def show_facts(facts: Sequence[Fact]) -> None:
    """Print facts by section, with advice below each problem."""
    out = console()
    lines: list[Text] = []
    section = ""
    for fact in facts:
        if fact.section != section:
            section = fact.section
            lines += [Text(), Text(f" {section}", "bold")]
        mark, colour = LEVELS[fact.level]
        lines += _hanging(f"  {mark:5} ", fact.text, colour, out.width)
        if fact.advice:
            lines += _hanging("        → ", fact.advice, "", out.width)
    wrong = sum(fact.level in ("warn", "error") for fact in facts)
    end = f" {words.amount(wrong, 'problem')} found." if wrong else " No problems found."
    lines += [Text(), Text(end)]
    write(out, lines[1:])


def _hanging(head: str, text: str, colour: str, columns: int) -> list[Text]:
    """Return a text wrapped with a hanging indent."""
    wrapped = wrap(plain(text), max(NARROW, columns - len(head))) or [""]
    first = Text(head, colour).append(wrapped[0], "")
    return [first, *(Text(" " * len(head) + rest) for rest in wrapped[1:])]
