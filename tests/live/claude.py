"""Play the scenes on every Claude Code, check the strict limits, write the page."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from live import seen, stage
from live.monkey import Walks
from live.own import reported
from live.own.page import section
from live.play import play, slug
from live.public import brief
from live.report import OWN, STRICT, TABLE, WAYS, Total, line, missed, page, with_part
from live.rows import Kept, Row
from live.scene import SCENES, SPOKEN
from live.stage import How
from rig import claude_code
from rig.cache import CHECKOUT, folder

HEARD = CHECKOUT / "tests" / "traces" / "reported"


def main(argv: Sequence[str]) -> int:
    """Return 1 if a limit was missed with complete evidence, 2 if a scene was not played."""
    args = parsed(argv)
    if args.kept:
        TABLE.write_text(with_part(TABLE.read_text(), OWN, section(args.kept)))
        return 0
    version = claude_code.resolved(args.cli) if args.cli else ""
    if args.heard:
        return record(version or max(claude_code.PINNED, key=claude_code.numbers), args)
    ways = {version: How(version)} if version else {w: WAYS[w] for w in args.way or WAYS}
    if version and not args.keep:
        args.keep = folder() / "truth" / version
    kept = Kept(args.rows) if args.rows else None
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)

    played: dict[str, dict[str, Row]] = {}
    unplayed = 0
    for way, how in ways.items():
        rows = played[way] = dict(kept.ways.get(way, {})) if kept else {}
        wanted = [
            s
            for s in SCENES
            if s.matches(args.scene) and s.suits(how) and not (kept and kept.has(way, s.name))
        ]
        print(f"== {way}")

        def tell(row: Row, way: str = way, rows: dict[str, Row] = rows) -> None:
            print(line(row), flush=True)
            rows[row.scene] = row
            if kept:
                kept.add(way, row)

        fresh = play(wanted, how, args.jobs, tell, args.keep, until, args.listing) if wanted else []
        unplayed += len(wanted) - sum(any(s.name == r.scene for r in fresh) for s in wanted)
        print(f"== {way}: {Total(rows.values())}")
    bad = [f"{w}: {m}" for w in played if w in STRICT or w == version for m in missed(played[w])]
    if args.write:
        walks = Walks(args.walks) if args.walks else None
        TABLE.write_text(page(played, walks, TABLE.read_text()))
    for each in ways if args.keep else ():
        if ways[each] == How(each):  # in tmux, with all evidence
            print(compared(each, args.keep, whole=not unplayed and not args.scene))
    print("\n".join(bad) or "every bar is held")
    if unplayed:
        print(f"{unplayed} scenes not played yet: once more, with the same --rows")
    return 2 if unplayed else int(bool(bad))


def record(version: str, args: argparse.Namespace) -> int:
    """Record scenes in a Neovim, with what it hears and shows; print how the reports compare."""
    how = How(version, editor="0.12", heard=True)
    scenes = [s for s in SPOKEN if s.matches(args.scene)]
    args.heard.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        raw = args.keep or Path(temporary)
        rows = play(scenes, how, args.jobs, lambda row: print(line(row), flush=True), raw)
        failed = {row.scene for row in rows if row.failure}
        for scene in scenes:
            path = raw / f"{version}-{slug(scene.name)}.jsonl"
            if scene.name in failed or not path.exists():
                continue
            lines = brief(json.loads(text) for text in path.read_text().splitlines())
            name = re.sub(r"\W+", "_", scene.name).strip("_")
            text = "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines)
            (args.heard / f"{name}-{version}.jsonl").write_text(text)
            for other in (reported.FILE, reported.SCREEN):
                print(f"{name:40} {other:6} {reported.compared(lines, other)}")
    return int(bool(failed))


def compared(version: str, traces: Path, *, whole: bool) -> str:
    """Compare a version with the last complete one, and keep it if it is complete, too."""
    files = sorted(traces.glob(f"{version}-*.jsonl"))
    now = seen.shapes(files, seen.hook_names(version))
    if whole and version in claude_code.PINNED:
        seen.keep(version, now)
    if (found := seen.before(version)) is None:
        return f"{version}: no older version was played whole, so there is nothing to compare"
    old, was = found
    told = "\n".join(f"  {each}" for each in seen.differences(was, now))
    return f"{version}, compared with {old}:\n{told or '  the same in all that was seen'}"


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m live scenes")
    parser.add_argument("--way", choices=WAYS, action="append", help="only that (default: all)")
    parser.add_argument("--cli", default="", help="only that version, or the newest that there is")
    parser.add_argument(
        "--scene", default="", metavar="A|B", help="only those whose name has it, or with this tag"
    )
    parser.add_argument("--jobs", type=int, default=2, help="scenes at a time (default: 2)")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep traces there (of one CLI: always)"
    )
    parser.add_argument(
        "--rows", type=Path, metavar="FILE", help="keep the figures there, and go on from them"
    )
    parser.add_argument("--minutes", type=float, help="begin no scene after so many")
    parser.add_argument(
        "--listing", action="store_true", help="compare with `claude agents --json` too"
    )
    parser.add_argument("--walks", type=Path, metavar="FILE", help="the monkey's, for the page")
    parser.add_argument(
        "--heard",
        type=Path,
        nargs="?",
        const=HEARD,
        metavar="DIR",
        help="record what a CLI reports of itself in a Neovim, as traces there",
    )
    parser.add_argument(
        "--kept",
        type=Path,
        action="append",
        metavar="DIR",
        help="play nothing: write the part about what programs say themselves, of these traces",
    )
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    return parser.parse_args(argv)


def end(number: int, frame: FrameType | None) -> None:
    """Stop everything that was started, on a signal."""
    stage.close_all()
    sys.exit(128 + number)
