"""Measure the time from an event to the redrawn statusline: `.venv/bin/python bench/latency.py`.

With `--hosts 8`, seven more hosts share the spool, and any of them may fold an event: two frames of
a screen are enough then.

Two real Neovims draw in terminals of their own: one runs bellboard, the other the floor (see
`floor.py`).  They get files in turn, 50 ms apart.  The latency is the time from the rename until
the statusline is evaluated with the change.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from editors import ROOT, Editor, environment

MOST = 6  # times the floor's p50: what no eye sees is not worth a second way of an event
FRAME = 16.0  # ms: one frame of a screen
APART = 0.05  # seconds between two files; each Neovim gets every other one, and is idle by then

PROBE = """
local seen, times = nil, {}
local function now()
  local seconds, micros = vim.uv.gettimeofday()
  return seconds + micros / 1e6
end
_G.probe = function()
  local text = _G.shown()
  if text ~= seen then
    seen = text
    times[#times + 1] = now()
  end
  return text
end
_G.probe_times = function() return times end
vim.o.statusline = '%{%v:lua.probe()%}'
vim.o.laststatus = 3
"""
FLOOR = """
local count = 0
_G.shown = function() return 'changed ' .. count end
_G.floor_push = function()
  count = count + 1
  vim.cmd.redrawstatus()
end
"""
FULL = "_G.shown = function() return require('bellboard').statusline() end"


def full(home: Path) -> Editor:
    editor = Editor(home, "full", "--cmd", f"set rtp^={ROOT}")
    editor.lua("vim.g.bellboard = { python = ... }", sys.executable)
    editor.lua(FULL + PROBE)
    editor.lua("require('bellboard').start()")
    return editor


def floor(home: Path) -> Editor:
    editor = Editor(home, "floor")
    editor.lua(FLOOR + PROBE)
    (home / "spool").mkdir(parents=True)
    (home / "tmp").mkdir()
    command = [sys.executable, str(ROOT / "bench" / "floor.py")]
    editor.lua("_G.channel = vim.fn.jobstart(..., { rpc = true })", command)
    editor.lua("vim.rpcnotify(_G.channel, 'watch', ...)", str(home / "spool"))
    return editor


def event(n: int) -> bytes:
    """Return prompts and Stops in turn, each of which changes the status at once."""
    name = "Stop" if n % 2 else "UserPromptSubmit"
    header = ["bellboard 1", "agent=claude", f"event={name}", "pid=0", "", ""]
    payload = {"session_id": "bench", "hook_event_name": name, "cwd": "/tmp/api", "n": n}
    payload["transcript_path"] = "x" * 1000
    return "\0".join(header).encode() + json.dumps(payload).encode()


def drop(directory: Path, name: str, body: bytes) -> float:
    tmp = directory.parent / "tmp" / name
    tmp.write_bytes(body)
    begin = time.time()
    os.rename(tmp, directory / name)
    return begin


def others(home: Path, count: int) -> list[subprocess.Popen[bytes]]:
    """Start more hosts, each without an editor."""
    serve = [sys.executable, str(ROOT / "bench" / "serve.py"), "inotify"]
    quiet = subprocess.DEVNULL
    return [subprocess.Popen(serve, env=environment(home), stderr=quiet) for _ in range(count)]


def measure(runs: int, hosts: int, home: Path) -> tuple[list[float], list[float]]:
    a, b = full(home / "full"), floor(home / "floor")
    beside = others(home / "full", hosts - 1)
    try:
        return drawn_by(a, b, runs, hosts, home)
    finally:
        for process in beside:
            process.terminate()
            process.wait(5)
        for editor in (a, b):
            editor.quit()


def drawn_by(
    a: Editor, b: Editor, runs: int, hosts: int, home: Path
) -> tuple[list[float], list[float]]:
    spool, bare = home / "full" / "bellboard" / "spool" / "new", home / "floor" / "spool"
    deadline = time.monotonic() + 10 * hosts
    announced = home / "full" / "bellboard" / "hosts"
    while not (spool.exists() and len(list(announced.glob("[0-9]*"))) >= hosts):
        if time.monotonic() > deadline:
            sys.exit("no host came up")
        time.sleep(0.05)
    time.sleep(1)
    sent: tuple[list[float], list[float]] = ([], [])
    for n in range(runs):
        sent[0].append(drop(spool, f"e{n}", event(n)))
        time.sleep(APART)
        sent[1].append(drop(bare, f"e{n}", event(n)))
        time.sleep(APART)
    time.sleep(0.5)
    drawn = [e.lua("return _G.probe_times()") for e in (a, b)]
    return latencies(sent[0], drawn[0]), latencies(sent[1], drawn[1])


def latencies(sent: list[float], drawn: list[float]) -> list[float]:
    """Return for each file how long it took until the first redraw before the next file."""
    found = []
    for begin, end in zip(sent, [*sent[1:], float("inf")], strict=True):
        after = [t for t in drawn if begin <= t < end]
        if after:
            found.append(after[0] - begin)
    if len(found) < 0.98 * len(sent):
        sys.exit(f"only {len(found)} of {len(sent)} changes were drawn in time")
    return found[10:]  # the first ones warm the caches


def main() -> int:
    parser = argparse.ArgumentParser(description="event to statusline, against the floor")
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--hosts", type=int, default=1)
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="bellboard-bench-"))
    try:
        ours, least = measure(given.runs, given.hosts, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(f"{'':10} {'p50 ms':>8} {'p90 ms':>8} {'p99 ms':>8}")
    for name, times in (("floor", least), ("bellboard", ours)):
        cuts = statistics.quantiles(times, n=100)
        print(f"{name:10} {cuts[49] * 1e3:8.2f} {cuts[89] * 1e3:8.2f} {cuts[98] * 1e3:8.2f}")
    p50 = statistics.median(ours) / statistics.median(least)
    p99 = statistics.quantiles(ours, n=100)[98] * 1e3
    most, frames = (MOST, 1) if given.hosts == 1 else (float("inf"), 2)
    print(f"p50 {p50:.2f} × the floor's p50   ≤ {most} {'pass' if p50 <= most else 'FAIL'}")
    print(f"p99 {p99:.2f} ms   ≤ {frames * FRAME:g} {'pass' if p99 <= frames * FRAME else 'FAIL'}")
    return int(p50 > most or p99 > frames * FRAME)


if __name__ == "__main__":
    sys.exit(main())
