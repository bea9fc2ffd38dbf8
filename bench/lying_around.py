"""Check that 200 transcripts of 20 MB cost a host nothing while it does not need them.

    python bench/lying_around.py [--transcripts N] [--seconds N]

A host starts with 50 idle sessions known from hooks, without any transcript, and again with all of
them, 50 of which belong to the sessions.  The files are sparse except for their ends, but reading
one still takes time and memory.  Then one session goes to work, and only its transcript is
opened.

The two cases alternate, each in a process of its own, and their ratio is compared with a limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SIZE = 20 << 20
SESSIONS = 50
RUNS = 5
#: How much more is allowed with the transcripts: a factor, and a constant on top.
ALLOWED = {
    "start, ms": (1.25, 10.0),
    "PSS, MB": (1.02, 0.5),
    "wake-ups/s": (1.25, 1.0),
    "core at rest, %": (1.5, 0.1),
}


def build(home: Path, transcripts: int) -> None:
    """Make a config directory, a project and transcripts, and hook events one minute old."""
    from bellboard.storage.spool import Spool

    folder = home / "claude" / "projects" / "-project"
    folder.mkdir(parents=True)
    (home / "claude" / "sessions").mkdir()
    (home / "project").mkdir()
    entry = {"type": "user", "timestamp": "2026-11-20T10:00:00Z", "message": {"content": "go"}}
    row = b"\n" + json.dumps(entry).encode() + b"\n"
    for n in range(transcripts):
        with (folder / f"session-{n}.jsonl").open("wb") as file:
            file.truncate(SIZE - len(row))
            file.seek(0, os.SEEK_END)
            file.write(row)
    spool = Spool(home / "board")
    spool.prepare()
    for n in range(SESSIONS):
        spool.write(emitted(home, n, "SessionStart", time.time() - 60))


def emitted(home: Path, n: int, event: str, t: float) -> dict[str, Any]:
    """Return the hook event of a session, as a trace line."""
    path = f"{home}/claude/projects/-project/session-{n}.jsonl"
    payload = {"session_id": f"session-{n}", "hook_event_name": event, "cwd": f"{home}/project"}
    hook = {**payload, "transcript_path": path, "source": "startup"}
    return {"t": t, "hook": hook, "origin": {"tty": f"/dev/pts/{n}"}}


def pss() -> float:
    """Return the memory of this process in MB, with its share of shared pages."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def live(home: Path, seconds: float) -> dict[str, float]:
    """Run a host, and return what it used."""
    began = time.perf_counter()
    from bellboard.hosting.host import Host

    known: dict[str, str] = {}
    host = Host(
        home / "board",
        lambda message: known.update({p["session_id"]: p["status"] for p in message["sessions"]}),
        environ={"CLAUDE_CONFIG_DIR": f"{home}/claude", "BELLBOARD_HOME": f"{home}/board"},
    )
    running = asyncio.ensure_future(host.run())

    async def until(done: Any) -> float:
        while not done():
            assert not running.done(), running.exception()
            await asyncio.sleep(0.001)
        return (time.perf_counter() - began) * 1e3

    used = {"start, ms": await until(lambda: len(known) == SESSIONS and host.observer.has_attended)}
    await asyncio.sleep(1)
    before = resource.getrusage(resource.RUSAGE_SELF)
    await asyncio.sleep(seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used["PSS, MB"] = pss()
    used["wake-ups/s"] = (after.ru_nvcsw - before.ru_nvcsw) / seconds
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    used["core at rest, %"] = cpu / seconds * 100
    needs = host.observer.needs

    def followed() -> int:
        return sum(want.kind == "claude log" for want in needs)

    assert followed() == 0
    began = time.perf_counter()
    host.report(emitted(home, 0, "UserPromptSubmit", time.time()))
    used["one goes to work, ms"] = await until(followed)
    assert followed() == 1
    host.stop()
    await running
    return used


def run(transcripts: int, seconds: float) -> dict[str, float]:
    """Run one host in a process and a home of its own."""
    with tempfile.TemporaryDirectory() as home:
        build(Path(home), transcripts)
        argv = [sys.executable, __file__, "--child", home, "--seconds", str(seconds)]
        return dict(json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of transcripts that are not needed")
    parser.add_argument("--transcripts", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(asyncio.run(live(args.child, args.seconds))))
        return 0
    pairs = [(run(0, args.seconds), run(args.transcripts, args.seconds)) for _ in range(RUNS)]
    print(f"{SESSIONS} idle sessions, best of {RUNS} hosts, {args.seconds:g} s at rest each")
    print(f"{'':22}{'no transcripts':>16}{f'{args.transcripts} of 20 MB':>16}{'ratio':>8}")
    failed = False
    for key in pairs[0][0]:
        without, there = (min(pair[n][key] for pair in pairs) for n in (0, 1))
        times, beside = ALLOWED.get(key, (float("inf"), 0.0))
        failed |= there > without * times + beside
        ratio = f"{there / without:8.2f}" if without else f"{'':8}"
        print(f"{key:22}{without:16.2f}{there:16.2f}{ratio}")
    print(f"they cost nothing: {'NO' if failed else 'yes'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
