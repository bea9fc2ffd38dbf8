"""Print sessions, histories and event logs on a terminal, in columns.

Colour only shows urgency; it is off with NO_COLOR or if the output is not a terminal.  Every text
goes through `words.plain`, and is never parsed as markup.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final, NamedTuple

from ..core import words
from ..core.published import Published
from ..core.session import is_nameless
from ..core.text import cut, width
from ..core.untrusted import decimal
from ..core.words import plain
from .styled import StyledText

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
COLOURLESS: Final = frozenset({"dumb", "unknown"})  # terminals, as TERM names them
WIDE: Final = 90  # columns from which there is room for the title
MIDDLE: Final = 70  # columns from which there is room for the place
NARROW: Final = 30  # fewest columns in which a reason can be read
USUAL: Final = 80
MUCH: Final = 8  # blank columns that are for a text that would be cut
ENDLESS: Final = 10_000  # width if the output is not a terminal: grep needs whole lines
WIDEST: Final = {"name": 32, "title": 30, "word": 12, "progress": 30, "where": 20}
#: Columns to shorten if the line is too long, and their new widths, in this order.
LEAST: Final = (
    *(("text", 24), ("title", 12), ("name", 12), ("progress", 6), ("text", 8)),
    *(("name", 6), ("title", 0)),
)


class Console(NamedTuple):
    """Where lines are printed."""

    width: int
    colours: bool

    def drawn(self, line: StyledText) -> str:
        """Return a line as it is printed here: in colour if there is any."""
        return line.drawn() if self.colours else line.plain


def console() -> Console:
    """Return the console of standard output."""
    columns = min(decimal(os.environ.get("COLUMNS", "")) or 0, ENDLESS)
    on_terminal = sys.stdout.isatty()
    if not columns:
        columns = _columns() if on_terminal else ENDLESS
    plainly = os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in COLOURLESS
    return Console(columns, on_terminal and not plainly)


def _columns() -> int:
    """Return the width of the terminal, or what it usually is."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL
    except OSError:
        return USUAL


def write(out: Console, lines: Iterable[StyledText]) -> None:
    """Print lines."""
    for line in lines:
        line.rstrip()
        print(out.drawn(line))  # noqa: T201


# ---------------------------------------------------------------- sessions


def show_list(
    sessions: Iterable[Published],
    now: float,
    hidden: bool = False,
    first_run: str = "",
    icons: Mapping[str, str] = words.ICONS,
) -> None:
    """Print one line for each session, or how to get started if there are none."""
    out = console()
    listed = list(sessions)
    shown = [p for p in listed if hidden or not p["hidden"]]
    if listed:
        write(out, table(shown, now, out.width, icons))
        write(out, outages(listed, now, out.width))
        if unshown := len([p for p in listed if p not in shown and not p.get("folded")]):
            write(out, [StyledText(f" {unshown} hidden: bellboard list --all", "dim")])
    else:
        write(out, map(StyledText, first_run.splitlines()))


def show_ended(sessions: Iterable[Published], now: float) -> None:
    """Print one line for each ended session: its age, id, project and title."""
    out = console()
    lines = []
    for p in sessions:
        line = StyledText(f" {words.age(p['ended'], now):>4}  ", "dim")
        line.append(f"{plain(p['session_id'])}  ", "")
        line.append(words.project(p), "dim").append(f"  {words.title(p)}")
        line.truncate(out.width)
        lines.append(line)
    write(out, lines or [StyledText(" No session to resume.", "dim")])


def table(
    sessions: Iterable[Published],
    now: float,
    columns: int,
    icons: Mapping[str, str] = words.ICONS,
) -> list[StyledText]:
    """Return the lines of these sessions, each followed by a line for its subagents."""
    shown = list(sessions)
    lines = []
    for p, line in zip(shown, rows(shown, now, columns, icons), strict=True):
        lines.append(line)
        if members := words.members(p):
            lines.append(StyledText(cut(f"    ▸ {members}", columns), "dim"))
    return lines


def outages(listed: Iterable[Published], now: float, columns: int) -> list[StyledText]:
    """Return a line for each unreachable machine, with the reason; it counts what has no row."""
    down: dict[str, list[Published]] = {}
    for p in listed:
        if p.get("machine") and p.get("link_since"):
            down.setdefault(p["machine"], []).append(p)
    texts = []
    for name, there in sorted(down.items()):
        age = words.age(there[0]["link_since"], now)
        folded = sum(bool(p.get("folded")) for p in there)
        what = f"cannot be reached ({age})"
        if folded:
            what = f"{words.amount(folded, 'session')}, unreachable for {age}"
        why = plain(there[0].get("link_why")) or "see `bellboard doctor`"
        texts.append(f" {plain(name)}{':' * bool(folded)} {what}: {why}")
    return [StyledText(cut(text, columns), "dim") for text in texts]


