"""A hostile machine's feed affects nobody else, costs little, and is reported in health."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import psutil

from live.machines import hostile as sender
from live.machines.place import Laptop, becomes, laptops
from rig.host.hosting import RecordedHost
from rig.reaper import family
from rig.waiting import eventually, rest

SENDER: Final = Path(sender.__file__)
WATCHED: Final = 6.0  # seconds in which memory and time are measured
MEMORY: Final = 200 << 20  # bytes that a host may use
#: Kinds that end a link, or never begin one, and what health then says of the machine.
REFUSED: Final = {
    "longline": "line of more than",
    "version": "protocol 2",
    "many": "5000 sessions",
    "problem": "",
}
BIDI: Final = "\u202e\u2066\u2069\u200f"


def hostile() -> None:
    """Each kind in turn, beside a machine that behaves."""
    for kind in sender.KINDS:
        with laptops() as (laptop,):
            sent(kind, laptop)


def sent(kind: str, laptop: Laptop) -> None:
    laptop.bellboard("machine", "add", "good", "--", *calling("calm"))
    laptop.bellboard("machine", "add", "evil", "--", *calling(kind))
    host = laptop.host()
    becomes(host, "good/claude/calm", "blocked", within=15)
    begun, worst, spent = time.monotonic(), 0, used(host)
    while time.monotonic() < begun + WATCHED:
        worst = max(worst, psutil.Process(host.pid).memory_info().rss)
        rest(0.05)
    share = (used(host) - spent) / WATCHED
    if kind in REFUSED:
        eventually(lambda: "evil" in host.note and REFUSED[kind] in host.note, f"{kind}: a note")
    is_clean(host)
    names = {sid.split("/")[0] for sid in host.shown}
    assert names <= {"good", "evil"}, names
    assert host.shown["good/claude/calm"] == "blocked"
    gap = max(m["gap"] for m in host.messages)
    note = host.notes
    print(f"   {kind:10} {worst >> 20:4} MB, {share:4.0%} of a core, blocked {gap:.2f} s,", end=" ")
    print(f"{len(host.shown)} shown, {len(host.messages)} messages; {note}", flush=True)
    assert worst < MEMORY, f"{kind}: {worst >> 20} MB"
    children = family([host.pid])
    host.kill()
    eventually(lambda: not any(p.is_running() for p in children), f"{kind}: no process is left")


def calling(kind: str) -> list[str]:
    return [sys.executable, str(SENDER), kind]


def used(host: RecordedHost) -> float:
    """Return the processor seconds that a host has used."""
    times = psutil.Process(host.pid).cpu_times()
    return float(times.user + times.system)


def is_clean(host: RecordedHost) -> None:
    """Check that nothing published has a character that acts on a terminal."""
    for text in texts(host.messages):
        acting = [c for c in text if ord(c) < 32 or 127 <= ord(c) < 160 or c in BIDI]
        assert not acting, f"{text!r}"


def texts(value: Any) -> list[str]:
    found = json.loads(json.dumps(value))
    if isinstance(found, dict):
        return [text for key, x in found.items() for text in (str(key), *texts(x))]
    if isinstance(found, list):
        return [text for x in found for text in texts(x)]
    return [found] if isinstance(found, str) else []
