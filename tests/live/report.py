"""Print the results, check their limits, and write the page doc/truth.md."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from live.monkey import Walks
from live.rows import Row
from live.scene import GROUPS, SCENES
from live.stage import How
from rig.cache import CHECKOUT

AGREES: Final = 0.999  # share of the time
SLOWEST: Final = 0.5  # seconds until a change is shown
LEFT: Final = 2.0  # seconds that a session is listed after its end

TABLE: Final = CHECKOUT / "doc" / "truth.md"
ALONE: Final = {"hidden": True, "hooked": False, "heard": True}
WAYS: Final = {
    "2.1.332": How("2.1.332"),
    "2.1.330": How("2.1.330"),
    "Neovim, 2.1.332": How("2.1.332", "0.12", heard=True),
    "Neovim, 2.1.330": How("2.1.330", "0.12", heard=True),
    "its own report, nothing else, 2.1.332": How("2.1.332", "0.12", **ALONE),
    "its own report, nothing else, 2.1.330": How("2.1.330", "0.12", **ALONE),
    "late hooks": How(late=0.3),
    "no hooks": How(hooked=False),
    "no session files": How(hidden=True),
    "2.1.119": How("2.1.119"),
    "2.1.76": How("2.1.76"),
}
STRICT: Final = (  # where the evidence is complete
    *("2.1.332", "2.1.330", "Neovim, 2.1.332", "Neovim, 2.1.330"),
)
HEAD: Final = """# Is it right?

This page is written by `make live ONLY=scenes`. It starts the real Claude Code CLI on a fake API,
with bellboard's hook installed, and types into it. While the CLI runs, it compares two things:

* what bellboard shows (`bellboard watch --json`), and
* what the CLI says about itself in its session file, `~/.claude/sessions/<pid>.json`.

There, `busy` means working, `waiting` blocked and `shell` background; `idle` means whatever the
last turn ended as: completed, error, or idle after an interrupt. If one session is open in two
processes, the more urgent of the two is right. Three things are not counted: the 0.35 s around each
change, dialogs that you open yourself, and the time between the hook that announces a change and
the file that follows it.

Each cell says how much of the time both agreed, and how long the slowest change took to show.
`-`: that version cannot do this, or does it differently.
"""
LESS: Final = """
In the columns of its own report, nothing else is known: the CLI runs in a `:terminal` of Neovim,
without hooks, and without session files and transcripts that bellboard could find. Compared is what
it shows from the first report on. When the API refuses the key (error 401), the session file says
`idle`, and the report `blocked`, because you have to log in: that is counted as wrong.

The other columns show what missing evidence costs. Without session files, nothing reports an Esc
before the first output, a `!` command or a form. 2.1.76 has no status in them, so its screen is
compared instead.
"""
UNPLAYED: Final = "not played"
IN_ALL: Final = "## In all"
MONKEY: Final = "## A monkey at the keyboard"
OWN: Final = "## What a program says itself"  # which is written of kept traces
OTHERS: Final = "## Other agents"  # how their part begins, which `make live AGENT=…` writes
UNKNOWN: Final = """## What remains unknown

* A real model and a real network. The fake API answers in order, and its errors are simple.
* Windows, macOS, the VS Code extension, cloud sessions, and other terminals than tmux and Neovim.
* Auto mode that refuses a call: the fake API cannot judge one, so only the dialogs that ask you
  instead were played.
* A CLI version newer than these. `make live ONLY=scenes CLI=newest` fetches it, plays everything,
  and names what is different.
