"""Give every answer to every CLI; or one of the other ways to answer and send."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Final

from live.answers import meeting, proofs, sending, served
from live.answers.giving import CASES, give
from rig import claude_code

OTHERS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    part.__name__.rpartition(".")[2]: part.main for part in (proofs, meeting, sending, served)
}


def main(argv: Sequence[str]) -> int:
    """Return 1 if an answer did not arrive."""
    if argv and argv[0] in OTHERS:
        return OTHERS[argv[0]](argv[1:])
    others = f"or first one of {', '.join(OTHERS)}, with options of its own"
    parser = argparse.ArgumentParser(prog="python -m live answers", epilog=others)
    parser.add_argument("--cli", action="append", help="only that version, or `newest`")
    parser.add_argument("--case", default="", help="only those whose name has it")
    args = parser.parse_args(argv)
    failed = 0
    for version in map(claude_code.resolved, args.cli or claude_code.PINNED):
        start = time.monotonic()
        for case, wrong in give(version, [c for c in CASES if args.case in c.name]):
            took, start = time.monotonic() - start, time.monotonic()
            print(f"{version:9} {case.name:34} {took:5.1f} s  {wrong or 'arrived'}", flush=True)
            failed += bool(wrong)
    return int(bool(failed))
