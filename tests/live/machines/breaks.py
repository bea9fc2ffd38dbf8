"""Failures of links, networks, machines and hosts.  Nothing is lost or announced twice."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import psutil

from live.machines.place import Laptop, Station, becomes, laptops, stations
from rig.host.hosting import RecordedHost
from rig.machines.ssh import Machine
from rig.reaper import family
from rig.waiting import eventually, rest

STALE: Final = 25.0  # seconds until rows that are not followed say so
BACK: Final = 5.0  # seconds until they are followed again
CUT: Final = 60.0
NOTICED: Final = 2.0  # seconds until the end of a process is noticed


@contextlib.contextmanager
def followed() -> Iterator[tuple[Station, Laptop, RecordedHost, str]]:
    """Start a machine with a CLI that a laptop follows; its session is idle."""
    with stations("dev") as (dev,), laptops() as (laptop,):
        dev.machine.bellboard("answers", "on")
        cli = dev.start()
        laptop.follow(dev)
        host = laptop.host()
        sid = dev.id(cli)
        becomes(host, sid, "idle")
        yield dev, laptop, host, sid


def link_killed() -> None:
    """kill -9 of the process that runs the link, while the session works and asks."""
    with followed() as (dev, laptop, host, sid):
        for _ in range(3):
            asks(dev)
            killed = kill(host)
            becomes(host, sid, "blocked", STALE)
            goes_on(dev)
            becomes(host, sid, "completed", STALE)
            eventually(lambda k=killed: not any(psutil.pid_exists(pid) for pid in k))
        told_once(dev, laptop)


def host_killed() -> None:
    """kill -9 of the host that follows: another one goes on within two seconds."""
    with followed() as (dev, laptop, host, sid):
        second = laptop.host("second")
        becomes(second, sid, "idle")
        for first, other in ((host, second),):
            holder, heir = (first, other) if links(first) else (other, first)
            inside = family([holder.pid])[1:]
            dev.clis[-1].submit("play:danger please")
            begun = time.monotonic()
            holder.kill()
            eventually(lambda h=heir: links(h), "a link of the other host", within=NOTICED * 4)
            print(f"   taken over after {time.monotonic() - begun:.2f} s")
            becomes(heir, sid, "blocked", STALE)
            eventually(lambda i=inside: not any(p.is_running() for p in i), "the end of its link")
        goes_on(dev)
        becomes(heir, sid, "completed")
        told_once(dev, laptop)


def rebooted() -> None:
    """All processes there are killed, and their connections ended; then it starts again."""
    with followed() as (dev, laptop, host, sid):
        again(dev, laptop, host, sid, is_told=True)


def power_lost() -> None:
    """The same, but no connection is closed."""
    with followed() as (dev, laptop, host, sid):
        again(dev, laptop, host, sid, is_told=False)


def again(dev: Station, laptop: Laptop, host: RecordedHost, sid: str, is_told: bool) -> None:
    assert isinstance(dev.machine, Machine)
    asks(dev)
    becomes(host, sid, "blocked")
    # A right that it never granted is not used: its question ends with it.
    eventually(lambda: laptop.desktop.titles, "the notice")
    begun = time.monotonic()
    if not is_told:
        dev.machine.cut()
    dev.machine.crash()
    is_stale(host, sid)
    print(f"   stale after {time.monotonic() - begun:.1f} s: {why(host, sid)}")
    rest(3)
    if not is_told:
        dev.machine.mend()
    dev.machine.boot()
    begun = time.monotonic()
    eventually(lambda: "stale" not in markers(host, sid), "a link", within=STALE)
    print(f"   followed again after {time.monotonic() - begun:.1f} s")
    becomes(host, sid, None, STALE)
    print(f"   back after {time.monotonic() - begun:.1f} s: the session has ended")
    cli = dev.start()
    sid = dev.id(cli)
    becomes(host, sid, "idle")
    asks(dev)
    becomes(host, sid, "blocked")
    goes_on(dev)
    becomes(host, sid, "completed")
    told_once(dev, laptop)


def cut() -> None:
    """No packet gets through for a minute, in which a question is answered and another is asked."""
    with followed() as (dev, laptop, host, sid):
        assert isinstance(dev.machine, Machine)
        asks(dev)
        becomes(host, sid, "blocked")
        eventually(lambda: laptop.desktop.titles, "the notice")  # else it ends before it rings
        dev.machine.cut()
        begun = time.monotonic()
        cli = dev.clis[0]
        cli.answer("Enter")
        cli.happens("Stop")
        asks(dev)
        is_stale(host, sid)
        print(f"   stale after {time.monotonic() - begun:.1f} s: {why(host, sid)}")
        said = laptop.bellboard("answer", sid, "allow")
        assert "down" in said, said
        rest(CUT - (time.monotonic() - begun))
        dev.machine.mend()
        begun = time.monotonic()
        eventually(lambda: "stale" not in markers(host, sid), "a link", within=STALE)
        print(f"   back after {time.monotonic() - begun:.1f} s")
        becomes(host, sid, "blocked")
        goes_on(dev)
        becomes(host, sid, "completed")
        told_once(dev, laptop)


def asks(dev: Station) -> None:
    """Let the CLI ask, and wait until its own machine has noticed."""
    cli = dev.clis[-1]
    before = len(cli.events("PermissionRequest"))
    cli.submit("play:danger please")
    cli.happens("PermissionRequest", times=before + 1)


def goes_on(dev: Station) -> None:
    """Allow what it asks, in its own terminal."""
    dev.clis[-1].answer("Enter")


def told_once(dev: Station, laptop: Laptop) -> None:
    """Check that each transition there is here once, and each question notified once."""

    def settled() -> bool:
        there = [c[3] for c in dev.history]
        here = laptop.history
        twice = [key for key, count in Counter((c[0], c[3]) for c in here).items() if count > 1]
        assert not twice, f"told twice: {twice}"
        assert here and here[-1][3] == there[-1]
        asked = sum(status == "blocked" for status in there)
        shown = sum(c[3] == "blocked" for c in here)
        rang = len(laptop.desktop.titles)
        assert shown == asked == rang, f"asked {asked}, shown {shown}, rang {rang}: {there}, {here}"
        print(
            f"   {len(there)} transitions there, {len(here)} here; {asked} questions, {rang} rang"
        )
        return True

    eventually(settled, within=10)


def kill(host: RecordedHost) -> list[int]:
    """Kill what runs the link of a host; return its processes."""
    found = eventually(lambda: links(host), "a link")
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return found


def links(host: RecordedHost) -> list[int]:
    """Return the processes of a host's links."""
    return [p.pid for p in family([host.pid]) if p.name() == "ssh"]


def is_stale(host: RecordedHost, sid: str) -> None:
    eventually(lambda: "stale" in markers(host, sid), "a row that is stale", within=STALE + 1)


def markers(host: RecordedHost, sid: str) -> list[str]:
    return list(host.sessions.get(sid, {}).get("markers", ()))


def why(host: RecordedHost, sid: str) -> str:
    return str(host.sessions.get(sid, {}).get("link_why", ""))
