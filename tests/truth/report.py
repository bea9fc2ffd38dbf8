"""Print the results, check their limits, and write the page doc/truth.md."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection, Mapping
from typing import Final

from rig.cache import CHECKOUT
from truth.monkey import Walks
from truth.rows import Row
from truth.scenes import GROUPS
from truth.stage import How

AGREES: Final = 0.999  # share of the time
SLOWEST: Final = 0.5  # seconds until a change is shown
LEFT: Final = 2.0  # seconds that a session is listed after its end

TABLE: Final = CHECKOUT / "doc" / "truth.md"
WAYS: Final = {
    "2.1.332": How("2.1.332"),
    "2.1.330": How("2.1.330"),
    "Neovim": How(editor="0.12"),
    "late hooks": How(late=0.3),
    "no hooks": How(hooked=False),
    "no session files": How(hidden=True),
    "2.1.119": How("2.1.119"),
    "2.1.76": How("2.1.76"),
}
STRICT: Final = ("2.1.332", "2.1.330", "Neovim")  # where the evidence is complete
HEAD: Final = """# Is it right?

This page is written by `make truth`. It starts the real Claude Code CLI on a fake API, with
bellboard's hook installed, and types into it. While the CLI runs, it compares two things:

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
The other columns show what missing evidence costs. Without session files, nothing reports an Esc
before the first output, a `!` command or a form. 2.1.76 has no status in them, so its screen is
compared instead.
"""
OTHERS: Final = "## Other agents"  # how their part begins, which `make truth AGENT=…` writes
TITLES: Final = {
    "turns": "Turns and interrupts",
    "retries": "Errors that the CLI retries",
    "questions": "Questions",
    "sessions": "Agents, shells, and sessions that come and go",
    "stop_hooks": "Your own Stop hooks",
    "ask_hooks": "Your own hooks before a question",
    "deciding_hooks": "Your own hooks that decide",
    "everyday": "Everyday life",
    "habits": "Hooks, agents and servers of many people",
    "beside": "Menus, headless turns, and terminals that move",
    "processes": "One session in two processes",
    "modes": "Auto mode, and the trust dialog",
    "owners": "Several questions at once",
    "queues": "Typing ahead",
    "leaving": "Leaving while something is running",
}
UNKNOWN: Final = """## What remains unknown

* A real model and a real network. The fake API answers in order, and its errors are simple.
* Windows, macOS, the VS Code extension, cloud sessions, and other terminals than tmux and Neovim.
* Auto mode that refuses a call: the fake API cannot judge one, so only the dialogs that ask you
  instead were played.
* A CLI version newer than these. `make truth CLI=newest` fetches it, plays everything, and names
  what is different.
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


def page(ways: Mapping[str, Mapping[str, Row]], walks: Walks | None = None) -> str:
    """Return doc/truth.md."""
    lines = [head(ways), "## In all", ""]
    lines += [f"* {way}: {Total(rows.values())}" for way, rows in ways.items()]
    where = f"Played on {os.cpu_count()} cores, with a load of {os.getloadavg()[1]:.0f} at the end"
    lines += ["", f"{where}. On a busy machine, both the CLI and bellboard are late.", ""]
    if walks:
        lines += walks.section()
    for group, scenes in GROUPS.items():
        lines += [f"## {TITLES[group]}", "", f"| scene | {' | '.join(ways)} |"]
        lines += [f"|---{'|--:' * len(ways)}|"]
        for scene in scenes:
            cells = [cell(rows.get(scene.name)) for rows in ways.values()]
            lines.append(f"| {scene.name} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, UNKNOWN])


def head(ways: Collection[str]) -> str:
    """Return what the page is about, and which of its columns must hold which limits."""
    strict = ", ".join(way for way in STRICT if way in ways)
    limits = (
        f"With all evidence ({strict}), `make truth` fails if both agree for less than "
        f"{AGREES:.1%} of the time, if a change takes longer than {SLOWEST} s, or if a session is "
        f"still listed {LEFT:.0f} s after it ended."
    )
    text = f"{HEAD}\n{textwrap.fill(limits, 100, break_on_hyphens=False)}\n"
    text += LESS if set(ways) - set(STRICT) else ""
    left_out = ", ".join(way for way in WAYS if way not in ways)
    return text + (f"\nNot played for this page: {left_out}.\n" if left_out else "")


def cell(row: Row | None) -> str:
    """Return a row in a few characters."""
    if row is None or row.failure:
        return "-" if row is None else "not played"
    return f"{100 * row.agrees:.4g} % · {max(row.delays, default=0.0):.2f} s"
