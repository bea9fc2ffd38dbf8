"""Give every answer to every CLI: `python -m answers [--cli VERSION]… [--case NAME]`."""

from __future__ import annotations

import argparse
import sys
import time

from answers.cases import CASES
from answers.giving import give
from rig import claude_code


def main() -> int:
    """Return 1 if an answer did not arrive."""
    parser = argparse.ArgumentParser(prog="python -m answers")
    parser.add_argument("--cli", action="append", help="only that version, or `newest`")
    parser.add_argument("--case", default="", help="only those whose name has it")
    args = parser.parse_args()
    failed = 0
    for version in map(claude_code.resolved, args.cli or claude_code.PINNED):
        start = time.monotonic()
        for case, wrong in give(version, [c for c in CASES if args.case in c.name]):
            took, start = time.monotonic() - start, time.monotonic()
            print(f"{version:9} {case.name:34} {took:5.1f} s  {wrong or 'arrived'}", flush=True)
            failed += bool(wrong)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
