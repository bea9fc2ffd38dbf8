"""`python -m truth`: play the scenes in every way, print the table, hold the strict bars."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from truth.play import Row, play
from truth.report import line
from truth.scenes import SCENES
from truth.stage import How


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("-k", default="")
    asked.add_argument("--version", default=How().version)
    asked.add_argument("--editor", default="")
    asked.add_argument("--hidden", action="store_true")
    asked.add_argument("--jobs", type=int, default=4)
    asked.add_argument("--keep", type=Path)
    args = asked.parse_args()

    def tell(row: Row) -> None:
        print(line(row), flush=True)

    wanted = [s for s in SCENES if any(k in s.name for k in args.k.split("|"))]
    rows = play(wanted, How(args.version, args.editor, args.hidden), args.jobs, tell, args.keep)
    return int(any(row.failure for row in rows))


if __name__ == "__main__":
    sys.exit(main())
