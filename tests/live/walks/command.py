"""Walk at random for some minutes, report wrong statuses, shorten failing walks."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Final

from live.command import end
from live.play import write, write_lines
from live.public import public
from live.stage import CLOSING
from live.walks import actions
from live.walks.actions import Walk
from live.walks.judge import Disagreement, Verdict, judged
from live.walks.shrink import shrunk, until_wrong
from live.walks.walker import Walked, walked
from rig.fetched import claude_code
from rig.fetched.cache import folder

LENGTH: Final = 75.0  # approximate seconds of a walk
MARGIN: Final = 3.0  # seconds after the start of a wrong status in which actions may be its cause


def main(argv: Sequence[str]) -> int:
    """Exit with 1 if anything was wrong."""
    args = parsed(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    until = time.monotonic() + 60 * args.minutes
    versions = [claude_code.resolved(each) for each in args.cli.split(",")]
    if args.walk:
        again = actions.read(args.walk.read_text())
        return int(bool(report(walked(again), args.out, args.rows).wrongs))
    seeds = itertools.count(args.seed)

    def stroll(_: int) -> bool:
        """Run walks; return whether one failed."""
        failed = False
        while time.monotonic() < until and not CLOSING.is_set():
            seed = next(seeds)
            seen = walked(actions.drawn(seed, versions[seed % len(versions)], args.length))
            if CLOSING.is_set():
                break
            verdict = report(seen, args.out, args.rows)
            failed |= bool(verdict.wrongs)
            if verdict.wrongs and not args.whole:
                shorten(seen, verdict.wrongs[0], args.out, until)
        return failed

    with ThreadPoolExecutor(args.jobs) as pool:
        return int(any(list(pool.map(stroll, range(args.jobs)))))


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m live walks")
    parser.add_argument("--minutes", type=float, default=5.0, help="default: 5")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the first one")
    parser.add_argument(
        "--cli", default=claude_code.VERSION, metavar="A,B", help="versions in turn"
    )
    parser.add_argument("--length", type=float, default=LENGTH, help="seconds of a walk")
    parser.add_argument("--jobs", type=int, default=1, help="walks at a time (default: 1)")
    parser.add_argument("--whole", action="store_true", help="do not shrink what fails")
    parser.add_argument("--walk", type=Path, metavar="FILE", help="walk that one again")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="add the figures to this file")
    parser.add_argument("--out", type=Path, default=folder() / "walks", help="for what failed")
    return parser.parse_args(argv)


def report(seen: Walked, out: Path, rows: Path | None) -> Verdict:
    """Print a line, add a row to the table, and write the files of a failed walk."""
    walk, verdict = seen.walk, judged(seen)
    print(
        f"seed {walk.seed}  {walk.version}  {len(walk.actions)} actions  "
        f"{verdict.sessions} sessions  right {verdict.right:.2%} of {verdict.compared:.0f} s  "
        f"{seen.trouble}".rstrip()
    )
    for kind, found in (("wrong", verdict.wrongs), ("late", verdict.late)):
        for each in found:
            print(f"    {kind} {each}")
    for told in (*seen.misplaced, *seen.disagreements):
        print(f"    {told}")
    sys.stdout.flush()
    if rows:
        row = {
            "t": time.time(),
            "seed": walk.seed,
            "version": walk.version,
            "actions": len(walk.actions),
            "compared": verdict.compared,
            "wrong": verdict.wrong_seconds,
            "wrongs": [asdict(each) for each in verdict.wrongs],
            "late": [asdict(each) for each in verdict.late],
            "misplaced": seen.misplaced,
            "disagreements": seen.disagreements,
        }
        with rows.open("a") as f:
            f.write(json.dumps(row) + "\n")
    odd = seen.misplaced or seen.disagreements or seen.trouble
    if verdict.wrongs or verdict.late or odd:
        keep(seen, out / f"{walk.version}-{walk.seed}")
    return verdict


def keep(seen: Walked, path: Path) -> None:
    """Write the walk, its trace, and a trace that can be committed."""
    path.with_name(path.name + ".walk.json").write_text(seen.walk.written())
    write(path.with_name(path.name + ".jsonl"), seen.trace, seen.changes)
    told = public(seen.trace)
    write_lines(path.with_name(path.name + ".public.jsonl"), told)


def shorten(seen: Walked, wrong: Disagreement, out: Path, until: float) -> None:
    """Write the shortest walk with the same failure, and its trace."""
    best: list[Walked] = [seen]

    def fails(walk: Walk) -> bool:
        again = walked(walk)
        if any(w.what == wrong.what for w in judged(again).wrongs):
            best.append(again)
            print(f"    … {len(walk.actions)} actions", flush=True)
            return True
        return False

    done = sum("does " in str(x.get("note")) and x["t"] < wrong.t + MARGIN for x in seen.trace)
    prefix = until_wrong(seen.walk, done)
    start = prefix if len(prefix.actions) == len(seen.walk.actions) or fails(prefix) else seen.walk
    walk = shrunk(start, fails, until)
    print(f"    shortest for {wrong.what}: {actions.summary(walk.actions)}", flush=True)
    keep(best[-1], out / f"{walk.version}-{walk.seed}-shortest")
