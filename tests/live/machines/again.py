"""The time until a machine is followed again, by what had ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import psutil

from live.machines.breaks import STALE
from live.machines.place import laptops
from live.report import figures
from rig.host.hosting import RecordedHost, made, put
from rig.machines.ssh import Machine
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
            print(f"   ssh alone, until a feed begins: {alone(machine):.1f} s", flush=True)
    finally:
        machine.close()


def measure(machine: Machine, host: RecordedHost) -> None:
    eventually(lambda: states(host) and not states(host)[-1][1], "a link")

    def here(number: int) -> None:
        for process in found(str(host.home.root), "[mux]"):
            signalled(process, number)

    def there(number: int) -> None:
        for process in found(str(machine.home.root), "feed"):
            signalled(process, number)

    for what, end in (("the ssh connection here", here), ("the feed there", there)):
        killed = partial(end, signal.SIGKILL)
        report(f"{what} was killed", [lasts(host, killed)[0] for _ in range(ROUNDS)])
        report(f"{what} was stopped", [lasts(host, partial(end, signal.SIGSTOP))[1]])
    machine.cut()
    eventually(lambda: states(host)[-1][1], "a row that is stale", within=STALE + 1)
    rest(20)
    report("the network was cut", [lasts(host, machine.mend)[0]])


def alone(machine: Machine) -> float:
    """Return the seconds that a login and the start of a feed take now, without a link."""
    argv = [*machine.ssh, "$HOME/.local/bin/bellboard", "feed"]
    begun = time.monotonic()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as feed:
        assert feed.stdout
        assert b"hello" in feed.stdout.readline() and b"state" in feed.stdout.readline()
        took = time.monotonic() - begun
        feed.kill()
    return took


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
    """Return the processes of a home that have that word in their command, or end their title."""
    named = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()  # of some, the whole title is one word
            is_meant = word in words or " ".join(words).strip("\0 ").endswith(f" {word}")
            if is_meant and home in " ".join(words):
                named.append(process)
    return named


def signalled(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):  # it ended with one before it
        process.send_signal(number)


def report(what: str, took: list[float]) -> None:
    load = os.getloadavg()[0]
    print(f"   {figures(f'{what}, followed again after', took)}; load {load:.0f}", flush=True)
