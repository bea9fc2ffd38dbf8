"""Delays of a question on three machines until it is shown here, and of an answer there."""

from __future__ import annotations

import statistics
import subprocess
import time
from typing import Any, Final

from bellboard.storage.machines import Mailbox
from live.machines.place import Laptop, Station, becomes, laptops, stations
from live.report import figures
from rig.agents.scenarios import Turn, say, shell
from rig.machines.ssh import Machine
from rig.waiting import eventually

ROUNDS: Final = 5
LIMIT: Final = 0.050  # seconds more than the round trip, at p50


def speed() -> None:
    """Each machine asks several times, and is answered from here each time."""
    with stations("dev", "build", "cloud") as there, laptops() as (laptop,):
        calls = [Turn((shell(f"touch made{n}.txt"),)) for n in range(ROUNDS)]
        for station in there:
            station.api.scenarios["many"] = (*calls, say("Done."))
            station.start()
            station.machine.bellboard("answers", "on")
        laptop.follow(*there)
        host = laptop.host()
        for station in there:
            becomes(host, station.id(station.clis[0]), "idle")
        shown: list[float] = []
        given: list[float] = []
        direct: list[float] = []
        for station in there:
            asked, answered, alone = rounds(station, laptop)
            shown += asked
            given += answered
            direct += alone
        trip = round_trip(there[0])
        print(f"a round trip over a connection that stands: {trip * 1000:.1f} ms")
        print(figures("blocked there until shown here", shown))
        print(figures("answered here until the model goes on there", given))
        print(figures("the same without the start of a command", direct))
        assert statistics.median(shown) <= trip + LIMIT


def rounds(station: Station, laptop: Laptop) -> tuple[list[float], list[float], list[float]]:
    """Return the seconds of each question, of answers with the start of a command, and without."""
    cli, host = station.clis[0], laptop.hosts[0]
    sid = station.id(cli)
    shown, given, direct = [], [], []
    cli.submit("play:many please")
    for n in range(ROUNDS):
        cli.happens("PermissionRequest", times=n + 1)
        at = becomes(host, sid, "blocked")
        began = [c[0] for c in station.history if c[3] == "blocked"]
        shown.append(at - began[-1])
        request = laptop.request(sid)
        begun = time.time()
        reply = by_link(station, laptop, request) if n % 2 else laptop.answer(sid)
        assert reply.get("outcome") == "taken", reply
        step = n + 1
        asked = eventually(
            lambda step=step: [r for r in station.api.played("many") if r.step == step], "an answer"
        )
        (direct if n % 2 else given).append(asked[0].time - begun)
        assert (cli.launch.cwd / f"made{n}.txt").exists()
    becomes(host, sid, "completed")
    return shown, given, direct


def by_link(station: Station, laptop: Laptop, request: dict[str, Any]) -> dict[str, Any]:
    """Answer as a host of the laptop does, which runs already."""
    mailbox = Mailbox(laptop.home.bellboard, station.name)
    sid = request["session_id"].rpartition("/")[2]
    about = {"session_id": sid, "request": request["id"], "digest": request["digest"]}
    name = mailbox.ask({"do": "answer", **about, "choice": "allow"})
    return eventually(lambda: mailbox.take_reply(name), "a reply")


def round_trip(station: Station) -> float:
    """Return the seconds that a line takes there and back over ssh, without its start."""
    assert isinstance(station.machine, Machine)
    argv = [*station.machine.ssh, "cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        assert cat.stdin and cat.stdout
        took = []
        for _ in range(20):
            begun = time.perf_counter()
            cat.stdin.write(b"x\n")
            cat.stdin.flush()
            cat.stdout.readline()
            took.append(time.perf_counter() - begun)
        cat.stdin.close()
    return statistics.median(took)
