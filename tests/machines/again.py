"""How soon a machine is followed again, by what had ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import psutil

from hosting import RecordedHost, made, put
from machines.breaks import STALE
from machines.place import figures, laptops
from rig.machines import Machine
from rig.waiting import eventually, rest

SID: Final = "dev/claude/s"
ROUNDS: Final = 4


def again() -> None:
    """ssh here and the feed there, killed and stopped; and the network, cut and mended."""
    machine = Machine("dev", apart=True)
    try:
        put(made(machine.home.bellboard), "UserPromptSubmit", prompt="x", prompt_id="1")
        with laptops() as (laptop,):
            laptop.bellboard("machine", "add", "dev", "--", *machine.ssh)
            measure(machine, laptop.host())
    finally:
        machine.close()


def measure(machine: Machine, host: RecordedHost) -> None:
    eventually(lambda: states(host) and not states(host)[-1][1], "a link")

    def here(number: int) -> None:
        for process in found(str(host.home.root), "[mux]"):
            process.send_signal(number)

    def there(number: int) -> None:
        for process in found(str(machine.home.root), "feed"):
            process.send_signal(number)

    for what, end in (("the ssh connection here", here), ("the feed there", there)):
        killed = partial(end, signal.SIGKILL)
        report(f"{what} was killed", [lasts(host, killed)[0] for _ in range(ROUNDS)])
        report(f"{what} was stopped", [lasts(host, partial(end, signal.SIGSTOP))[1]])
    machine.cut()
    eventually(lambda: states(host)[-1][1], "a row that is stale", within=STALE + 1)
    rest(20)
    report("the network was cut", [lasts(host, machine.mend)[0]])


def lasts(host: RecordedHost, act: Callable[[], object]) -> tuple[float, float]:
    """Do something; return the seconds until it is followed again, and for which it was not."""
    begun, is_down = time.time(), states(host)[-1][1]
    act()

    def found() -> tuple[float, float] | None:
        told = [x for x in states(host) if is_down or x[0] > begun]
        down = [t for t, stale in told if stale]
        up = [t for t, stale in told if down and not stale and t > max(begun, down[-1])]
        return (up[0] - begun, up[0] - down[-1]) if up else None

    return eventually(found, "a link", within=2 * STALE)


def states(host: RecordedHost) -> list[tuple[float, bool]]:
    """Return when its row was published, and whether it was stale."""
    told = [(m["at"], p) for m in host.messages for p in m["sessions"] if p["session_id"] == SID]
    return [(at, "stale" in p["markers"]) for at, p in told]


def found(home: str, word: str) -> list[psutil.Process]:
    """Return the processes of a home that have that word in their command."""
    named = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            said = " ".join(process.cmdline())  # of some, the whole title is one word
            if word in said.split() and home in said:
                named.append(process)
    return named


def report(what: str, took: list[float]) -> None:
    load = os.getloadavg()[0]
    print(f"   {figures(f'{what}, followed again after', took)}; load {load:.0f}", flush=True)
