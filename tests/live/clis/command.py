"""Play the scenes on another agent's CLI, and write its column."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType

from live.clis import stage
from live.clis.play import played
from live.clis.report import Kept, line, missed, total, write
from live.clis.scenes import SCENES, SPOKEN
from live.clis.stage import How
from live.clis.stands import SPEAKING, STANDS, Stand


def main(argv: Sequence[str]) -> int:
    """Return 1 if a bar was missed."""
    args = parsed(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    kept = Kept(args.rows)
    bad: list[str] = []
    stands = SPEAKING if args.editor else STANDS
    for key in args.agent.split(",") if args.agent else stands:
        stand = stands[key]
        stand.fetch()
        scenes = SPOKEN if args.editor else SCENES
        names = [n for n in scenes if args.scene in n and n not in stand.lacks]
        names = [n for n in names if not kept.has(key, n)]
        print(f"== {stand.name} {stand.version}", flush=True)
        with ThreadPoolExecutor(args.jobs) as pool:
            list(
                pool.map(partial(tell, stand, kept, args.keep, How(args.editor, args.alone)), names)
            )
        print(f"== {stand.name}: {total(kept.of(key))}", flush=True)
        bad += missed(stand, kept.of(key))
    if args.write:
        write(kept)
    print("\n".join(bad) or "every bar is held")
    return int(bool(bad))


def tell(stand: Stand, kept: Kept, keep: Path | None, how: How, name: str) -> None:
    row = played(stand, name, keep, how)
    print(line(row), flush=True)
    kept.add(stand.key, row)


def end(number: int, frame: FrameType | None) -> None:
    """Stop everything that was started, on a signal."""
    stage.close_all()
    os._exit(128 + number)  # scenes are in the middle of something


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m live scenes", description=__doc__)
    parser.add_argument("--agent", default="", help=f"some of {','.join(STANDS)}; else all")
    parser.add_argument("--scene", default="", help="scenes whose name has this in it")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="what was seen and shown")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keep figures, and go on there")
    parser.add_argument("--editor", default="", help="in a :terminal of this Neovim (0.10, 0.12)")
    parser.add_argument("--alone", action="store_true", help="with its own report, nothing else")
    parser.add_argument("--write", action="store_true", help="write doc/truth.md")
    return parser.parse_args(argv)
