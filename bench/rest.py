"""Measure what it costs when nothing happens: `.venv/bin/python bench/rest.py [--seconds N]`.

Processor and memory (PSS) of a host with 50 sessions at rest, of one agent and of five; start of
Neovim with and without the plugin; `:qa` while a host runs; processes left after kill -9.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
from editors import ROOT, Editor, environment, nvim_path

SESSIONS = 50
#: How agents report a turn: the names of their events.
CLAUDE = ("claude", ("SessionStart", "UserPromptSubmit", "Stop"))
OTHERS = (
    ("codex", ("SessionStart", "UserPromptSubmit", "Stop")),
    ("opencode", ("session.created", "chat.message", "session.idle")),
    ("copilot", ("sessionStart", "userPromptSubmitted", "agentStop")),
    ("qwen", ("SessionStart", "UserPromptSubmit", "Stop")),
    ("gemini", ("SessionStart", "BeforeAgent", "AfterAgent")),
)


def spool_events(
    home: Path, agents: Sequence[tuple[str, Sequence[str]]], pids: Sequence[int]
) -> None:
    """Emit the events of fifty sessions at rest, each with a process and a log of its own."""
    for n, pid in enumerate(pids):
        agent, names = agents[n % len(agents)]
        log = home / f"{agent}-{n}.jsonl"
        log.write_text("{}\n")
        for name in names:
            given = {
                **dict.fromkeys(("session_id", "sessionId", "sessionID"), f"s{n}"),
                **dict.fromkeys(("hook_event_name", "type"), name),
                **dict.fromkeys(("transcript_path", "transcriptPath"), str(log)),
                **dict.fromkeys(("prompt", "text"), "do it"),
                "cwd": f"/tmp/p{n}",
            }
            payload = {**given, "properties": given}
            subprocess.run(
                [ROOT / "hooks" / "emit", name.replace(".", "_"), str(pid), agent],
                input=json.dumps(payload).encode(),
                env=environment(home),
                check=True,
            )


def until(done: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if done():
            return True
        time.sleep(0.02)
    return False


def pss(process: psutil.Process) -> float:
    return sum(m.pss for m in process.memory_maps(grouped=True)) / 2**20


def at_rest(
    home: Path, seconds: float, how: str, agents: Sequence[tuple[str, Sequence[str]]] = (CLAUDE,)
) -> tuple[float, float]:
    """Return how much `bellboard serve` uses: percent of a core, and MB."""
    serve = [sys.executable, str(ROOT / "bench" / "serve.py"), how]
    process = subprocess.Popen(serve, env=environment(home), stderr=subprocess.DEVNULL)
    runs = [subprocess.Popen(["sleep", "infinity"]) for _ in range(SESSIONS)]
    try:
        if not until(lambda: any((home / "bellboard" / "hosts").glob("*"))):
            sys.exit("no host came up")
        spool_events(home, agents, [run.pid for run in runs])
        until(lambda: not any((home / "bellboard" / "spool" / "new").iterdir()))
        time.sleep(3)
        if (found := listed(home)) != SESSIONS:
            sys.exit(f"{found} of {SESSIONS} sessions are listed")
        seen = psutil.Process(process.pid)
        before = seen.cpu_times()
        time.sleep(seconds)
        after = seen.cpu_times()
        used = after.user + after.system - before.user - before.system
        return 100 * used / seconds, pss(seen)
    finally:
        for each in (process, *runs):
            each.terminate()
            each.wait(5)


def listed(home: Path) -> int:
    """Return how many sessions have completed a turn."""
    command = [sys.executable, "-m", "bellboard", "list", "--json"]
    done = subprocess.run(command, env=environment(home), capture_output=True, check=True)
    return sum(row["status"] == "completed" for row in json.loads(done.stdout)["sessions"])


def start(home: Path, plugin: bool) -> float:
    """Return the milliseconds that Neovim took to start, from its own log."""
    log = home / "startup.log"
    with contextlib.suppress(FileNotFoundError):
        log.unlink()
    args = ["--cmd", f"set rtp^={ROOT}"] if plugin else []
    run = [nvim_path(), "--clean", "-n", "--headless", *args]
    run += [
        "--startuptime",
        str(log),
        "-c",
        "let g:bellboard = #{auto_start: v:false}",
        "-c",
        "qa!",
    ]
    subprocess.run(run, env=environment(home), check=True, stdin=subprocess.DEVNULL)
    last = [row for row in log.read_text().splitlines() if "NVIM STARTED" in row][-1]
    return float(last.split()[0])


def quitting(home: Path) -> tuple[float, bool]:
    """Return the seconds that :qa takes, and whether no process is left after kill -9."""

    def editor(name: str) -> tuple[Editor, int]:
        # headless: the TUI would wait a second on exit for replies of the terminal
        made = Editor(home, name, "--headless", "--cmd", f"set rtp^={ROOT}")
        made.lua("vim.g.bellboard = { python = ... }", sys.executable)
        made.lua("require('bellboard').start()")
        if not until(lambda: made.lua("return require('bellboard').health().pid ~= nil")):
            sys.exit("no host came up")
        return made, made.lua("return require('bellboard').health().pid")

    times = []
    for n in range(5):
        made, _ = editor(f"quit{n}")
        times.append(made.quit())
    made, host = editor("killed")
    os.kill(made.process.pid, signal.SIGKILL)
    made.process.wait()
    return statistics.median(times), until(lambda: not psutil.pid_exists(host), 5)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="processor, memory and start time when nothing happens"
    )
    parser.add_argument("--seconds", type=float, default=60)
    seconds = parser.parse_args().seconds
    home = Path(tempfile.mkdtemp(prefix="bb-", dir="/tmp"))
    failed = False

    def row(what: str, value: float, bar: float, unit: str) -> None:
        nonlocal failed
        failed |= value > bar
        print(f"{what:44} {value:8.3f} {unit:4} ≤ {bar} {'pass' if value <= bar else 'FAIL'}")

    try:
        for how, bar in (("inotify", 0.1), ("watchfiles", 0.5)):
            if how == "inotify" and sys.platform != "linux":
                continue
            cpu, memory = at_rest(home / how, seconds, how)
            row(f"{SESSIONS} sessions at rest, {how}", cpu, bar, "%")
            row("memory (PSS)", memory, 45, "MB")
            cpu, memory = at_rest(home / f"{how}-five", seconds, how, OTHERS)
            row(f"{SESSIONS} sessions of five agents, {how}", cpu, bar, "%")
            row("memory (PSS)", memory, 45, "MB")
        pairs = [(start(home, True), start(home, False)) for _ in range(25)]
        added = statistics.median(a - b for a, b in pairs)
        row("Neovim start, added", added, 1, "ms")
        took, clean = quitting(home)
        row(":qa with the host running", took, 0.15, "s")
        row("processes left after kill -9", 0 if clean else 1, 0, "")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
