"""Give answers and prompts to real CLIs, and check what the model gets.

By default each kind of question gets each answer, on every version of Claude Code (`cases`).
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from live.answers.giving import CASES, give
from live.answers.meeting import PAIRS, TIMES, meet
from live.answers.place import place
from live.answers.proofs import PROOFS
from live.answers.sending import PARTS
from live.answers.served import SERVED
from rig.fetched import claude_code

Results = Iterator[tuple[str, str]]  # what was tried, and what was wrong
#: The trials that are named together.
GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "sending": tuple(PARTS),
    "proofs": tuple(PROOFS),
    "meeting": tuple(PAIRS),
    "served": tuple(SERVED),
}


def main(argv: Sequence[str]) -> int:
    """Return 1 if an answer did not arrive."""
    parser = argparse.ArgumentParser(prog="python -m live answers", description=__doc__)
    groups = "; ".join(f"{group}: {', '.join(names)}" for group, names in GROUPS.items())
    names = ("cases", *GROUPS, *(name for group in GROUPS.values() for name in group))
    told = f"cases (default); {groups}"
    parser.add_argument("name", nargs="*", choices=[*names, []], metavar="NAME", help=told)
    parser.add_argument("--cli", action="append", help="only that version, or `newest`")
    parser.add_argument("--case", default="", help="only the cases whose name has it")
    parser.add_argument("--times", type=int, default=TIMES, help="that two meet")
    args = parser.parse_args(argv)
    failed = 0
    for name in (each for at in args.name or ["cases"] for each in GROUPS.get(at, (at,))):
        usual = claude_code.PINNED if name == "cases" else (claude_code.VERSION,)
        for version in map(claude_code.resolved, args.cli or usual):
            where = name if name in SERVED else f"{version} {name}"
            begun = time.monotonic()
            for what, wrong in results(name, version, args.case, args.times):
                took, begun = time.monotonic() - begun, time.monotonic()
                print(f"{where:20} {what:34} {took:6.1f} s  {wrong or 'arrived'}", flush=True)
                failed += bool(wrong)
    return int(bool(failed))


def results(name: str, version: str, wanted: str, times: int) -> Results:
    """Try something."""
    if name == "cases":
        for case, wrong in give(version, [c for c in CASES if wanted in c.name]):
            yield case.name, wrong
    elif name in PARTS:
        with place(version) as made:
            yield from PARTS[name](made)
    else:
        yield from proved(
            SERVED.get(name)
            or (partial(PROOFS[name], version) if name in PROOFS else None)
            or partial(meet, version, times, name)
        )


def proved(trial: Callable[[], None]) -> Results:
    """Try something that prints its figures, and fails where something is wrong."""
    try:
        trial()
        yield "all of it", ""
    except Exception as error:  # any kind: it is noted, and the others continue
        traceback.print_exc()
        yield "all of it", f"{type(error).__name__}: {error}".partition("\n")[0]
