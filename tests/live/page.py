"""The page doc/truth.md: what was played now, and of the rest what stood there."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from live.own.spoken import section as spoken_section
from live.report import AGREES, LEFT, SLOWEST, Row, Total
from live.scene import GROUPS, OF_OTHERS, SCENES
from live.stage import How
from live.stands import STANDS
from rig import ROOT

TABLE: Final = ROOT / "doc" / "truth.md"
ALONE: Final = {"hidden": True, "hooked": False}
WAYS: Final = {
    "2.1.332": How("2.1.332"),
    "2.1.330": How("2.1.330"),
    "Neovim, 2.1.332": How("2.1.332", "0.12"),
    "Neovim, 2.1.330": How("2.1.330", "0.12"),
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
HEAD_OF_OTHERS: Final = f"""{OTHERS}

`make live AGENT=codex` plays scenes on the real CLI of another agent, with the hooks that
bellboard's installer puts in place and a fake model on this machine. Statuses are compared with the
screen, which is read ten times a second. Not counted are 0.35 s around each change, and the moment
in which a CLI has reported something that it has not drawn yet: 0.3 s on an idle machine.

Each cell says how much of the time both agreed, and how long the slowest change took to show.
`-`: that CLI has no such thing. `make live AGENT=…` fails if both agree for less than 97% of the
time (Codex and OpenCode: 99%), if a change takes longer than {SLOWEST} s, or if a session is still
listed {LEFT:.0f} s after it ended.

A cell is one play; some were repeated on a quiet machine, or after their scene was mended. When Esc
stops GitHub Copilot CLI between two tries of a failed call, only a file of its open sessions says
so: in one of six later plays of `error 500`, on a busy machine, bellboard showed `working` for
6.1 s longer, until the CLI ended.
"""
MOST: Final = 12  # rows of the table of what went wrong

WALKED: Final = f"""{MONKEY}

`make live ONLY=walks MINUTES=n` walks at random through real CLIs: prompts, keys, commands, second
terminals, hooks of its own, frozen and killed processes, restarted hosts, moved panes. What is
shown is compared with the session files all the time. A walk that fails is walked again with fewer
and fewer actions until no action can be left out, and kept as a trace. The same seed draws the same
walk.
"""


def page(ways: Mapping[str, Mapping[str, Row]], walks: Path | None = None, old: str = "") -> str:
    """Return doc/truth.md; what was not played now is as in the `old` one."""
    now = {way: column(rows, WAYS.get(way, How())) for way, rows in ways.items()}
    before = re.findall(r"(?m)^\* (.+?): \d+ scenes", "\n".join(part(old, IN_ALL)))
    columns = {way: c for way in (*WAYS, *ways, *before) if (c := now.get(way) or kept(old, way))}
    lines = [head(columns), IN_ALL, ""]
    lines += [f"* {way}: {each.total}" for way, each in columns.items()]
    lines += ["", "On a busy machine, both the CLI and bellboard are late.", ""]
    lines += walked(walks) if walks else part(old, MONKEY)
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


def walked(path: Path) -> list[str]:
    """Return the section about random walks, of the file that `--rows` wrote."""
    rows = [json.loads(text) for text in path.read_text().splitlines()]
    lines = [WALKED, "| CLI | walks | actions | minutes | right | wrong for over 0.5 s |"]
    lines += ["|---|--:|--:|--:|--:|--:|"]
    for version in sorted({row["version"] for row in rows}):
        mine = [row for row in rows if row["version"] == version]
        compared = sum(row["compared"] for row in mine)
        right = 1 - sum(row["wrong"] for row in mine) / compared if compared else 1.0
        wrongs = sum(len(row["wrongs"]) for row in mine)
        actions = sum(row["actions"] for row in mine)
        figures = f"{len(mine)} | {actions} | {compared / 60:.0f} | {right:.2%} | {wrongs}"
        lines.append(f"| {version} | {figures} |")
    found: dict[str, list[tuple[float, int]]] = {}  # what was wrong → how long, and a seed
    for row in rows:
        for wrong in row["wrongs"]:
            what = f"{wrong['shown']}, not {wrong['said']} | {wrong['rule']}"
            found.setdefault(what, []).append((round(wrong["seconds"], 1), row["seed"]))
    if not found:
        return [*lines, "", "Nothing was wrong for longer than 0.5 s.", ""]
    lines += ["", "| shown | rule | times | longest | a seed |", "|---|---|--:|--:|--:|"]
    for what, times in sorted(found.items(), key=lambda each: -len(each[1]))[:MOST]:
        lines.append(f"| {what} | {len(times)} | {max(times)[0]} s | {times[0][1]} |")
    return [*lines, ""]


def others(played: Mapping[str, Mapping[str, Row]]) -> list[str]:
    """Return the part about other agents: those that were played."""
    stands = {key: stand for key, stand in STANDS.items() if played.get(key)}
    lines = [HEAD_OF_OTHERS]
    for key, stand in stands.items():
        lines.append(f"* {stand.name} {stand.version}: {Total(played[key].values())}")
    load = f"Played on {os.cpu_count()} cores, with a load of {os.getloadavg()[1]:.0f} at the end."
    lines += ["", load, ""]
    lines += [f"| scene | {' | '.join(stand.name for stand in stands.values())} |"]
    lines += [f"|---{'|--:' * len(stands)}|"]
    for scene in OF_OTHERS:
        cells = [
            "-" if scene.name in stand.lacks else cell(played[key].get(scene.name))
            for key, stand in stands.items()
        ]
        lines.append(f"| {scene.name} | {' | '.join(cells)} |")
    return [*lines, "", spoken_section()]


def cell(row: Row | None) -> str:
    """Return a row in a few characters."""
    return UNPLAYED if row is None or row.failure else row.cell
