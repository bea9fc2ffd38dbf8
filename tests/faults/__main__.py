"""`python -m faults`, from tests/: fuzz for some minutes, or repeat faults by their numbers."""

from __future__ import annotations

import argparse
import sys
import time

from faults.hunt import KINDS, Hunt, chance


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="what chance begins with")
    parser.add_argument("--only", default="", help=f"some of: {' '.join(KINDS)}")
    parser.add_argument("--cases", default="", help="numbers, with --only and --seed")
    given = parser.parse_args()
    only = given.only.replace(",", " ").split()
    if strange := [name for name in only if name not in KINDS]:
        parser.error(f"no such kind: {' '.join(strange)}; there are {' '.join(KINDS)}")
    if given.cases and (len(only) != 1 or given.seed is None):
        parser.error("cases are those of one kind and one seed")
    seed = chance() if given.seed is None else given.seed
    hunt = Hunt(only or list(KINDS), seed, lambda said: print(said, flush=True))
    print(f"seed {seed}", flush=True)
    try:
        if given.cases:
            hunt.batch(KINDS[only[0]], [int(n) for n in given.cases.split(",")])
        else:
            hunt.until(time.monotonic() + 60 * given.minutes)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        hunt.close()
    print(hunt.report())
    return any(tally.fell for tally in hunt.tallies.values())


if __name__ == "__main__":
    sys.exit(main())