* Errors in the session file itself, because everything is compared with it.
"""


def line(row: Row) -> str:
    """Return a row as a line."""
    slowest = max(row.delays, default=0.0)
    wrong = f"  wrong for {', '.join(f'{w:.2f}' for w in row.wrong)}" if row.wrong else ""
    ended = f"  ended as {row.otherwise}" if row.otherwise else ""
    failed = f"\n  {row.failure}" if row.failure else ""
    failed += "".join(f"\n  {each}" for each in row.disagreements)
    return (
        f"{row.scene:32} {row.agrees:7.2%} of {row.compared:5.1f} s  "
        f"slowest of {len(row.delays):2} {slowest:.2f} s  gone {row.left:.2f} s"
        f"{wrong}{ended}{failed}"
    )


def missed(played: Mapping[str, Row]) -> list[str]:
    """Return the limits that were missed."""
    rows = played.values()
    bad = [f"{row.scene}: {row.failure.splitlines()[0]}" for row in rows if row.failure]
    bad += [
        f"{row.scene}: a change took {slowest:.2f} s"
        for row in rows
        if (slowest := max(row.delays, default=0.0)) > SLOWEST
    ]
    bad += [f"{row.scene}: left for {row.left:.1f} s" for row in rows if row.left > LEFT]
    total = Total(rows)
    return bad if total.agrees >= AGREES else [*bad, f"agrees {total.agrees:.2%} of the time"]


class Total:
    """The totals of all rows."""

    def __init__(self, rows: Collection[Row]) -> None:
        self.scenes = len(rows)
        self.compared = sum(row.compared for row in rows)
        wrong = sum(sum(row.wrong) for row in rows)
        self.agrees = 1 - wrong / self.compared if self.compared else 1.0
        self.changes = sum(len(row.delays) for row in rows)
        self.slowest = max((delay for row in rows for delay in row.delays), default=0.0)
        self.left = max((row.left for row in rows), default=0.0)
        self.listed = sum(row.listed for row in rows)
        self.disagreements = sum(len(row.disagreements) for row in rows)

    def __str__(self) -> str:
        third = (
            f"; `claude agents --json` said the same {self.listed - self.disagreements} of "
            f"{self.listed} times"
            if self.listed
            else ""
        )
        return (
            f"{self.scenes} scenes, {self.agrees:.2%} of {self.compared:.0f} s, "
            f"{self.changes} changes, the slowest after {self.slowest:.2f} s, "
            f"gone after {self.left:.2f} s{third}"
        )


def page(ways: Mapping[str, Mapping[str, Row]], walks: Walks | None = None, old: str = "") -> str:
    """Return doc/truth.md; what was not played now is as in the `old` one."""
    now = {way: column(rows, WAYS.get(way, How())) for way, rows in ways.items()}
    before = re.findall(r"(?m)^\* (.+?): \d+ scenes", "\n".join(part(old, IN_ALL)))
    columns = {way: c for way in (*WAYS, *ways, *before) if (c := now.get(way) or kept(old, way))}
    lines = [head(columns), IN_ALL, ""]
    lines += [f"* {way}: {each.total}" for way, each in columns.items()]
    lines += ["", "On a busy machine, both the CLI and bellboard are late.", ""]
    lines += walks.section() if walks else part(old, MONKEY)
    for group, scenes in GROUPS.items():
        lines += [f"## {group}", "", f"| scene | {' | '.join(columns)} |"]
        lines += [f"|---{'|--:' * len(columns)}|"]
        for scene in scenes:
            cells = [each.cells.get(scene.name, UNPLAYED) for each in columns.values()]
            lines.append(f"| {scene.name} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, UNKNOWN, *part(old, OWN), *part(old, OTHERS)]).rstrip() + "\n"


class Column(NamedTuple):
    """A way in which the scenes were played, as the page shows it."""

    total: str
    cells: Mapping[str, str]  # by scene


def column(rows: Mapping[str, Row], how: How) -> Column:
    """Return what was played now."""
    where = f"{os.cpu_count()} cores with a load of {os.getloadavg()[1]:.0f}"
    cells = {s.name: cell(rows.get(s.name)) if s.suits(how) else "-" for s in SCENES}
    return Column(f"{Total(rows.values())}; on {where}", cells)


def kept(old: str, way: str) -> Column | None:
    """Return a column of a page; None if it has no such column."""
    total = re.search(rf"(?m)^\* {re.escape(way)}: (.*)$", old)
    if total is None:
        return None
    cells: dict[str, str] = {}
    at = -1
    for row in re.findall(r"(?m)^\| (.*) \|$", old.partition(OWN)[0]):
        scene, *rest = row.split(" | ")
        if scene == "scene":
            at = rest.index(way) if way in rest else -1
        elif at >= 0:
            cells[scene] = rest[at]
    return Column(total[1], cells)


def part(page: str, title: str) -> list[str]:
    """Return a part of a page, from its title to the next one."""
    found = re.search(rf"(?ms)^{re.escape(title)}$.*?(?=^## |\Z)", page)
    return [*found[0].rstrip().split("\n"), ""] if found else []


def with_part(page: str, title: str, lines: Sequence[str]) -> str:
    """Return a page with a part in place of the old one, or before that of other agents."""
    old, new = "\n".join(part(page, title)), "\n".join(lines).rstrip() + "\n"
    if old:
        return page.replace(old, new)
    before, others, after = page.partition(OTHERS)
    return f"{before}{new}\n{others}{after}"


def head(ways: Collection[str]) -> str:
    """Return what the page is about, and which of its columns must hold which limits."""
    strict = ", ".join(way for way in STRICT if way in ways)
    limits = (
        f"With all evidence ({strict}), `make live` fails if both agree for less than "
        f"{AGREES:.1%} of the time, if a change takes longer than {SLOWEST} s, or if a session is "
        f"still listed {LEFT:.0f} s after it ended."
    )
    text = f"{HEAD}\n{textwrap.fill(limits, 100, break_on_hyphens=False)}\n"
    text += LESS if set(ways) - set(STRICT) else ""
    left_out = "; ".join(way for way in WAYS if way not in ways)
    return text + (f"\nNot played for this page: {left_out}.\n" if left_out else "")


def cell(row: Row | None) -> str:
    """Return a row in a few characters."""
    if row is None or row.failure:
        return UNPLAYED
    return f"{100 * row.agrees:.4g} % · {max(row.delays, default=0.0):.2f} s"
