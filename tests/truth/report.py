"""The rows as lines for a person, the bars that they hold, and the table of doc/truth.md."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Final

from rig import claude_code
from rig.cache import CHECKOUT
from truth.rows import Row
from truth.scenes import SCENES
from truth.stage import How

AGREES: Final = 0.999  # of the time
SLOWEST: Final = 0.5  # seconds until a change is shown
LEFT: Final = 2.0  # seconds that a session is listed after its end

TABLE: Final = CHECKOUT / "doc" / "truth.md"
WAYS: Final = {
    "2.1.330": How("2.1.330"),
    "2.1.328": How(),
    "Neovim": How(editor="0.12"),
    "no session files": How(hidden=True),
    "2.1.119": How("2.1.119"),
    "2.1.76": How("2.1.76"),
}
STRICT: Final = ("2.1.330", "2.1.328", "Neovim")  # where the evidence is whole
HEAD: Final = f"""# What is shown, and what the CLI says

The real Claude Code CLI {claude_code.VERSION} runs on a fake API, with bellboard's hook, and a
script types into it. While it runs, what `bellboard watch --json` prints is compared with what the
CLI says of itself in its session file: `busy` is working, `waiting` blocked, `shell` background,
and `idle` is what the last end says. Not counted are 0.35 s around each change, dialogs that ask
nothing for the agent, and the moment between the hook of a change and the file that follows it.

Each cell: the share of the time in which both said the same, and the longest that a change took to
be shown. `make truth` plays it all, writes this page, and fails below {AGREES:.0%}, above
{SLOWEST} s, or when a session is still listed {LEFT:.0f} s after its end, in the first two columns.
In the others the evidence is not whole, and they show what it costs: without session files nothing
tells of an Esc before the first output; 2.1.76 has no status in them, and its screen is the witness
instead. A dash: that version does not have it, or does it in another way.
"""


def line(row: Row) -> str:
    """All of a row."""
    slowest = max(row.delays, default=0.0)
    wrong = f"  wrong for {', '.join(f'{w:.2f}' for w in row.wrong)}" if row.wrong else ""
    ended = f"  ended as {row.otherwise}" if row.otherwise else ""
    failed = f"\n  {row.failure}" if row.failure else ""
    return (
        f"{row.scene:28} {row.agrees:7.2%} of {row.compared:5.1f} s  "
        f"slowest of {len(row.delays):2} {slowest:.2f} s  gone {row.left:.2f} s"
        f"{wrong}{ended}{failed}"
    )


def missed(played: Mapping[str, Row]) -> list[str]:
    """The bars that are not held."""
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
    """Of all rows."""

    def __init__(self, rows: Collection[Row]) -> None:
        self.compared = sum(row.compared for row in rows)
        wrong = sum(sum(row.wrong) for row in rows)
        self.agrees = 1 - wrong / self.compared if self.compared else 1.0
        self.changes = sum(len(row.delays) for row in rows)
        self.slowest = max((delay for row in rows for delay in row.delays), default=0.0)
        self.left = max((row.left for row in rows), default=0.0)

    def __str__(self) -> str:
        return (
            f"{self.agrees:.2%} of {self.compared:.0f} s, {self.changes} changes, "
            f"the slowest after {self.slowest:.2f} s, gone after {self.left:.2f} s"
        )


def page(ways: Mapping[str, Mapping[str, Row]]) -> str:
    """doc/truth.md."""
    lines = [HEAD, f"| scene | {' | '.join(ways)} |", f"|---{'|--:' * len(ways)}|"]
    for scene in SCENES:
        cells = [cell(rows.get(scene.name)) for rows in ways.values()]
        lines.append(f"| {scene.name} | {' | '.join(cells)} |")
    lines += ["", *(f"* {way}: {Total(rows.values())}" for way, rows in ways.items()), ""]
    where = f"On {os.cpu_count()} cores, with a load of {os.getloadavg()[1]:.0f} in the end"
    lines += [f"{where}: what starves is late, the CLI as well as its board.", ""]
    return "\n".join(lines)


def cell(row: Row | None) -> str:
    """A row in a few characters."""
    if row is None or row.failure:
        return "-" if row is None else "not played"
    return f"{100 * row.agrees:.4g} % · {max(row.delays, default=0.0):.2f} s"