def rows(
    shown: Sequence[Published], now: float, columns: int, icons: Mapping[str, str]
) -> list[StyledText]:
    """Return one line for each of these sessions."""
    mixed = len({p.get("agent") for p in shown}) > 1
    cells = [
        {**_row(p, name, now, columns, mixed), "icon": words.icon(p, icons)}
        for p, name in zip(shown, _names(shown, columns >= WIDE), strict=True)
    ]
    space = max((width(row["icon"]) for row in cells), default=1)
    widths = _fit(cells, columns - space + 1)
    lines = []
    for p, row in zip(shown, cells, strict=True):
        line = StyledText(" ")
        is_dim = p.get("link_since") or words.is_quiet(p)
        colour = "dim" if is_dim else COLOURS[p["status"]]
        line.append(row["icon"] + " " * (space - width(row["icon"])), colour)
        for column, room in _shared(widths, row).items():
            text = cut(row[column], room)
            fill = " " * (room - width(text))
            plainly = column in ("name", "word", "text") and not p.get("link_since")
            right = column in ("age", "progress")
            line.append("  ")
            line.append(fill + text if right else text + fill, "" if plainly else "dim")
        lines.append(line)
    return lines


def _names(shown: Sequence[Published], wide: bool) -> list[str]:
    """Return what distinguishes each of these within its repository; as the board does.

    Its branch, or its title if others have the same branch; the start of its id if nothing else
    does, or its process if it has none.  `wide`: the titles are beside it, as its agent always is.
    """
    here = [(words.machine(p), words.repository(p)) for p in shown]
    all_, alike = Counter(here), Counter(zip(here, map(words.branch, shown), strict=True))
    found = []
    for p, where in zip(shown, here, strict=True):
        name, own = words.branch(p), words.title(p)
        same = alike[where, name]
        needless = 1 < same == all_[where] if wide else bool(p.get("name")) or same > 1
        found.append(("" if wide else own) if own and needless else name)
    told = [
        (where, name, words.title(p) if wide else "", words.place(p), p.get("agent"))
        for p, where, name in zip(shown, here, found, strict=True)
    ]
    times = Counter(told)
    ids = (_brief(plain(p["session_id"]).rpartition("/")[2]) for p in shown)
    return [
        f"{own} {name}".strip() if times[key] > 1 else name
        for own, name, key in zip(ids, found, told, strict=True)
    ]


def _brief(sid: str) -> str:
    return sid.split("-")[1] if is_nameless(sid) else sid[:4]


def _shared(widths: dict[str, int], row: dict[str, str]) -> dict[str, int]:
    """Return the widths in a line, where what would stay blank is for a text that would be cut."""
    own, needs = dict(widths), {column: width(row[column]) for column in widths}
    texts = [column for column in ("title", "text", "name") if column in own]
    for source in ("progress", "text", "name", "title"):
        spare = own.get(source, 0) - needs.get(source, 0)
        for column in texts if spare >= (1 if source in ("progress", "text") else MUCH) else ():
            more = min(spare, needs[column] - own[column])
            if more > 0:
                own[column] += more
                own[source] -= more
                spare -= more
    return own


def _row(p: Published, name: str, now: float, columns: int, mixed: bool) -> dict[str, str]:
    """Return the text of each column; `mixed`: there are several kinds of agents."""
    word, text = words.doing(p)
    label = plain(p.get("label"))
    wide = columns >= WIDE
    where = words.on_machine(p, words.repository(p)) if wide else words.project(p)
    left = p.get("snoozed_until", 0.0) - now
    snoozed = f"snoozed {words.age(0.0, left)}" if left > 0 else ""
    agent = plain(p.get("agent")) if mixed else ""
    old = words.outdated(p, now)
    still = words.quiet(p, now)
    shown = (f"[{label}]" if label else "", agent, words.progress(p))
    marks = (old, still, *shown, words.notes(p), snoozed)
    return {
        "name": f"{where} {name}".strip(),
        "title": words.title(p) if wide else "",
        "word": word if wide else "",
        "text": text if wide else f"{word} {text}".strip(),
        "progress": " ".join(x for x in marks if x),
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

    usual = sorted(width(row["name"]) for row in rows)[len(rows) * 3 // 4] if rows else 0
    for column, least in (
        ("name", max(usual + MUCH, 12)),
        *LEAST,
    ):  # the others may take what is blank
        if over() > 0 and column in widths:
            widths[column] = max(min(least, widths[column]), widths[column] - over())
    if over() > 0:
        widths.pop("where", None)  # a truncated place would name another one
    return widths


# ---------------------------------------------------------------- diagnosis


def show_facts(facts: Sequence[Fact]) -> None:
    """Print facts by section, with advice below each problem."""
    out = console()
    lines: list[StyledText] = []
    section = ""
    for fact in facts:
        if fact.section != section:
            section = fact.section
            lines += [StyledText(), StyledText(f" {section}", "bold")]
        mark, colour = LEVELS[fact.level]
        lines += _hanging(f"  {mark:5} ", fact.text, colour, out.width)
        if fact.advice:
            lines += _hanging("        → ", fact.advice, "", out.width)
    wrong = sum(fact.level in ("warn", "error") for fact in facts)
    end = f" {words.amount(wrong, 'problem')} found." if wrong else " No problems found."
    lines += [StyledText(), StyledText(end)]
    write(out, lines[1:])


def _hanging(head: str, text: str, colour: str, columns: int) -> list[StyledText]:
    """Return a text wrapped with a hanging indent."""
    wrapped = wrap(plain(text), max(NARROW, columns - len(head))) or [""]
    first = StyledText(head, colour).append(wrapped[0], "")
    return [first, *(StyledText(" " * len(head) + rest) for rest in wrapped[1:])]
