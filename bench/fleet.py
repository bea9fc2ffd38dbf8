"""Measure a fleet: lag, messages and bytes for each change, processor and memory.

`python bench/fleet.py [MINUTES [SESSIONS MACHINES CHANGES]]`: that many simulated sessions on that
many machines, with that many changes a second, over a real NATS server.  The machines are in a
process of their own; the reader is what the program of a fleet runs, and there is a whole host as
well, with its program.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bellboard.core.feed import FeedChange, FeedState, Hello
from bellboard.core.row import Row
from bellboard.fleet.followed import SHOWN
from bellboard.fleet.member import Credentials, Joined
from bellboard.fleet.nats_wire import NatsWire
from bellboard.fleet.publisher import RowPublisher, Shelf, written
from bellboard.fleet.streams import TTL, ensure
from bellboard.fleet.subjects import Subjects
from rig.machines import nats
from rig.machines.fleets import Threaded, a_row
from rig.waiting import leniency

TEAM = "bench"
PROGRAM = ("-m", "bellboard")
STEP = 0.02  # seconds between two rounds of changes
LIMIT = 1.0  # seconds of lag at p99 above which this fails: the machine is shared
STATUSES = (*("working",) * 47, "blocked", "completed", "idle")


def shown(n: int, status: str, detail: str) -> Row:
    """Return a row of the usual size."""
    more = {
        "title": f"Mend the parser of the configuration, part {n}",
        "project": "bellboard",
        "branch": "feature/the-name-of-a-branch",
        "repository": "/srv/bellboard/.git",
        "tool": "Bash",
        "model": "a-model-of-some-size",
        "context": 45_000,
        "pid": 10_000 + n,
        "terminal": "tmux",
    }
    return a_row(f"3f8a5c2e-0000-4000-8000-{n:012}", status, detail=detail, **more)


# ---------------------------------------------------------------- the machines


async def machines(url: str, sessions: int, count: int, rate: float) -> None:
    """Publish, and change sessions at random; `go` on standard input begins, `end` ends that."""
    each = sessions // count
    shelves = []
    for n in range(count):
        name = f"machine-{n}"
        shelf = Shelf(name, name, lambda name=name: Hello(machine=name, now=time.time()))
        rows = tuple(shown(n * each + i, "working", "0") for i in range(each))
        shelf.take(FeedState(time.time(), "", tuple(row.session_id for row in rows), rows))
        wire = NatsWire(Joined(url, TEAM, name), Credentials(name), lambda subject: None)
        await wire.open()
        await ensure(wire, Subjects(TEAM))
        ready = asyncio.Event()
        task = asyncio.ensure_future(RowPublisher(wire, Subjects(TEAM), shelf).run(ready.set))
        shelves.append((shelf, task))
        await ready.wait()
        while shelf.changed:
            await asyncio.sleep(STEP)
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    threading.Thread(
        target=lambda: [loop.call_soon_threadsafe(lines.put_nowait, x) for x in sys.stdin],
        daemon=True,
    ).start()
    print("ready", flush=True)
    await lines.get()
    changed, due = 0, time.monotonic()
    while lines.empty():
        for _ in range(round(rate * STEP)):
            n = random.randrange(sessions // each * each)
            row = shown(n, random.choice(STATUSES), f"{time.time():.6f}")
            shelves[n // each][0].take(FeedChange(time.time(), "", (row,)))
            changed += 1
        due += STEP
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    print(json.dumps({"changed": changed}), flush=True)
    await lines.get()
    await lines.get()


# ---------------------------------------------------------------- the reader


class Reader:
    """Measures how old a change is when the host gets it."""

    def __init__(self, url: str, follow: tuple[str, ...] = ()) -> None:
        self.lags: list[float] = []
        joined = Joined(url, TEAM, "reader", follow=follow, publishes=False)
        self.service = Threaded(joined, "reader", Hello, self._take, self._do, lambda: None)
        self.service.start()

    async def _take(self, said) -> None:
        now = time.time()
        for _, what in said:
            for row in getattr(what, "sessions", ()):
                if row.detail != "0":
                    self.lags.append(now - float(row.detail))

    @property
    def known(self) -> int:
        machines = [*self.service.followed.machines.values()]
        return sum(len(far.rows) for far in machines)

    async def _do(self, member, do, fields):
        return {"ok": True}


def read(url: str, follow: str) -> None:
    """Read until told to stop, then report."""
    begun = time.monotonic()
    reader = Reader(url, tuple(follow.split(",")) if follow else ())
    wanted = int(sys.stdin.readline())
    while reader.known < wanted:
        time.sleep(0.01)
    print(json.dumps({"open": time.monotonic() - begun}), flush=True)
    sys.stdin.readline()
    reader.lags.clear()
    sys.stdin.readline()
    print(json.dumps({"lags": reader.lags}), flush=True)
    sys.stdin.readline()
    reader.service.close()


# ---------------------------------------------------------------- what is measured


class Part:
    """A process of this program, or of another."""

    def __init__(self, *words: str, program: tuple[str, ...] = (__file__,), **how: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *program, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **how,
        )
        self.measured = psutil.Process(self.process.pid)

    def say(self, text: str) -> None:
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        return self.process.stdout.readline()


def traffic(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/varz") as reply:
        told = json.load(reply)
    return {key: told[key] for key in ("in_msgs", "out_msgs", "in_bytes", "out_bytes")}


def used(process: psutil.Process) -> tuple[float, float]:
    """Return the seconds of processor time, and the megabytes of memory."""
    times = process.cpu_times()
    return times.user + times.system, process.memory_info().rss / 1e6


def measure(minutes: float, sessions: int, count: int, rate: float, follow: str = "") -> float:
    with tempfile.TemporaryDirectory() as folder:
        server = nats.Server(Path(folder), more='http: "127.0.0.1:-1"')
        server.start()
        parts: list[Part] = []
        try:
            parts.append(Part("machines", server.url, str(sessions), str(count), str(rate)))
            assert parts[0].hear() == "ready\n"
            parts.append(Part("read", server.url, follow))
            env = {**os.environ, "BELLBOARD_HOME": f"{folder}/home"}
            where = ("join", server.url, "--team", TEAM, "--machine", "host", "--read-only")
            bellboard("fleet", *where, env=env)
            parts.append(Part("serve", program=PROGRAM, env=env))
            return observed(server, *parts, minutes, sessions, count, rate, follow, env)
        finally:
            for part in parts:
                part.process.kill()
                part.process.communicate()
            server.kill()


def bellboard(*words: str, env: dict[str, str]) -> str:
    argv = [sys.executable, *PROGRAM, *words]
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout


def listed(env: dict[str, str]) -> int:
    return len(json.loads(bellboard("list", "--json", env=env))["sessions"])


def observed(server, load, reader, host, minutes, sessions, count, rate, follow, env) -> float:
    each = sessions // count
    wanted = each * (len(follow.split(",")) if follow else count)
    reader.say(str(wanted))
    while listed(env) < min(wanted, SHOWN):
        time.sleep(0.2)
    board_after = time.time() - host.measured.create_time()
    opened = json.loads(reader.hear())["open"]
    port = monitor_of(server)
    quiet = traffic(port)
    time.sleep(10)
    idle = {k: v - quiet[k] for k, v in traffic(port).items()}
    started = host.measured.children(recursive=True)
    (program,) = (p for p in started if p.name() != "sh" and p.cmdline()[-2:] == ["fleet", "run"])
    parts = {
        "server": psutil.Process(server.pid),
        "reader": reader.measured,
        "whole host": host.measured,
        "its program": program,
    }
    before, begun, busy = traffic(port), time.monotonic(), {k: used(p) for k, p in parts.items()}
    reader.say("begin")
    load.say("go")
    memory: dict[str, list[str]] = {name: [f"{busy[name][1]:.0f}"] for name in parts}
    for _ in range(10):
        time.sleep(minutes * 6)
        for name, process in parts.items():
            memory[name].append(f"{used(process)[1]:.0f}")
    load.say("end")
    changed = json.loads(load.hear())["changed"]
    time.sleep(1)
    reader.say("end")
    lags = sorted(json.loads(reader.hear())["lags"])
    took = time.monotonic() - begun
    sent = {k: v - before[k] for k, v in traffic(port).items()}
    after = {k: used(p) for k, p in parts.items()}
    begun = time.monotonic()
    board = listed(env)
    asked = time.monotonic() - begun
    p50, p99 = statistics.median(lags), lags[int(len(lags) * 0.99)]
    row = len(written(shown(1, "working", "x" * 20), None, "d" * 32 + ".123456"))
    hours = 3600 / (TTL * 0.325)
    print(
        f"{count * each} sessions on {count} machines, {changed / took:.0f} changes a second, "
        f"{took:.0f} s" + (f", the reader follows {wanted} of them" if follow else "")
    )
    print(
        f"  lag              p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, "
        f"{len(lags)} of {changed} changes seen one by one"
    )
    print(
        f"  for each change  in {sent['in_msgs'] / changed:.2f} messages, "
        f"{sent['in_bytes'] / changed:.0f} bytes; out {sent['out_msgs'] / changed:.2f}, "
        f"{sent['out_bytes'] / changed:.0f}; a row has {row} bytes"
    )
    for name in parts:
        share = (after[name][0] - busy[name][0]) / took
        print(f"  {name:<16} {share:.0%} of a processor, {' '.join(memory[name])} MB over time")
    print(f"  read at first    {opened:.2f} s for {wanted} rows")
    print(
        f"  on the board     {board} sessions, {board_after:.1f} s after the start of a host; "
        f"`bellboard list --json` takes {asked:.2f} s"
    )
    print(f"  idle             {idle['in_bytes'] / 10 / count:.0f} bytes/s in for a machine; a "
          f"session is written {hours:.0f} times an hour: {hours * row / 1000:.1f} kB")  # fmt: skip
    return p99


def monitor_of(server: nats.Server) -> int:
    found = json.loads(next(iter(server.folder.glob("*.ports"))).read_text())
    return int(found["monitoring"][0].rpartition(":")[2])


def main() -> int:
    if sys.argv[1:2] == ["machines"]:
        url, sessions, count, rate = sys.argv[2:]
        asyncio.run(machines(url, int(sessions), int(count), float(rate)))
        return 0
    if sys.argv[1:2] == ["read"]:
        read(*sys.argv[2:])
        return 0
    if not nats.program():
        print("fleet: nats-server is not installed, so nothing was measured")
        return 0
    given = [float(x) for x in sys.argv[1:]]
    minutes, sessions, count, rate = [*given, *(0.25, 10_000, 50, 500)[len(given) :]]
    worst = measure(minutes, int(sessions), int(count), rate)
    print(f"  {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    return int(worst > LIMIT * leniency(1.0))


if __name__ == "__main__":
    sys.exit(main())
