"""What 200 transcripts of 20 MB cost a host that does not need them: nothing.

    python bench/lying_around.py [TRANSCRIPTS] [SECONDS]

A process of its own looks out for 50 sessions, all idle, with a real registry directory, real
repositories' folders and a real watch: once with no transcript at all, and once with the
transcripts lying around, 50 of them those of the sessions. The files are sparse but for their
ends: reading one whole would still take time and memory. Then one session goes to work, and only
its transcript is opened.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE = 20 << 20
SESSIONS = 50
RUNS = 3


def build(home: Path, transcripts: int) -> None:
    """Config directory, project and transcripts."""
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


def pss() -> float:
    """MB of this process, shared pages in parts."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def look_out(home: Path, seconds: float) -> dict[str, float]:
    """As a host does; what it used."""
    from bellboard.board import Board
    from bellboard.evidence import from_line
    from bellboard.lookout import Lookout
    from bellboard.watch import Watch
    from bellboard.witness import Finding

    began = time.perf_counter()
    board = Board()
    waiting: list[Finding] = []
    watch = Watch(lambda paths: lookout.changed(paths))
    lookout = Lookout(watch, waiting.append, time.time, {"CLAUDE_CONFIG_DIR": f"{home}/claude"})

    def hook(n: int, event: str, t: float) -> None:
        path = f"{home}/claude/projects/-project/session-{n}.jsonl"
        payload = {"session_id": f"session-{n}", "hook_event_name": event, "cwd": f"{home}/project"}
        hook = {**payload, "transcript_path": path}
        board.fold(from_line({"t": t, "hook": hook, "origin": {"tty": f"/dev/pts/{n}"}}))

    for n in range(SESSIONS):
        hook(n, "SessionStart", time.time() - 60)
    lookout.attend(board.sessions, board.sessions)
    lookout.rescan()
    used = {"start, ms": (time.perf_counter() - began) * 1e3}
    before = resource.getrusage(resource.RUSAGE_SELF)
    await asyncio.sleep(seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used["PSS, MB"] = pss()
    used["wake-ups/s"] = (after.ru_nvcsw - before.ru_nvcsw) / seconds
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    used["core at rest, %"] = cpu / seconds * 100
    assert lookout.transcripts.followed == {}
    hook(0, "UserPromptSubmit", time.time())
    began = time.perf_counter()
    lookout.attend(board.sessions, ["session-0"])
    used["one goes to work, ms"] = (time.perf_counter() - began) * 1e3
    assert len(lookout.transcripts.followed) == 1
    lookout.close()
    watch.close()
    return used


def measure(transcripts: int, seconds: float) -> dict[str, float]:
    """The medians of some runs, each in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        build(Path(home), transcripts)
        runs = []
        for _ in range(RUNS):
            argv = [sys.executable, __file__, "--child", home, str(seconds)]
            runs.append(json.loads(subprocess.run(argv, check=True, capture_output=True).stdout))
    return {key: sorted(run[key] for run in runs)[RUNS // 2] for key in runs[0]}


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(asyncio.run(look_out(Path(sys.argv[2]), float(sys.argv[3])))))
        return 0
    transcripts = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 3.0
    without, there = measure(0, seconds), measure(transcripts, seconds)
    print(f"{SESSIONS} idle sessions, median of {RUNS} runs of {seconds:g} s")
    print(f"{'':24}{'no transcripts':>16}{f'{transcripts} of 20 MB':>16}")
    for key, value in without.items():
        print(f"{key:24}{value:16.2f}{there[key]:16.2f}")
    close = there["start, ms"] < without["start, ms"] * 1.5 + 5
    close = close and there["PSS, MB"] < without["PSS, MB"] + 1 and there["wake-ups/s"] < 1
    print(f"they cost nothing: {'yes' if close else 'NO'}")
    return 0 if close else 1


if __name__ == "__main__":
    sys.exit(main())
