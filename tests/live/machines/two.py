"""The notifier: one laptop at which a person sits, or else the machine itself."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator

from live.machines.breaks import asks
from live.machines.place import RINGS, Laptop, Station, becomes, laptops, stations
from rig.machines.ssh import PROGRAM
from rig.waiting import PATIENCE, eventually, rest

AFTER = 3.0  # seconds in which a second notice would have come


def laptops_share() -> None:
    """Two laptops follow one machine: one of them notifies of each question, once."""
    with stations("dev") as (dev,), laptops(2) as pair:
        dev.machine.bellboard("answers", "on")
        cli = dev.start()
        sid = dev.id(cli)
        for laptop in pair:
            laptop.follow(dev)
            laptop.host()
        for laptop in pair:
            becomes(laptop.hosts[0], sid, "idle")
        for n, laptop in enumerate(pair):
            asks(dev)
            for each in pair:
                becomes(each.hosts[0], sid, "blocked")
            rang(n + 1, *pair)
            reply = laptop.answer(sid)
            assert reply.get("outcome") == "taken", reply
            for each in pair:
                becomes(each.hosts[0], sid, "completed")
        print(f"   two questions; rang here and there: {[len(x.desktop.titles) for x in pair]}")


def silent_while_followed() -> None:
    """The machine's hosts are silent while a laptop follows, and notify again when none does."""
    with stations("dev") as (dev,), laptops() as (laptop,), ringing(dev):
        dev.machine.bellboard("answers", "on")
        cli = dev.start()
        sid = dev.id(cli)
        laptop.follow(dev)
        host = laptop.host()
        becomes(host, sid, "idle")
        asks(dev)
        becomes(host, sid, "blocked")
        rang(1, laptop)
        assert dev.desktop.titles == []
        laptop.answer(sid)
        becomes(host, sid, "completed")
        host.kill()
        laptop.hosts.clear()
        rest(1)
        asks(dev)
        eventually(lambda: len(dev.desktop.titles) == 1, "the machine speaks for itself")
        rang(1, laptop)
        print("   silent while followed, and not afterwards")


def rang(times: int, *laptops: Laptop) -> None:
    """Check that these rang so often in all, and not once more a moment later."""

    def count() -> int:
        return sum(len(laptop.desktop.titles) for laptop in laptops)

    eventually(lambda: count() >= times, f"{times} notices")
    rest(AFTER)
    assert count() == times, [laptop.desktop.notices for laptop in laptops]


@contextlib.contextmanager
def ringing(station: Station) -> Iterator[None]:
    """Run a host on a machine that notifies."""
    settings = json.dumps(RINGS["notices"])
    with station.machine.popen(PROGRAM, "serve", "--notices", settings) as serve:
        try:
            yield
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                serve.terminate()
                serve.wait(PATIENCE)
