"""The line of a session, the same in a shell, a popup and Neovim, where `line.lua` makes it.

Texts that tell sessions apart come first: the repository, the branch where it differs, the title.
Activity, notes, age and place follow.  Columns are as wide as the sessions on the screen need;
`line.txt` lists the columns that give way if that is too much.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from ..core import words
from ..core.published import Published
from ..core.session import is_nameless
from ..core.text import cut, width
from ..core.words import plain
from .styled import StyledText

COLORS: Final = {
    "blocked": "bold red",
    "error": "yellow",
    "completed": "green",
    "unknown": "magenta",
    "working": "cyan",
    "background": "bright_blue",  # plain blue is too dark on black
    "idle": "dim",
}
TRUNKS: Final = ("main", "master")  # branches that do not name a session
GAP: Final = 2  # cells between columns
AGE: Final = 3  # minimum width of the ages, so that columns do not move
PLACE: Final = 20  # maximum width of the places, or a fifth of the screen
PROJECT: Final = 8  # cells of a project's name that its branch does not take
MUCH: Final = 8  # blank cells that are enough to move a column for
KEPT: Final = 24  # cells of its activity that a title does not take
ALL: Final = 10_000  # cells: whole
#: Texts that would be cut, the columns that give them cells, and the cells that columns keep.
#: Names give no cells: titles begin below each other.
SHARES: Final = (
    *(("title", "doing", ALL), ("title", "doing", KEPT)),
    *(("who", "title", ALL), ("who", "doing", ALL), ("who", "doing", KEPT)),
)


class LineTexts(NamedTuple):
    """The texts of a session's line, without its name."""

    icon: str
    doing: str
    notes: list[str]  # the most important first, without the agent
    age: str
    place: str


def lines(
    shown: Sequence[Published],
    now: float,
    columns: int,
    icons: Mapping[str, str] = words.ICONS,
) -> list[StyledText]:
    """Return the line of each of these sessions."""
    rows = [_row(p, now, icons) for p in shown]
    layout = Layout(shown, rows, columns)
    return [layout.line(p, row, n) for n, (p, row) in enumerate(zip(shown, rows, strict=True))]


