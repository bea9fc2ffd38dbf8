"""Measure how much hooks slow down a turn of 20 tool calls: `bench/turn.py [--pairs N]`.

The real Claude Code CLI (`-p`) plays the same turn against the fake API, with hooks and without, in
a home where a host runs.  Either goes first every other time.  A turn lasts from its first request
to its last.  The tool calls are the cheapest there are (the CLI itself reads a small file), and the
API answers after `--before` seconds.  Real models and most tools take longer, so the share of the
hooks in a real turn is smaller.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from rig import home
from rig.agents import agent
from rig.agents.api import Api
from rig.agents.scenarios import Tool, Turn, say
from rig.fetched import claude_code
from rig.machines.loopback import Watch

CALLS = 20
BAR = 1.05  # of the median pair


def seconds(made: home.Home, api: Api, watch: Watch, settings: str) -> float:
    """Play one turn, and return how long it took."""
    played = len(api.played("twenty"))
    words = ("-p", "--settings", settings, "play:twenty please")
    launch = agent.prepare(made, api, watch, args=words)
    done = subprocess.run(
        launch.argv, env=launch.env, cwd=launch.cwd, stdin=subprocess.DEVNULL, capture_output=True
    )
    requests = api.played("twenty")[played:]
    if done.returncode or len(requests) != CALLS + 1:
        sys.exit(f"{len(requests)} requests: {(done.stderr or done.stdout).decode()}")
    return requests[-1].time - requests[0].time


def measure(pairs: int, before: float) -> tuple[list[float], list[float]]:
    """Return the durations of turns with hooks, and without."""
    with_, without = [], []
    made = home.build()
    made.file("x.txt", "x\n")
    (made.claude / "settings.json").write_text("{}")  # without the rig's own hooks
    bellboard = [sys.executable, "-m", "bellboard"]
    null = subprocess.DEVNULL
    serve = subprocess.Popen([*bellboard, "serve"], env=made.env, stderr=null)
    try:
        print_ = [*bellboard, "hooks", "print", "--cli", claude_code.VERSION]
        hooks = json.dumps(json.loads(subprocess.check_output(print_, env=made.env)))
        with Api() as api, Watch() as watch:
            read = Turn((Tool("Read", {"file_path": "$CWD/x.txt"}),), before=before)
            api.scenarios["twenty"] = (*[read] * CALLS, say("Done.", before=before))
            seconds(made, api, watch, hooks)  # warms the caches
            for n in range(pairs):
                for hooked in (True, False) if n % 2 else (False, True):
                    took = seconds(made, api, watch, hooks if hooked else "{}")
                    (with_ if hooked else without).append(took)
    finally:
        serve.terminate()
        serve.wait()
        home.remove(made)
    return with_, without


def main() -> int:
    parser = argparse.ArgumentParser(description="how much hooks slow down a turn of 20 tool calls")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--before", type=float, default=0.5, metavar="SECONDS")
    args = parser.parse_args()
    with_, without = measure(max(2, args.pairs), args.before)
    ratios = [a / b for a, b in zip(with_, without, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    a, b = statistics.median(with_), statistics.median(without)
    print(f"with {a:.2f} s, without {b:.2f} s, {(a - b) / CALLS * 1e3:.1f} ms a call")
    verdict = "pass" if middle <= BAR else "FAIL"
    print(f"{middle:.3f} × (quartiles {low:.3f} to {high:.3f})   ≤ {BAR} {verdict}")
    return int(middle > BAR)


if __name__ == "__main__":
    sys.exit(main())
