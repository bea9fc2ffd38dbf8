"""Try links between machines: those named, or all."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Final

from live.machines import again, boxes, breaks, jumps, sending, speed, talk, team, through, two

SCENES: Final[dict[str, Callable[[], None]]] = {
    scene.__name__: scene
    for scene in (
        *(
            speed.speed,
            talk.talk,
            jumps.jump,
            boxes.container,
            boxes.container_jump,
            two.laptops_share,
            two.silent_while_followed,
        ),
        *(through.ssh, through.linked, through.docker),
        *(breaks.link_killed, breaks.host_killed, breaks.rebooted, breaks.power_lost, breaks.cut),
        again.again,
        team.team,
        sending.hostile,
    )
}


def main(argv: Sequence[str]) -> int:
    """Return 1 if a scene failed."""
    failed = []
    for name in argv or SCENES:
        print(f"== {name}", flush=True)
        since = time.monotonic()
        try:
            SCENES[name]()
        except AssertionError:
            traceback.print_exc()
            failed.append(name)
        print(f"   {time.monotonic() - since:.0f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))
