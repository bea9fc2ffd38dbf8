"""Measure how many hook events per second one core decodes and folds.

    python bench/fold.py [EVENTS] [RUNS]

The payloads come from the recordings, in order, for many sessions at once; short ones are padded to
about 1 kB, a usual size.  All sessions show the same few lines, which are cached: masking secrets
in new ones, about 1 µs an event, is not part of the result.  Times are processor time of this
process, so that others do not count.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from itertools import cycle, islice
from pathlib import Path

from bellboard.agents.claude.hooks import hook
from bellboard.core.board import Board
from bellboard.core.events import Origin

RECORDINGS = Path(__file__).parent.parent / "tests" / "traces" / "recordings"
SESSIONS = 200
SIZE = 1000  # bytes
AIM = 100_000  # events a core-second
Emitted = tuple[bytes, float, Origin]


def recorded() -> list[dict[str, object]]:
    """Return the hook events of all recordings, except ends of sessions."""
    lines = [json.loads(x) for f in sorted(RECORDINGS.glob("*.jsonl")) for x in f.open()]
    return [x["hook"] for x in lines if "hook" in x and "SessionEnd" not in str(x["hook"])]


def emitted(count: int) -> list[Emitted]:
    """Return this many events of 200 sessions, a few milliseconds apart."""
    payloads = list(islice(cycle(recorded()), -(-count // SESSIONS)))
    origins = [
        Origin(pid=1000 + n, tty=f"/dev/pts/{n}", tmux="/tmp/tmux-1000/default", pane=f"%{n}")
        for n in range(SESSIONS)
    ]
    out: list[Emitted] = []
    for turn, payload in enumerate(payloads):
        for n, origin in enumerate(origins):
            raw = json.dumps({**payload, "session_id": f"session-{n}"})
            if (short := SIZE - len(raw)) > 24:
                raw = raw[:-1] + ', "tool_response": "' + "x" * (short - 22) + '"}'
            out.append((raw.encode(), 1.8e9 + turn + n * 0.004, origin))
    return out[:count]


def run(events: list[Emitted]) -> tuple[float, float]:
    """Return the seconds to decode, and to decode and fold."""
    begin = time.process_time()
    for raw, t, origin in events:
        hook(raw, t, t, origin)
    decoded = time.process_time()
    board = Board()
    for raw, t, origin in events:
        board.fold(hook(raw, t, t, origin))
    return decoded - begin, time.process_time() - decoded


def main() -> int:
    count, runs = (int(x) for x in (*sys.argv[1:], 100_000, 5)[:2])
    events = emitted(count)
    size = sum(len(raw) for raw, _, _ in events) / count
    gc.collect()
    gc.freeze()  # the input is not part of what is measured
    times = [run(events) for _ in range(runs)]
    decode, both = (statistics.median(x) for x in zip(*times, strict=True))
    print(f"{count:,} events of {size:.0f} bytes, {SESSIONS} sessions, median of {runs} runs")
    print(
        f"  decode           {count / decode:9,.0f} /core-second   {decode / count * 1e6:5.2f} µs"
    )
    print(f"  decode and fold  {count / both:9,.0f} /core-second   {both / count * 1e6:5.2f} µs")
    print(f"  aim              {AIM:9,}  {'reached' if count / both >= AIM else 'not reached'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
