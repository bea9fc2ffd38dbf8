"""Keep the results of scenes, print them, and write their part of doc/truth.md."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from live.clis.account import Row
from live.clis.scenes import SCENES
from live.clis.spoken import section
from live.clis.stands import STANDS, Stand
from live.report import LEFT, OTHERS, SLOWEST, TABLE

HEAD: Final = f"""{OTHERS}

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


class Kept:
    """The rows so far, of each agent; in a file, if one is named."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._rows: dict[tuple[str, str], Row] = {}
        for text in path.read_text().splitlines() if path and path.exists() else ():
            told = json.loads(text)
            agent = told.pop("agent")
            row = Row(**{k: tuple(v) if isinstance(v, list) else v for k, v in told.items()})
            self._rows[agent, row.scene] = row

    def add(self, agent: str, row: Row) -> None:
        self._rows[agent, row.scene] = row
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps({"agent": agent, **asdict(row)}) + "\n")

    def get(self, agent: str, scene: str) -> Row | None:
        return self._rows.get((agent, scene))

    def has(self, agent: str, scene: str) -> bool:
        """Return whether it was played without a failure."""
        row = self.get(agent, scene)
        return row is not None and not row.failure

    def of(self, agent: str) -> list[Row]:
        return [row for (whose, _), row in self._rows.items() if whose == agent]


def line(row: Row) -> str:
    """Return a row as a line."""
    slowest = max(row.delays, default=0.0)
    wrong = f"  {'; '.join(row.wrong)}" if row.wrong else ""
    failed = f"\n  {row.failure}" if row.failure else ""
    return (
        f"{row.scene:20} {row.agrees:7.2%} of {row.compared:5.1f} s  "
        f"slowest of {len(row.delays):2} {slowest:.2f} s  gone {row.left:.2f} s{wrong}{failed}"
    )


def missed(stand: Stand, rows: Sequence[Row]) -> list[str]:
    """Return the bars that a CLI missed."""
    bad = []
    for row in rows:
        if row.failure:
            bad.append(f"{row.scene}: {row.failure.splitlines()[0]}")
        if (slowest := max(row.delays, default=0.0)) > SLOWEST:
            bad.append(f"{row.scene}: a change took {slowest:.2f} s")
        if row.left > LEFT:
            bad.append(f"{row.scene}: left for {row.left:.1f} s")
    bad = [f"{stand.name}, {each}" for each in bad]
    if (share := agrees(rows)) < stand.agrees:
        bad.append(f"{stand.name} agrees {share:.2%} of the time, not {stand.agrees:.0%}")
    return bad


def agrees(rows: Sequence[Row]) -> float:
    """Return the share of the time with the right status."""
    compared = sum(row.compared for row in rows)
    return 1 - sum(row.off for row in rows) / compared if compared else 1.0


def total(rows: Sequence[Row]) -> str:
    """Return the figures of all rows."""
    compared = sum(row.compared for row in rows)
    slowest = max((d for row in rows for d in row.delays), default=0.0)
    left = max((row.left for row in rows), default=0.0)
    return (
        f"{len(rows)} scenes, {agrees(rows):.2%} of {compared:.0f} s, the slowest change after "
        f"{slowest:.2f} s, gone after {left:.2f} s"
    )


def write(kept: Kept) -> None:
    """Write the part about other agents; what Claude Code's scenes wrote stays."""
    page = TABLE.read_text().partition(OTHERS)[0].rstrip()
    TABLE.write_text(f"{page}\n\n{part(kept)}")


def part(kept: Kept) -> str:
    """Return that part: of the agents that were played."""
    played = {key: stand for key, stand in STANDS.items() if kept.of(key)}
    lines = [HEAD]
    lines += [f"* {s.name} {s.version}: {total(kept.of(key))}" for key, s in played.items()]
    load = f"Played on {os.cpu_count()} cores, with a load of {os.getloadavg()[1]:.0f} at the end."
    lines += ["", load, ""]
    lines += [f"| scene | {' | '.join(stand.name for stand in played.values())} |"]
    lines += [f"|---{'|--:' * len(played)}|"]
    for scene in SCENES:
        cells = [
            "-" if scene in stand.lacks else cell(kept.get(key, scene))
            for key, stand in played.items()
        ]
        lines.append(f"| {scene} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", section()])


def cell(row: Row | None) -> str:
    """Return a row in a few characters."""
    if row is None or row.failure:
        return "not played"
    return f"{100 * row.agrees:.4g} % · {max(row.delays, default=0.0):.2f} s"