class Layout:
    """The widths of the columns, and the names of the sessions that fit them."""

    def __init__(self, shown: Sequence[Published], rows: Sequence[LineTexts], columns: int) -> None:
        self._shown, self._rows, self._columns = shown, rows, columns
        self._is_short = self._has_no_titles = False
        self._names_agents = len({p.get("agent") for p in shown}) > 1
        self._icon = max((width(row.icon) for row in rows), default=1)
        self._age = max([AGE, *(len(row.age) for row in rows)])
        places = max((width(row.place) for row in rows), default=0)
        self._place = min(places, max(PLACE, columns // 5))
        self._needs: dict[str, list[int]] = {}
        self._name()
        self.room = {key: max(found, default=0) for key, found in self._needs.items()}
        for column, cells in _steps():
            if self._rest() < 0:
                self._give_way(column, cells)
        for column in ("doing", "title", "who"):
            needs = self._needs[column]
            wanted = max(needs, default=0) if column == "doing" else _most(needs)
            if self.room[column] and (more := min(self._rest(), wanted - self.room[column])) > 0:
                self.room[column] += more

    def line(self, p: Published, row: LineTexts, nth: int) -> StyledText:
        """Return the line of a session."""
        title = self._title(nth)
        own = width(row.doing)
        needs = {
            "who": self._needs["who"][nth],
            "title": width(title),
            "doing": self._needs["doing"][nth],
        }
        room = dict(self.room)
        _share(room, needs)
        tail = _fitting(self._notes(nth), max(room["doing"] // 2, room["doing"] - own))
        needs["doing"] = own + width(tail)
        needs["who"] = width("".join(self._who(nth, room["who"])))
        _share(room, needs)  # a shorter name, and notes that do not fit, leave cells
        room["doing"] -= width(tail)
        gone = [c for c in ("who", "title") if self.room[c] and not room[c]]
        room["doing"] += GAP * len(gone)
        line = StyledText(" ")
        is_old = bool(p.get("link_since"))
        color = "dim" if is_old or words.is_quiet(p) else COLORS[p["status"]]
        line.append(_filled(row.icon, self._icon + 1), color)
        where, name = self._who(nth, room["who"])
        line.append(where, "dim" if is_old else "bold")
        line.append(_filled(name, room["who"] - width(where)), "dim" if title or is_old else "")
        for column, text in (("title", title), ("doing", row.doing)):
            gap = " " * GAP if room["who" if column == "title" else "title"] else ""
            shown = _filled(cut(text, room[column]), room[column])
            line.append(gap + shown, "dim" if is_old else "")
        line.append(f"{tail}{' ' * GAP}{row.age:>{self._age}}", "dim")
        if self._place:
            line.append(" " * GAP + cut(row.place, self._place), "dim")
        line.truncate(self._columns)
        return line

    def _rest(self) -> int:
        """Return the cells that are left; negative if cells are missing."""
        place = self._place + GAP if self._place else 0
        names = sum(self.room[c] + GAP for c in ("who", "title") if self.room[c])
        return self._columns - (
            self._icon + 2 + names + self.room["doing"] + GAP + self._age + place
        )

    def _give_way(self, column: str, cells: str) -> None:
        if cells == "short":
            self._is_short = True
        elif column == "place":
            self._place = 0
        elif (column, cells) == ("title", "0"):
            self._has_no_titles, self.room["title"] = True, 0
        elif column == "agent":
            self._names_agents = False
        else:
            least = _most(self._needs[column]) if cells == "most" else int(cells)
            kept = max(least, self.room[column] + self._rest())
            self.room[column] = min(kept, self.room[column])
            return
        self._name()
        self.room["doing"] = min(self.room["doing"], max(self._needs["doing"], default=0))
        if column != "agent":
            self.room["who"] = min(max(self._needs["who"], default=0), _most(self._needs["who"]))

    def _name(self) -> None:
        self._names, self._signed = _names(self._shown, self._has_no_titles, self._place > 0)
        numbers = range(len(self._shown))
        own = [width(row.doing) for row in self._rows]
        self._needs["doing"] = [cells + _sum(self._notes(n)) for n, cells in enumerate(own)]
        self._needs["title"] = [width(self._title(n)) for n in numbers]
        self._needs["who"] = [width("".join(self._who(n))) for n in numbers]

    def _notes(self, nth: int) -> list[str]:
        """Return the notes of a session; its agent is the last one, unless its name has it."""
        agent = plain(self._shown[nth].get("agent"))
        is_named = agent and self._names_agents and not self._signed[nth]
        return [*self._rows[nth].notes, *([agent] if is_named else [])]

    def _title(self, nth: int) -> str:
        """Return the title of a session; the branch is that of one without any other name."""
        p, name = self._shown[nth], self._names[nth]
        title = words.title(p) or ("" if name else words.branch(p))
        return "" if self._has_no_titles else title

    def _who(self, nth: int, room: int = ALL) -> tuple[str, str]:
        """Return the repository of a session, as far as it fits, and the name in it."""
        p, name = self._shown[nth], self._names[nth]
        beside = width(name) + 1 if name else 0
        where = words.on_machine(p, words.repository(p))
        if self._is_short or width(where) + beside > room:
            where = words.project(p)
        machine = words.on_machine(p, "")
        least = min(PROJECT + width(machine), width(where))
        where = cut(where, min(room, max(least, room - beside)))
        name = cut(name, room - width(where) - 1)
        return f"{where} " if name else where, name


def _row(p: Published, now: float, icons: Mapping[str, str]) -> LineTexts:
    label, left = plain(p.get("label")), p.get("snoozed_until", 0.0) - now
    notes = (
        words.outdated(p, now),
        words.quiet(p, now),
        f"[{label}]" if label else "",
        words.progress(p),
        f"snoozed {words.age(0.0, left)}" if left > 0 else "",
        words.notes(p),
        plain(p.get("pull_request")),
    )
    return LineTexts(
        words.icon(p, icons),
        words.summary(p),
        [note for note in notes if note],
        words.age(p["since"], now),
        words.place(p),
    )


def _names(shown: Sequence[Published], narrow: bool, placed: bool) -> tuple[list[str], list[bool]]:
    """Return names that tell sessions apart within their repository, and which have their agent.

    A name is the branch, if those of the repository differ; the agent or the start of the id is
    before it if the title is the same, too.  `narrow`: no title is beside the name, so it is in the
    name, alone if others have that branch.  `placed`: the place is there, and tells them apart.
    """
    here = [(words.machine(p), words.repository(p)) for p in shown]
    branches = [words.branch(p) for p in shown]
    count, alike = Counter(here), Counter(zip(here, branches, strict=True))
    differing: dict[tuple[str, str], set[str]] = defaultdict(set)
    for where, branch in zip(here, branches, strict=True):
        differing[where].add(branch)
    names, keys = [], []
    for p, where, branch in zip(shown, here, branches, strict=True):
        title = words.title(p)
        tells = len(differing[where]) > 1 or (count[where] == 1 and branch not in TRUNKS)
        stands = bool(p.get("name")) or alike[where, branch] > 1 or not tells
        called = f"{branch} {title}".strip() if narrow else branch
        name = title if narrow and title and stands else called if tells else ""
        names.append(name)
        keys.append((where, name, "" if narrow else title, words.place(p) if placed else ""))
    times = Counter(keys)
    agents = [plain(p.get("agent")) for p in shown]
    kin = Counter(zip(keys, agents, strict=True))
    found, signed = [], []
    for p, name, key, agent, branch in zip(shown, names, keys, agents, branches, strict=True):
        sign = agent if kin[key, agent] < times[key] else ""
        signed.append(bool(sign))
        own = _brief(p["session_id"]) if kin[key, agent] > 1 else ""
        called = " ".join(filter(None, (sign, own, name)))
        found.append(branch if narrow and not called and not words.title(p) else called)
    return found, signed


def _brief(sid: str) -> str:
    own = plain(sid).rpartition("/")[2]
    return own.split("-")[1] if is_nameless(own) else own[:4]


def _share(room: dict[str, int], needs: Mapping[str, int]) -> None:
    """Give cells that would stay blank in a line to a text that would be cut.

    Activity gives way to a title, and moves to the left only for many blank cells of it: titles
    begin below each other.
    """
    for to, source, kept in SHARES:
        _move(room, needs, to, source, kept)
    if room["title"] - needs["title"] >= 2 * GAP:
        _move(room, needs, "doing", "title", ALL)


def _move(room: dict[str, int], needs: Mapping[str, int], to: str, source: str, kept: int) -> None:
    gap = 0 if room[to] else GAP  # of a column that other lines do not have
    spare = room[source] - min(needs[source], kept) - gap
    more = min(spare, needs[to] - room[to])
    if more > 0:
        room[to] += more
        room[source] -= more + gap


def _fitting(notes: Sequence[str], room: int) -> str:
    """Return the notes that fit, after a gap."""
    text = ""
    for note in notes:
        longer = f"{text or ' '} {note}"
        text = longer if width(longer) <= room else text
    return text


def _sum(notes: Sequence[str]) -> int:
    return width(" ".join(notes)) + GAP if notes else 0


def _most(widths: Sequence[int]) -> int:
    """Return a width that is enough for three of four, and for little wider ones."""
    usual = sorted(widths)[len(widths) * 3 // 4] if widths else 0
    return max((cells for cells in widths if cells <= usual + MUCH), default=0)


def _filled(text: str, cells: int) -> str:
    return text + " " * (cells - width(text))


@cache
def _steps() -> tuple[tuple[str, str], ...]:
    """Return the columns that give way, in order, and the cells that each keeps."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    found = (line.split() for line in text.splitlines())
    return tuple((step[0], step[1]) for step in found if len(step) == 2)
