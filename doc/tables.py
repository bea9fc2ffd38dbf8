"""Write the table of rules into the help: `python doc/tables.py [--check]`.

The text between two marker lines in the help is generated from `machine.py` and its rules.
With --check nothing is written; the exit status says whether the help is up to date.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from bellboard.core.machine import TABLE
from bellboard.core.rules import RULES
from bellboard.core.session import ABSENT, STATUSES

MANUAL = Path(__file__).parent / "bellboard.txt"
BEGIN = "------ The rules, written by doc/tables.py ------"
END = "------ Here ends what doc/tables.py writes ------"
WIDTH = 78
INDENT = 18


def section() -> list[str]:
    """Return the lines between the markers."""
    return [
        "",
        "What each rule means:",
        "",
        *(x for name, rule in RULES.items() for x in row(name, (rule.__doc__ or "").strip())),
        "",
        "Which rule handles which kind of evidence, by the status of the session. In a",
        "status that is not listed, that evidence changes nothing:",
        "",
        *(x for kind, cells in TABLE.items() for x in row(kind, decided(cells))),
        "",
    ]


def decided(cells: dict[str, str]) -> str:
    """Return a row of the table in words: each rule once, with its statuses."""
    rules = [rule for rule in dict.fromkeys(cells.values()) if rule != "."]
    words = []
    for rule in rules:
        statuses = [status for status, cell in cells.items() if cell == rule]
        words.append(f"{rule}: {named(statuses)}")
    return "; ".join(words) or "nothing"


def named(statuses: list[str]) -> str:
    if set(statuses) >= set(STATUSES):
        return "any" if ABSENT in statuses else "any that is listed"
    return ", ".join(statuses)


def row(head: str, text: str) -> Iterator[str]:
    lines = textwrap.wrap(text, WIDTH - INDENT - 1)
    for n, line in enumerate(lines):
        yield f" {head if n == 0 else '':{INDENT}}{line}"


def with_section(manual: str) -> str:
    """Return the help with the section replaced; exit if a marker is missing."""
    lines = manual.split("\n")
    if BEGIN not in lines or END not in lines:
        raise SystemExit(f"{MANUAL.name} has no lines\n{BEGIN}\n{END}")
    begin, end = lines.index(BEGIN), lines.index(END)
    return "\n".join([*lines[: begin + 1], *section(), *lines[end:]])


def main() -> int:
    manual = MANUAL.read_text(encoding="utf-8")
    made = with_section(manual)
    if "--check" in sys.argv:
        return int(made != manual)
    MANUAL.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
