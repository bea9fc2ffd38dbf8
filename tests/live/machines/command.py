"""Follow machines over a real sshd, with real CLIs there, and let things go wrong."""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Final

from live.machines import again, boxes, breaks, jumps, sending, speed, talk, team, through, two

TRIALS: Final[dict[str, Callable[[], None]]] = {
    each.__name__: each
    for each in (
        *(speed.speed, talk.talk, jumps.jump, boxes.container, boxes.container_jump),
        *(two.laptops_share, two.silent_while_followed),
        *(through.ssh, through.linked, through.docker),
        *(breaks.link_killed, breaks.host_killed, breaks.rebooted, breaks.power_lost, breaks.cut),
        *(again.again, team.team, sending.hostile),
    )
}


def main(argv: Sequence[str]) -> int:
    """Return 1 if a trial failed."""
    told = "\n".join(
        f"  {name:22} {(each.__doc__ or '').partition(chr(10))[0]}" for name, each in TRIALS.items()
    )
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m live machines", description=f"{__doc__}\n{told}", formatter_class=how
    )
    parser.add_argument("name", nargs="*", choices=[*TRIALS, []], metavar="NAME", help="only that")
    failed = []
    for name in parser.parse_args(argv).name or TRIALS:
        print(f"== {name}", flush=True)
        since = time.monotonic()
        try:
            TRIALS[name]()
        except AssertionError:
            traceback.print_exc()
            failed.append(name)
        print(f"   {time.monotonic() - since:.0f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))
