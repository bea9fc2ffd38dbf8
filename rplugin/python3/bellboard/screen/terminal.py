"""Print sessions, histories and event logs on a terminal, in columns.

Color only shows urgency; it is off with NO_COLOR or if the output is not a terminal.  Every text
goes through `words.plain`, and is never parsed as markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final, NamedTuple

from ..core import words
from ..core.published import Published
from ..core.text import cut, width
from ..core.untrusted import decimal
from ..core.words import plain
from .line import lines
from .styled import StyledText

if TYPE_CHECKING:
    from ..core.restore import Location
    from ..diagnosis import Fact
    from ..hosting.restore import Lost

LEVELS: Final = {
    "ok": ("ok", "green"),
    "info": (".", "dim"),
    "warn": ("warn", "yellow"),
    "error": ("ERROR", "bold red"),
}
COLORLESS: Final = frozenset({"dumb", "unknown"})  # terminals, as TERM names them
NARROW: Final = 30  # fewest columns in which a reason can be read
USUAL: Final = 80
ENDLESS: Final = 10_000  # width if the output is not a terminal: grep needs whole lines


class Console(NamedTuple):
    """The destination of printed lines."""

    width: int
    colors: bool

    def drawn(self, line: StyledText) -> str:
        """Return a line as it is printed here, in color if the console has colors."""
        return line.drawn() if self.colors else line.plain


def console() -> Console:
    """Return the console of standard output."""
    columns = min(decimal(os.environ.get("COLUMNS", "")) or 0, ENDLESS)
    on_terminal = sys.stdout.isatty()
    if not columns:
        columns = _columns() if on_terminal else ENDLESS
    plainly = os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in COLORLESS
    return Console(columns, on_terminal and not plainly)


def _columns() -> int:
    """Return the width of the terminal, or the usual one."""
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


def show_lost(sessions: Sequence[Lost], now: float) -> None:
    """Print one line for each session that went down: its age, project, title, and place."""
    out = console()
    able = [x for x in sessions if not x.why]
    whose = "its terminal" if len(sessions) == 1 else "their terminals"
    head = f" {words.amount(len(sessions), 'session')} went down with {whose}"
    lines = [StyledText(head), StyledText()] if sessions else []
    names = [words.project(x.shown) for x in sessions]
    places = [place_words(x.place) for x in sessions]
    room, beside = (
        min(max(map(width, some), default=0), out.width // part)
        for some, part in ((names, 4), (places, 3))
    )
    titles = max(out.width - room - beside - 12, 1)
    for x, name, place in zip(sessions, names, places, strict=True):
        line = StyledText(f" {words.age(x.last, now):>4}  ", "dim")
        line.append(padded(cut(name, room), room), "" if x in able else "dim").append("  ")
        line.append(padded(cut(place, beside), beside), "dim").append("  ")
        line.append(cut(words.title(x.shown), titles), "" if x in able else "dim")
        lines.append(line)
        if x.why:
            lines.append(
                StyledText(cut(f"       not restored: {plain(x.why)}", out.width), "yellow")
            )
    write(out, lines or [StyledText(" Nothing to restore.", "dim")])


def place_words(place: Location) -> str:
    """Return in words where a session was, and where it is opened instead."""
    kinds = {"neovim": "Neovim", "terminal": "a terminal"}
    if place.kind != "tmux":
        return kinds[place.kind]
    window = place.window or (str(place.number) if place.number >= 0 else "")
    where = f"tmux {place.session}{':' * bool(window)}{window}".rstrip()
    return plain(f"{kinds[place.instead_of]}, now {where}" if place.instead_of else where)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def table(
    sessions: Iterable[Published],
    now: float,
    columns: int,
    icons: Mapping[str, str] = words.ICONS,
) -> list[StyledText]:
    """Return the lines of these sessions, each followed by a line for its subagents."""
    shown = list(sessions)
    found = []
    for p, line in zip(shown, lines(shown, now, columns, icons), strict=True):
        found.append(line)
        if members := words.members(p):
            found.append(StyledText(cut(f"   ▸ {members}", columns), "dim"))
    return found


def outages(listed: Iterable[Published], now: float, columns: int) -> list[StyledText]:
    """Return a line for each unreachable machine: the reason, and its sessions without a row."""
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
        mark, color = LEVELS[fact.level]
        lines += _hanging(f"  {mark:5} ", fact.text, color, out.width)
        if fact.advice:
            lines += _hanging("        → ", fact.advice, "", out.width)
    wrong = sum(fact.level in ("warn", "error") for fact in facts)
    end = f" {words.amount(wrong, 'problem')} found." if wrong else " No problems found."
    lines += [StyledText(), StyledText(end)]
    write(out, lines[1:])


def _hanging(head: str, text: str, color: str, columns: int) -> list[StyledText]:
    """Return a text wrapped with a hanging indent."""
    wrapped = wrap(plain(text), max(NARROW, columns - len(head))) or [""]
    first = StyledText(head, color).append(wrapped[0], "")
    return [first, *(StyledText(" " * len(head) + rest) for rest in wrapped[1:])]
