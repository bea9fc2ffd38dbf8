"""`make truth`: play the scenes in every way, hold the strict bars, write the table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from truth.play import Row, play
from truth.report import TABLE, WAYS, Total, line, missed, page
from truth.scenes import SCENES


def main() -> int:
    """The status is 1 if a bar was missed where the evidence is whole."""
    parser = argparse.ArgumentParser(prog="python -m truth")
    parser.add_argument("--way", choices=WAYS, action="append", help="only that (default: all)")
    parser.add_argument("--scene", default="", metavar="A|B", help="only those whose name has it")
    parser.add_argument("--jobs", type=int, default=2, help="scenes at a time (default: 2)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what was seen, as traces")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    args = parser.parse_args()
    wanted = [s for s in SCENES if any(part in s.name for part in args.scene.split("|"))]
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)

    def tell(row: Row) -> None:
        print(line(row), flush=True)

    played, bad = {}, []
    for way in args.way or WAYS:
        print(f"== {way}")
        played[way] = play(wanted, WAYS[way], args.jobs, tell, args.keep)
        print(f"== {way}: {Total(played[way])}")
        if way in ("tmux", "Neovim"):
            bad += [f"{way}: {what}" for what in missed(played[way])]
    if args.write:
        TABLE.write_text(page(played))
    print("\n".join(bad) or "every bar is held")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
