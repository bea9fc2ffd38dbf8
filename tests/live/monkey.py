"""The results of random walks, for the page: `python -m live walks --rows FILE` writes them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

MOST: Final = 12  # rows of a table

HEAD: Final = """## A monkey at the keyboard

`make live ONLY=walks MINUTES=n` walks at random through real CLIs: prompts, keys, commands, second
terminals, hooks of its own, frozen and killed processes, restarted hosts, moved panes. What is
shown is compared with the session files all the time. A walk that fails is walked again with fewer
and fewer actions until no action can be left out, and kept as a trace. The same seed draws the same
walk.
"""


class Walks:
    """The walks in a file."""

    def __init__(self, path: Path) -> None:
        self.rows: list[dict[str, Any]] = [json.loads(x) for x in path.read_text().splitlines()]

    def section(self) -> list[str]:
        """Return the section for the page."""
        lines = [HEAD, "| CLI | walks | actions | minutes | right | wrong for over 0.5 s |"]
        lines += ["|---|--:|--:|--:|--:|--:|"]
        for version in sorted({row["version"] for row in self.rows}):
            mine = [row for row in self.rows if row["version"] == version]
            compared = sum(row["compared"] for row in mine)
            right = 1 - sum(row["wrong"] for row in mine) / compared if compared else 1.0
            wrongs = sum(len(row["wrongs"]) for row in mine)
            actions = sum(row["actions"] for row in mine)
            lines.append(
                f"| {version} | {len(mine)} | {actions} | {compared / 60:.0f} "
                f"| {right:.2%} | {wrongs} |"
            )
        return [*lines, "", *self._found()]

    def _found(self) -> list[str]:
        """Return the failures, the most frequent first."""
        longest: dict[str, float] = {}
        times: Counter[str] = Counter()
        seeds: dict[str, int] = {}
        for row in self.rows:
            for wrong in row["wrongs"]:
                what = f"{wrong['shown']}, not {wrong['said']} | {wrong['rule']}"
                times[what] += 1
                longest[what] = max(longest.get(what, 0.0), round(wrong["seconds"], 1))
                seeds.setdefault(what, row["seed"])
        if not times:
            return ["Nothing was wrong for longer than 0.5 s.", ""]
        lines = ["| shown | rule | times | longest | a seed |", "|---|---|--:|--:|--:|"]
        for what, count in times.most_common(MOST):
            lines.append(f"| {what} | {count} | {longest[what]} s | {seeds[what]} |")
        return [*lines, ""]
