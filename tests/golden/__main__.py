"""Play the golden day: print what differs from the kept outcome, or keep it (`--write`)."""

from __future__ import annotations

import argparse
import time

from . import outcome, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep it as the new outcome")
    args = parser.parse_args()
    began = time.monotonic()
    now, kept = play(), outcome.read()
    told = outcome.differences(kept, now)
    print(f"{time.monotonic() - began:.1f} s")
    print(", ".join(f"{kind} {len(lines)}" for kind, lines in now.items()))
    print("\n".join(told or ["no differences"]))
    if args.write:
        print(f"{outcome.write(now)} bytes; add a row to golden/differences.md")
        return 0
    return 1 if told else 0


if __name__ == "__main__":
    raise SystemExit(main())
