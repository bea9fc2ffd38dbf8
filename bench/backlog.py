"""Measure a backlog of 100,000 events: `bench/backlog.py [--events N] [--hosts N]`.

Folding is compared with the minimum of work: list, read, decode and unlink the same files.
Each runs in a process of its own, whose memory is printed too.  With `--hosts`, that many hosts
that start together are compared with one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BAR, MEMORY, TOGETHER = 2.0, 120.0, 1.3
NAMES = ("PreToolUse", "PostToolUse", "PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop")


def fill(new: Path, events: int) -> None:
    """Write files as the hook does: 200 sessions, 1 kB payloads, a millisecond apart."""
    begin = time.time() - events / 1000
    rng = random.Random(1)
    for n in range(events):
        session, name = f"session-{n % 200:04}", NAMES[n // 200 % len(NAMES)]
        header = ["bellboard 1", "agent=claude", f"event={name}", "pid=0", "", ""]
        payload = {
            "session_id": session,
            "transcript_path": f"/home/user/.claude/projects/-home-user-api/{session}.jsonl",
            "cwd": "/home/user/api",
            "hook_event_name": name,
            "tool_name": "Bash",
            "tool_use_id": f"toolu_{n // 400:08}_{session}",
            "tool_input": {"command": f"make step-{n}", "description": "x" * 100},
            "tool_response": "y" * rng.randrange(200, 800),
            "prompt": f"do step {n}",
        }
        path = new / f"{n:08}.{name}"
        path.write_bytes("\0".join(header).encode() + json.dumps(payload).encode())
        os.utime(path, (begin + n / 1000, begin + n / 1000))


def least(new: Path) -> None:
    """List, read, decode, unlink."""
    for name in sorted(os.listdir(new)):
        path = f"{new}/{name}"
        with open(path, "rb") as file:
            body = file.read()
        json.loads(body.partition(b"\0\0")[2])
        os.unlink(path)


def fold(home: Path) -> None:
    """Do what a host does when it starts, without its event loop."""
    from bellboard.hosting.turn import SharedBoard
    from bellboard.storage.spool import Spool
    from bellboard.storage.store import Store

    shared = SharedBoard(Spool(home), Store(home))
    while shared.turn(time.time()).more:
        pass
    folded = shared.store.database.db.execute("SELECT max(id) FROM events").fetchone()[0]
    print(f"{folded} rows in the log", file=sys.stderr)


def host(home: Path) -> None:
    """Run a host until it is stopped."""
    from bellboard.hosting.host import Host

    asyncio.run(Host(home, lambda message: None).run())


def together(home: Path, hosts: int) -> float:
    """Return the seconds in which this many hosts, started at once, fold the backlog."""
    new = home / "spool" / "new"
    run = [sys.executable, __file__, "--child", "host", "--home", str(home)]
    begin = time.monotonic()
    processes = [subprocess.Popen(run, env={**os.environ, "HOME": str(home)}) for _ in range(hosts)]
    while any(new.iterdir()):
        time.sleep(0.05)
    took = time.monotonic() - begin
    for process in processes:
        process.kill()
        process.wait()
    print(f"{hosts} hosts {took:7.2f} s")
    return took


def compare(events: int, hosts: int) -> int:
    """Compare many hosts with one."""
    from bellboard.storage.spool import Spool

    took = []
    for count in (1, hosts):
        home = Path(tempfile.mkdtemp(prefix="bellboard-bench-"))
        Spool(home).prepare()
        fill(home / "spool" / "new", events)
        took.append(together(home, count))
        shutil.rmtree(home)
    ratio = took[1] / took[0]
    verdict = "pass" if ratio <= TOGETHER else "FAIL"
    print(f"{hosts} hosts take {ratio:.2f} × one   ≤ {TOGETHER} {verdict}")
    return int(ratio > TOGETHER)


def child(what: str, home: Path) -> tuple[float, float]:
    """Run one of the two; return its wall time in seconds and its memory in megabytes."""
    run = [sys.executable, __file__, "--child", what, "--home", str(home)]
    out = subprocess.run(run, check=True, capture_output=True, text=True)
    cpu, wall, memory = map(float, out.stdout.split())
    print(f"{what:6} {wall:7.2f} s wall {cpu:7.2f} s processor {memory:6.1f} MB")
    return wall, memory


def main() -> int:
    parser = argparse.ArgumentParser(description="folding a backlog, compared with reading it")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--hosts", type=int, default=0)
    parser.add_argument("--child")
    parser.add_argument("--home", type=Path)
    args = parser.parse_args()
    if args.child == "host":
        host(args.home)
    if args.hosts:
        return compare(args.events, args.hosts)
    if args.child:
        begin = time.perf_counter()
        if args.child == "least":
            least(args.home / "spool" / "new")
        else:
            fold(args.home)
        wall, usage = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
        print(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)
        return 0
    from bellboard.storage.spool import Spool

    ratios = []
    memory = 0.0
    for _ in range(3):
        homes = [Path(tempfile.mkdtemp(prefix="bellboard-bench-")) for _ in range(2)]
        for home in homes:
            Spool(home).prepare()
            fill(home / "spool" / "new", args.events)
        floor, _ = child("least", homes[0])
        ours, used = child("fold", homes[1])
        ratios.append(ours / floor)
        memory = max(memory, used)
        for home in homes:
            shutil.rmtree(home)
    ratio = sorted(ratios)[1]
    print(f"{ratio:.2f} × the least   ≤ {BAR} {'pass' if ratio <= BAR else 'FAIL'}")
    print(f"{memory:.1f} MB   ≤ {MEMORY} {'pass' if memory <= MEMORY else 'FAIL'}")
    return int(ratio > BAR or memory > MEMORY)


if __name__ == "__main__":
    sys.exit(main())
