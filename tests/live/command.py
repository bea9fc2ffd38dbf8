"""Play scenes on Claude Code or another CLI, check the limits, and write the page."""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

from live import seen, stage
from live.own import reported
from live.own.page import section
from live.page import OTHERS, OWN, STRICT, TABLE, WAYS, others, page, with_part
from live.play import play, played, slug, write_lines
from live.public import brief
from live.report import Kept, Row, Total, missed
from live.scene import OF_OTHERS, SCENES, SPOKEN, SPOKEN_OF_OTHERS
from live.stage import How
from live.stands import SPEAKING, STANDS
from live.words import WORDS
from rig import DATA
from rig.fetched import claude_code
from rig.fetched.cache import folder

HEARD = DATA / "traces" / "reported"
CLAUDE = "claude"


def main(argv: Sequence[str]) -> int:
    """Return 1 if a limit was missed with complete evidence, 2 if a scene was not played."""
    args = parsed(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if args.words:
        print("\n".join((word.__doc__ or "").partition("\n")[0] for word in WORDS.values()))
        return 0
    if args.kept:
        TABLE.write_text(with_part(TABLE.read_text(), OWN, section(args.kept)))
        return 0
    if not any(s.matches(args.scene) for s in (*SCENES, *OF_OTHERS, *SPOKEN, *SPOKEN_OF_OTHERS)):
        sys.exit(f"no scene has {args.scene!r} in its name, or as a tag")
    kept = Kept(args.rows)
    if args.agent != CLAUDE:
        return of_others(args, kept)
    version = claude_code.resolved(args.cli) if args.cli else ""
    if args.heard:
        return record(version or max(claude_code.PINNED, key=claude_code.numbers), args)
    return of_claude(args, kept, version)


def of_claude(args: argparse.Namespace, kept: Kept, version: str) -> int:
    """Play them on one version of Claude Code, or in all ways."""
    ways = {version: How(version)} if version else {w: WAYS[w] for w in args.way or WAYS}
    if version and not args.keep:
        args.keep = folder() / "truth" / version
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")
    unplayed = 0
    for way, how in ways.items():
        wanted = [s for s in SCENES if s.matches(args.scene) and s.suits(how)]
        wanted = [s for s in wanted if not kept.has(way, s.name)]
        if args.minutes:  # else the same ones would be left out each time
            random.shuffle(wanted)
        print(f"== {way}")

        def tell(row: Row, way: str = way) -> None:
            print(row, flush=True)
            kept.add(way, row)

        fresh = play(wanted, how, args.jobs, tell, args.keep, until, args.listing) if wanted else []
        unplayed += len(wanted) - sum(any(s.name == r.scene for r in fresh) for s in wanted)
        print(f"== {way}: {Total(kept.of(way).values())}")
    held = [way for way in ways if way in STRICT or way == version]
    bad = [f"{way}: {each}" for way in held for each in missed(kept.of(way).values())]
    if args.write:
        now = {way: kept.of(way) for way in ways}
        TABLE.write_text(page(now, args.walks, TABLE.read_text()))
    for each in ways if args.keep else ():
        if ways[each] == How(each):  # in tmux, with all evidence
            print(compared(each, args.keep, whole=not unplayed and not args.scene))
    print("\n".join(bad) or "every bar is held")
    if unplayed:
        print(f"{unplayed} scenes not played yet: once more, with the same --rows")
    return 2 if unplayed else int(bool(bad))


def of_others(args: argparse.Namespace, kept: Kept) -> int:
    """Play them on other CLIs."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end_at_once)
    bad: list[str] = []
    stands = SPEAKING if args.editor else STANDS
    how = How(editor=args.editor, hidden=args.alone, hooked=not (args.alone or args.unhooked))
    for key in stands if args.agent == "all" else args.agent.split(","):
        stand = stands[key]
        stand.fetch()
        scenes = SPOKEN_OF_OTHERS if args.editor else OF_OTHERS
        wanted = [s for s in scenes if s.matches(args.scene) and s.name not in stand.lacks]
        wanted = [s for s in wanted if not kept.has(key, s.name)]
        print(f"== {stand.name} {stand.version}", flush=True)
        with ThreadPoolExecutor(args.jobs or 1) as pool:
            for row in pool.map(lambda scene, s=stand: played(s, scene, args.keep, how), wanted):
                print(row, flush=True)
                kept.add(key, row)
        print(f"== {stand.name}: {Total(kept.of(key).values())}", flush=True)
        bad += [f"{stand.name}: {x}" for x in missed(kept.of(key).values(), stand.agrees)]
    if args.write:
        TABLE.write_text(with_part(TABLE.read_text(), OTHERS, others(kept.ways)))
    print("\n".join(bad) or "every bar is held")
    return int(bool(bad))


def record(version: str, args: argparse.Namespace) -> int:
    """Record scenes in a Neovim, with what it hears and shows; print how the reports compare."""
    how = How(version, editor="0.12")
    scenes = [s for s in SPOKEN if s.matches(args.scene)]
    args.heard.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        raw = args.keep or Path(temporary)
        rows = play(scenes, how, args.jobs, lambda row: print(row, flush=True), raw)
        failed = {row.scene for row in rows if row.failure}
        for scene in scenes:
            path = raw / f"{version}-{slug(scene.name)}.jsonl"
            if scene.name in failed or not path.exists():
                continue
            lines = brief(json.loads(text) for text in path.read_text().splitlines())
            name = re.sub(r"\W+", "_", scene.name).strip("_")
            write_lines(args.heard / f"{name}-{version}.jsonl", lines, is_ascii=False)
            for other in (reported.FILE, reported.SCREEN):
                print(f"{name:40} {other:6} {reported.compared(lines, other)}")
    return int(bool(failed))


def compared(version: str, traces: Path, *, whole: bool) -> str:
    """Compare a version with the last complete one, and keep it if it is `whole`, too."""
    files = sorted(traces.glob(f"{version}-*.jsonl"))
    now = seen.shapes(files, seen.hook_names(version))
    if whole and version in claude_code.PINNED:
        seen.keep(version, now)
    if (last := seen.before(version)) is None:
        return f"{version}: no older version was played whole, so there is nothing to compare"
    old, was = last
    found = seen.differences(was, now)
    found = found if whole else [each for each in found if ": + " in each]
    told = "\n".join(f"  {each}" for each in found)
    return f"{version}, compared with {old}:\n{told or '  the same in all that was seen'}"


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m live scenes", description=__doc__)
    add = parser.add_argument
    add("--agent", default=CLAUDE, help=f"or some of {','.join(STANDS)}, or all of these")
    add("--scene", default="", metavar="A|B", help="only those whose name or tag has it")
    add("--jobs", type=int, default=2, help="scenes at a time (default: 2)")
    add("--keep", type=Path, metavar="DIR", help="keep traces there (of one version: always)")
    add("--rows", type=Path, metavar="FILE", help="keep the figures there, and go on from them")
    add("--minutes", type=float, help="begin no scene after so many; play them in any order")
    add("--write", action="store_true", help=f"write {TABLE.name}")
    add("--words", action="store_true", help="play nothing: list the words of a scene's steps")
    only = parser.add_argument_group("of Claude Code")
    add = only.add_argument
    add("--way", choices=WAYS, action="append", help="only that (default: all)")
    add("--cli", default="", help="only that version, or the newest that there is")
    add("--listing", action="store_true", help="compare with `claude agents --json` too")
    add("--walks", type=Path, metavar="FILE", help="figures of walks, for the page")
    heard = "record what a CLI reports of itself in a Neovim, as traces there"
    add("--heard", type=Path, nargs="?", const=HEARD, metavar="DIR", help=heard)
    kept = "play nothing: write the part about what programs say themselves, of these traces"
    add("--kept", type=Path, action="append", metavar="DIR", help=kept)
    only = parser.add_argument_group("of other agents")
    add = only.add_argument
    add("--editor", default="", help="in a :terminal of this Neovim (0.10, 0.12)")
    add("--alone", action="store_true", help="with its own report, nothing else")
    add("--unhooked", action="store_true", help="without our hooks")
    return parser.parse_args(argv)


def end(number: int, frame: FrameType | None) -> None:
    """Stop everything that was started, on a signal; the scenes that are played then fail."""
    stage.close_all()
    sys.exit(128 + number)


def end_at_once(number: int, frame: FrameType | None) -> None:
    """Do the same, but wait for no scene: each has its own host, which has ended with it."""
    stage.close_all()
    os._exit(128 + number)
