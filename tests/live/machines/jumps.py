"""A jump lands in the right pane of another machine, in a terminal that is there or a new one."""

from __future__ import annotations

import shlex
import time

from live.machines.place import Laptop, Station, becomes, laptops, stations
from rig.machines.ssh import PROGRAM, Machine
from rig.tmux import Pane
from rig.waiting import eventually


def jump() -> None:
    """First without a terminal there, then with one, each from a shell in tmux."""
    with stations("dev") as (dev,), laptops() as (laptop,):
        cli, decoy = dev.start("wanted"), dev.start("decoy")
        other = dev.machine.tmux.open(["sh", "-c", "echo elsewhere; exec sh"], session="other")
        laptop.follow(dev)
        sid = dev.id(cli)
        host = laptop.host()
        for each in (cli, decoy):
            becomes(host, dev.id(each), "idle")
        desk = laptop.tmux.open(["sh"], session="work", columns=120, lines=50)
        laptop.tmux.attach("work")
        opens(laptop, dev, desk, sid, str(cli.pane.ask("#{pane_id}")))
        ssh = there(laptop, dev, other)
        laptop.tmux.run("select-window", "-t", desk.id)
        begun = time.monotonic()
        types(desk, sid)
        eventually(lambda: shown(dev) == [cli.pane.ask("#{pane_id}")], "the pane over there")
        eventually(lambda: shown(laptop) == [ssh.id], "the terminal here")
        print(f"   on the terminal that is there: {time.monotonic() - begun:.2f} s, with the start")
        assert len(windows(laptop)) == 2, windows(laptop)


def opens(laptop: Laptop, dev: Station, desk: Pane, sid: str, wanted: str) -> None:
    """Jump with no terminal there; detach again."""
    begun = time.monotonic()
    types(desk, sid)
    eventually(lambda: shown(dev) == [wanted], "a terminal that shows the pane")
    print(f"   in a new terminal: {time.monotonic() - begun:.2f} s, with the start")
    dev.machine.tmux.run("detach-client", "-a", "-s", "wanted") if len(shown(dev)) > 1 else None
    for client in dev.machine.tmux.run("list-clients", "-F", "#{client_name}").split():
        dev.machine.tmux.run("detach-client", "-t", client)
    eventually(lambda: shown(laptop) == [desk.id], "back at the desk")


def there(laptop: Laptop, dev: Station, other: Pane) -> Pane:
    """Open a terminal here that shows another session of the machine; return its pane."""
    assert isinstance(dev.machine, Machine)
    attach = shlex.join(["tmux", "-S", str(dev.machine.tmux.socket), "attach", "-t", "other"])
    ssh = dev.machine.ssh
    pane = laptop.tmux.open([*ssh[:-1], "-t", ssh[-1], attach], session="work")
    pane.shows("elsewhere")
    eventually(lambda: shown(dev) == [other.id], "a client over there")
    return pane


def types(desk: Pane, sid: str) -> None:
    desk.type(shlex.join([str(PROGRAM), "goto", sid]))
    desk.press("Enter")


def shown(where: Laptop | Station) -> list[str]:
    """Return the panes that terminals show."""
    tmux = where.tmux if isinstance(where, Laptop) else where.machine.tmux
    return tmux.run("list-clients", "-F", "#{pane_id}").split()


def windows(laptop: Laptop) -> list[str]:
    return laptop.tmux.run("list-panes", "-a", "-F", "#{pane_id}").split()
