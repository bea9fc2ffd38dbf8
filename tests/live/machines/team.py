"""A fleet over a NATS server: three machines publish, two read, and each is cut off in turn."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bellboard.storage.spool import Spool
from live.machines.breaks import BACK, STALE
from live.machines.place import history
from live.report import figures
from rig.host.hosting import put
from rig.machines import nats
from rig.machines.ssh import PROGRAM, Machine
from rig.waiting import eventually, rest

CUT = 30.0  # seconds
PUBLISHERS, READERS = ("dev", "build", "cloud"), ("one", "two")


class Member:
    """A machine of the fleet, with a network of its own, and `bellboard serve`."""

    def __init__(self, name: str, server: nats.Server, ending: contextlib.ExitStack) -> None:
        self.name, self.machine = name, Machine(name, apart=True)
        ending.callback(self.machine.close)
        url = f"nats://{self.machine.place.gateway}:{server.port}"  # type: ignore[union-attr]
        how = ("--unencrypted", "--team", "t", "--machine", name)
        self.machine.bellboard("fleet", "join", url, *how)
        self.machine.popen(PROGRAM, "serve")
        self.spool = Spool(self.machine.home.bellboard)

    def event(self, event: str, **fields: object) -> None:
        put(self.spool, event, "s", **fields)

    @property
    def shown(self) -> dict[str, tuple[str, bool]]:
        """Return the status of each session of another machine, and whether it is stale."""
        listed = json.loads(self.machine.bellboard("list", "--json"))["sessions"]
        return {
            p["machine"]: (p["status"], "stale" in p["markers"]) for p in listed if "machine" in p
        }

    def shows(self, machine: str, status: str, stale: bool = False, within: float = STALE) -> float:
        """Wait for that; return how many seconds it took."""
        begun = time.monotonic()

        def look() -> bool:
            assert (status, stale) == self.shown.get(machine), f"{self.name}: {self.shown}"
            return True

        eventually(look, within=within)
        return time.monotonic() - begun


@contextlib.contextmanager
def joined() -> Iterator[tuple[nats.Server, list[Member], list[Member]]]:
    with contextlib.ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        server = nats.Server(folder, host="0.0.0.0")
        server.start()
        ending.callback(server.kill)
        made = [Member(name, server, ending) for name in (*PUBLISHERS, *READERS)]
        yield server, made[: len(PUBLISHERS)], made[len(PUBLISHERS) :]


def team() -> None:
    """A cut of each machine, and the server killed and started: nothing is lost or told twice."""
    with joined() as (server, publishers, readers):
        for n, member in enumerate(publishers):
            member.event("UserPromptSubmit", prompt="x", prompt_id=f"{n}")
        for reader in readers:
            for member in publishers:
                reader.shows(member.name, "working")
        asks, goes_on = "PermissionRequest", "PostToolUse"
        for member in publishers:
            begun = time.monotonic()
            member.event(asks, tool_name="Bash", tool_input={"command": "make"})
            readers[0].shows(member.name, "blocked")
            print(f"   {member.name}: shown as a command prints it {since(begun)}", flush=True)
            cut(member, lambda m=member: m.event(goes_on, tool_name="Bash"), readers, "blocked")  # type: ignore[misc]
            for reader in readers:
                reader.shows(member.name, "working")
        reader, other = readers
        reader.machine.cut()
        begun = time.monotonic()
        publishers[0].event(asks, tool_name="Bash", tool_input={"command": "make"})
        other.shows(publishers[0].name, "blocked")
        reader.shows(publishers[1].name, "working", stale=True, within=STALE + BACK)
        print(f"   a reader that is cut: stale {since(begun)}", flush=True)
        rest(max(0.0, CUT - (time.monotonic() - begun)))
        reader.machine.mend()
        took = reader.shows(publishers[0].name, "blocked")
        print(f"   {figures('back', [took])}", flush=True)
        server.kill()
        publishers[0].event(goes_on, tool_name="Bash")
        rest(12)
        server.start()
        took = other.shows(publishers[0].name, "working")
        print(f"   {figures('server killed and started again: back', [took])}", flush=True)
        reader.shows(publishers[0].name, "working")
        told_once(publishers, readers)


def cut(
    member: Member, meanwhile: Callable[[], object], readers: list[Member], status: str
) -> None:
    member.machine.cut()
    begun = time.monotonic()
    meanwhile()
    for reader in readers:
        reader.shows(member.name, status, stale=True, within=STALE + BACK)
    print(f"   {member.name} is cut: stale {since(begun)}", end="; ", flush=True)
    rest(max(0.0, CUT - (time.monotonic() - begun)))
    member.machine.mend()
    took = readers[0].shows(member.name, "working")
    print(figures("back", [took]), flush=True)


def since(begun: float) -> str:
    return f"after {time.monotonic() - begun:.1f} s"


def told_once(publishers: list[Member], readers: list[Member]) -> None:
    """Check that each transition of a publisher is known to each reader, once."""
    there = Counter(
        (member.name, c[3])
        for member in publishers
        for c in history(member.machine.home)
        if c[1] == "s"  # its own
    )
    for reader in readers:
        told = Counter((c[1].split("/")[0], c[3]) for c in history(reader.machine.home))
        assert told == there, f"{reader.name}: {told}, there {there}"
    print(f"   {sum(there.values())} transitions, each known once to both readers")
