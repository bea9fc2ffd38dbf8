"""Run 8 hosts, 1,000 sessions and 500 events/s: `.venv/bin/python bench/soak.py [--seconds N]`.

Each host is a process, and finally prints how often it published, and how long after each event.
The event log shows whether an event was lost or folded twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOSTS, SESSIONS, RATE = 8, 1000, 500
LAG, PUBLISHES = 0.1, 30


def host(home: Path) -> None:
    """Run one host until SIGTERM."""
    from bellboard.hosting.host import Host

    lags: list[float] = []
    pushes: list[float] = []

    def push(message: dict) -> None:
        now = time.time()
        pushes.append(now)
        lags.extend(now - t["t"] for t in message["transitions"])

    async def live() -> None:
        one = Host(home, push)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, one.stop)
        await one.run()

    asyncio.run(live())
    most = max((sum(t <= p < t + 1 for p in pushes) for t in pushes), default=0)
    print(json.dumps({"lags": lags, "most": most, "cpu": time.process_time()}))


def emit(spool: Path, seconds: float) -> int:
    """Write files as the hook does, evenly spread over time; return how many."""
    begin, n = time.monotonic(), 0
    while (now := time.monotonic()) < begin + seconds:
        while n < (now - begin) * RATE:
            name = "Stop" if n // SESSIONS % 2 else "UserPromptSubmit"
            header = ["bellboard 1", "agent=claude", f"event={name}", "pid=0", "", ""]
            payload = {"session_id": f"s{n % SESSIONS:04}", "hook_event_name": name, "n": n}
            tmp = spool / "tmp" / f"e{n}"
            tmp.write_bytes("\0".join(header).encode() + json.dumps(payload).encode())
            os.rename(tmp, spool / "new" / f"e{n}")
            n += 1
        time.sleep(0.002)
    return n


def main() -> int:
    parser = argparse.ArgumentParser(description="eight hosts under load")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--host", type=Path)
    args = parser.parse_args()
    if args.host:
        host(args.host)
        return 0
    home = Path(tempfile.mkdtemp(prefix="bellboard-bench-"))
    run = [sys.executable, __file__, "--host", str(home)]
    hosts = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(HOSTS)]
    while len(list((home / "hosts").glob("*"))) < HOSTS:
        time.sleep(0.05)
    sent = emit(home / "spool", args.seconds)
    deadline = time.monotonic() + 30
    while any((home / "spool" / "new").iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    for process in hosts:
        process.terminate()
    reports = [json.loads(process.communicate(timeout=20)[0]) for process in hosts]
    db = sqlite3.connect(home / "board.db")
    rows = db.execute("SELECT file FROM events WHERE file LIKE 'e%'").fetchall()
    db.close()
    shutil.rmtree(home)
    kept = min(sent, 20_000 - 1000)  # the log is bounded
    folded, twice = len({r[0] for r in rows}), len(rows) - len({r[0] for r in rows})
    failed = folded < kept or twice > 0
    print(f"{sent} events sent, {folded} in the log, {twice} twice {'FAIL' if failed else 'pass'}")
    for n, t in enumerate(reports):
        p99 = statistics.quantiles(t["lags"], n=100)[98]
        ok = p99 <= LAG and t["most"] <= PUBLISHES + 1 and len(t["lags"]) >= sent
        failed |= not ok
        print(
            f"host {n}: {len(t['lags'])} changes, lag p50 {statistics.median(t['lags']) * 1e3:.1f} "
            f"p99 {p99 * 1e3:.1f} ms, at most {t['most']} pushes a second, "
            f"{100 * t['cpu'] / args.seconds:.0f} % of a core {'pass' if ok else 'FAIL'}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
